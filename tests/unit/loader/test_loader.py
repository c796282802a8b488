"""Discovery, choice and registration of plugins."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kuberay_op.declarative.manifest import API_VERSION, PluginManifest, parse_manifest
from kuberay_op.declarative.options import checked_options
from kuberay_op.errors import Misconfigured
from kuberay_op.features import Gates
from kuberay_op.loader.choose import Chosen, Wanted, choose
from kuberay_op.loader.discover import discover
from kuberay_op.loader.load import load_plugins

Make = Callable[..., PluginManifest]


def manifest(name: str, **keys: Any) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "Plugin", "name": name, "summary": "A plugin.", **keys}


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    def make(*manifests: dict[str, Any]) -> Path:
        for raw in manifests:
            (tmp_path / f"{raw['name']}.yaml").write_text(yaml.safe_dump(raw))
        return tmp_path

    return make


def chosen(wanted: Wanted, *manifests: dict[str, Any], gates: str = "") -> Chosen:
    known = {raw["name"]: parse_manifest(raw, raw["name"]) for raw in manifests}
    return choose(known, known.__getitem__, wanted, Gates.default().with_overrides(gates).enabled)


VOLCANO = manifest("volcano", provides={"batchScheduler": "volcano"})
KAI = manifest("kai", provides={"batchScheduler": "kai-scheduler"})
WAS = manifest("was", provides={"batchScheduler": "kubernetes-was-v1alpha2"})


def test_defaults_are_on_and_others_off_until_named() -> None:
    plugins = (manifest("autoscaler-rbac"), manifest("gcs-ft-redis"), manifest("mine"), manifest("yours"))
    assert list(chosen(Wanted(), *plugins).manifests) == ["autoscaler-rbac", "gcs-ft-redis"]
    on = chosen(Wanted(enabled={"mine": True, "gcs-ft-redis": False}), *plugins)
    assert list(on.manifests) == ["autoscaler-rbac", "mine"]
    assert on.reasons["yours"] == "off: default"
    bare = chosen(Wanted(), manifest("mine"))
    assert bare.reasons["gcs-ft-redis"] == "missing: not installed; the package is kuberay-op-gcs-ft-redis"


@pytest.mark.parametrize(
    ("wanted", "gates", "provider"),
    [
        (Wanted(batch_scheduler="kai-scheduler"), "", "kai"),
        (Wanted(enable_batch_scheduler=True), "", "volcano"),
        (Wanted(), "KubernetesWAS=true", "was"),
        (Wanted(), "", ""),
    ],
)
def test_the_reference_s_ways_to_ask_for_a_scheduler(wanted: Wanted, gates: str, provider: str) -> None:
    found = chosen(wanted, VOLCANO, KAI, WAS, gates=gates)
    assert found.scheduler == provider
    assert list(found.manifests) == ([provider] if provider else [])


@pytest.mark.parametrize(
    ("wanted", "gates", "complaint"),
    [
        (Wanted(batch_scheduler="kai-schedule"), "", "did you mean 'kai-scheduler'"),
        (Wanted(batch_scheduler="yunikorn"), "", "install 'kuberay-op-yunikorn'"),
        (Wanted(batch_scheduler="volcano", enable_batch_scheduler=True), "", "are both set"),
        (Wanted(batch_scheduler="volcano"), "KubernetesWAS=true", "KubernetesWAS excludes"),
        (
            Wanted(batch_scheduler="kubernetes-was-v1alpha2"),
            "",
            "is not chosen by name; turn on the feature gate",
        ),
        (
            Wanted(enabled={"volcano": True}, batch_scheduler="kai-scheduler"),
            "",
            "'kai' is the batch scheduler",
        ),
        (Wanted(enabled={"volcano": True}), "", "set batchScheduler: volcano"),
        (Wanted(enabled={"volcanoo": True}), "", "did you mean 'volcano'?.* known are: kai, volcano, was"),
        (Wanted(options={"nope": {}}), "", "there is no plugin 'nope'"),
    ],
)
def test_what_makes_no_sense_stops_the_start(wanted: Wanted, gates: str, complaint: str) -> None:
    with pytest.raises(Misconfigured, match=complaint):
        chosen(wanted, VOLCANO, KAI, WAS, gates=gates)


def test_two_providers_of_one_scheduler_are_an_error_until_one_is_off() -> None:
    other = manifest("fork", provides={"batchScheduler": "volcano"})
    with pytest.raises(Misconfigured, match="'fork' and 'volcano'"):
        chosen(Wanted(batch_scheduler="volcano"), VOLCANO, other)
    off = Wanted(batch_scheduler="volcano", enabled={"fork": False})
    assert chosen(off, VOLCANO, other).scheduler == "volcano"


def test_order_is_by_after_then_by_name() -> None:
    plugins = (manifest("a", after=["c", "gone"]), manifest("b"), manifest("c"), manifest("d", after=["a"]))
    wanted = Wanted(enabled=dict.fromkeys("abcd", True))
    assert list(chosen(wanted, *plugins).manifests) == ["b", "c", "a", "d"]
    with pytest.raises(Misconfigured, match="circle"):
        chosen(Wanted(enabled={"a": True, "b": True}), manifest("a", after=["b"]), manifest("b", after=["a"]))


def test_a_gate_that_is_off_switches_its_plugin_off() -> None:
    gated = manifest("mine", featureGate={"name": "RayCronJob", "description": "x"})
    wanted = Wanted(enabled={"mine": True})
    assert chosen(wanted, gated).reasons["mine"] == "off: gate RayCronJob is off"
    assert "mine" in chosen(wanted, gated, gates="RayCronJob=true").manifests


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        ([], "must be a mapping"),
        (
            manifest("a") | {"apiVersion": "kuberay-op/v9"},
            "'kuberay-op/v9', this operator speaks 'kuberay-op/v1alpha1'",
        ),
        (manifest("A_b"), "name: must match"),
        (manifest("a", patchs=[]), "patchs: unknown field; did you mean 'patches'"),
        (manifest("a", checks=[{"fail": "x"}]), r"checks\[0\].name: is required"),
        (
            manifest("a", options={"x": {"type": "text", "description": "d"}}),
            r"options.x.type: must be str",
        ),
    ],
)
def test_bad_manifests_name_the_key(raw: Any, complaint: str) -> None:
    with pytest.raises(Misconfigured, match=complaint):
        parse_manifest(raw, "here.yaml")


def test_options_report_all_mistakes_and_no_secret() -> None:
    plugin = parse_manifest(
        manifest(
            "a",
            options={
                "n": {"type": "int", "description": "d", "default": 3},
                "mode": {"type": "str", "description": "d", "choices": ["x", "y"]},
                "token": {"type": "str", "description": "d", "secret": True},
                "must": {"type": "str", "description": "d", "required": True},
            },
        ),
        "a",
    )
    with pytest.raises(Misconfigured) as caught:
        checked_options(plugin, {"n": True, "mode": "z", "token": 12345, "modes": 1})
    text = str(caught.value)
    assert "n: must be of type int, not True" in text
    assert "mode: must be one of x, y, not 'z'" in text
    assert "must: is required" in text
    assert "modes: unknown option; did you mean 'mode'?" in text
    assert "12345" not in text
    assert checked_options(plugin, {}, complete=False)["must"] is None
    good = checked_options(plugin, {"must": "m"})
    assert (good["n"], good["mode"], good["must"]) == (3, None, "m")
    with pytest.raises(TypeError):
        good["n"] = 4  # type: ignore[index]  # that is the point


def test_a_folder_of_yaml_is_enough(folder: Callable[..., Path]) -> None:
    path = folder(
        manifest("mine", patches=[{"name": "label", "merge": {"metadata": {"labels": {"a": "b"}}}}])
    )
    (path / "..data").mkdir()
    plugins = load_plugins(Wanted(enabled={"mine": True}), Gates.default(), folders=[path])
    names = [i.plugin for i in plugins.hooks.dispatcher.implementations("kuberay_patch_pod")]
    assert names == ["mine"]
    assert not plugins.hooks.dispatcher.building_needs_thread


def test_a_broken_expression_names_the_plugin(folder: Callable[..., Path]) -> None:
    path = folder(manifest("mine", patches=[{"name": "x", "when": "a b", "merge": {}}]))
    with pytest.raises(Misconfigured, match="plugin 'mine': 'a b' is not an expression"):
        load_plugins(Wanted(enabled={"mine": True}), Gates.default(), folders=[path])


def test_a_variable_that_nobody_sets_is_an_error(folder: Callable[..., Path]) -> None:
    path = folder(manifest("mine", patches=[{"name": "x", "merge": {"a": "${ownr.kind}"}}]))
    with pytest.raises(Misconfigured, match=r"ownr\.kind: nobody sets 'ownr'"):
        load_plugins(Wanted(enabled={"mine": True}), Gates.default(), folders=[path])


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Installs a Python plugin ``coded`` (an entry point and a package) for one test."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(code: str) -> None:
        package = tmp_path / "kuberay_op_coded"
        package.mkdir()
        (package / "__init__.py").write_text(
            "raise AssertionError('must not be imported')\n" if not code else ""
        )
        (package / "hooks.py").write_text(code)
        (package / "plugin.yaml").write_text(
            yaml.safe_dump(manifest("coded", hooks="kuberay_op_coded.hooks"))
        )
        info = tmp_path / "kuberay_op_coded-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kuberay-op-coded\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[kuberay_op.plugins]\ncoded = kuberay_op_coded:plugin.yaml\n")
        for name in [name for name in sys.modules if name.startswith("kuberay_op_coded")]:
            monkeypatch.delitem(sys.modules, name)

    return install


def test_a_plugin_that_is_off_is_not_imported(package: Callable[[str], None]) -> None:
    package("")
    assert discover()["coded"].source == "kuberay-op-coded 1.0"
    plugins = load_plugins(Wanted(), Gates.default())
    assert plugins.chosen.reasons["coded"] == "off: default"


def test_python_hooks_are_registered(package: Callable[[str], None]) -> None:
    package(
        "from kuberay_op.hooks import hookimpl, Merge\n"
        "@hookimpl\n"
        "def kuberay_patch_pod(pod):\n    return Merge({})\n"
    )
    plugins = load_plugins(Wanted(enabled={"coded": True}), Gates.default())
    assert plugins.hooks.dispatcher.building_needs_thread
    assert [i.plugin for i in plugins.hooks.dispatcher.implementations("kuberay_patch_pod")] == ["coded"]


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("import nothing_like_this", "cannot import 'kuberay_op_coded.hooks'"),
        ("from kuberay_op.hooks import hookimpl\n@hookimpl\ndef kuberay_patch_pods(): ...\n", "unknown hook"),
        ("from kuberay_op.hooks import hookimpl\n@hookimpl\ndef kuberay_patch_pod(podd): ...\n", "podd"),
        (
            "from kuberay_op.hooks import hookimpl\n@hookimpl(wrapper=True)\n"
            "def kuberay_patch_pod(pod):\n    return (yield)\n",
            "wrappers are not called here",
        ),
        (
            "from kuberay_op.hooks import hookimpl\n@hookimpl\nasync def kuberay_patch_pod(pod): ...\n",
            "kuberay_patch_pod cannot be async",
        ),
    ],
)
def test_broken_python_stops_the_start(package: Callable[[str], None], code: str, complaint: str) -> None:
    package(code)
    with pytest.raises(Misconfigured, match=complaint):
        load_plugins(Wanted(enabled={"coded": True}), Gates.default())
