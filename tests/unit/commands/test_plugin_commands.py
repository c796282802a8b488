"""``kuberay-op plugin`` and ``kuberay-op rbac`` as users call them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from kuberay_op.cli import main
from kuberay_op.declarative.manifest import API_VERSION
from kuberay_op.testing import make
from kuberay_op.testing.golden import Golden

COST: dict[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": "Plugin",
    "name": "cost",
    "summary": "Put a cost label on every Pod.",
    "options": {
        "key": {"type": "str", "default": "cost-centre", "description": "Key of the label."},
        "centre": {"type": "int", "required": True, "description": "The cost centre."},
    },
    "checks": [
        {"name": "no freeloaders", "when": "options.centre == 0", "fail": "somebody must pay"},
        {"name": "old Ray", "when": 'owner.spec.rayVersion == "1.0"', "warn": "Ray 1.0 is old"},
    ],
    "patches": [
        {
            "name": "label the Pod",
            "match": {"object": "Pod"},
            "merge": {"metadata": {"labels": {"${options.key}": "${str(options.centre)}"}}},
        }
    ],
    "examples": [
        {
            "name": "a Pod",
            "owner": {"kind": "RayCluster"},
            "options": {"centre": 7},
            "object": {"kind": "Pod"},
            "gives": {"kind": "Pod", "metadata": {"labels": {"cost-centre": "7"}}},
        }
    ],
}
NOTES: dict[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": "Plugin",
    "name": "notes",
    "summary": "Keep a note on every cluster.",
    "featureGate": {"name": "Notes", "description": "Notes.", "default": True},
    "rbac": [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "verbs": ["create", "delete", "get", "list", "patch", "watch"],
        },
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["notes"]},
    ],
    "watches": [{"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps"}],
    "objects": [
        {
            "name": "the note",
            "template": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "${owner.metadata.name}-note"},
            },
        }
    ],
}


@dataclass(frozen=True, slots=True)
class Called:
    """What a call came to."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


Call = Callable[..., Called]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*arguments: str | Path) -> Called:
        monkeypatch.setattr(sys, "argv", ["kuberay-op", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Called(int(ended.value.code or 0), out, err)

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with both plugins."""
    path = tmp_path / "plugins"
    path.mkdir()
    for raw in (COST, NOTES):
        (path / f"{raw['name']}.yaml").write_text(yaml.safe_dump(raw))
    return path


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump(make.raycluster("demo", make.workers(1))))
    return path


# --- list, show, doc


def test_list_shows_what_there_is(call: Call, folder: Path) -> None:
    text = call("plugin", "list", "--plugin-folder", folder)
    assert text.code == 0
    header, *rows = text.out.splitlines()
    assert header.split() == ["NAME", "DEFAULT", "SCHEDULER", "FROM", "SUMMARY"]
    assert any(row.split()[:2] == ["cost", "off"] and row.endswith(COST["summary"]) for row in rows)
    listed = call("plugin", "list", "--plugin-folder", folder, "--output", "json").json()
    (cost,) = [row for row in listed if row["name"] == "cost"]
    assert cost == {
        "name": "cost",
        "default": "off",
        "provides": "",
        "source": str(folder / "cost.yaml"),
        "summary": COST["summary"],
    }


def test_show_prints_the_manifest_by_name_or_file(call: Call, folder: Path) -> None:
    assert yaml.safe_load(call("plugin", "show", "cost", "--plugin-folder", folder).out) == COST
    assert call("plugin", "show", folder / "cost.yaml", "--output", "json").json() == COST


def test_doc_prints_a_page(call: Call, folder: Path) -> None:
    page = call("plugin", "doc", "cost", "--plugin-folder", folder).out
    assert page.startswith("# cost\n\nPut a cost label on every Pod.\n")
    assert "| `centre` | int | required | The cost centre. |" in page


@pytest.mark.parametrize("command", ["show", "doc", "lint", "test"])
def test_a_wrong_name_is_answered_with_the_nearest_and_all(call: Call, folder: Path, command: str) -> None:
    result = call("plugin", command, "costs", "--plugin-folder", folder)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: there is no plugin 'costs'; did you mean 'cost'? known are: ")
    assert "notes" in result.err


@pytest.mark.parametrize("command", ["show", "doc", "lint", "test"])
def test_a_file_that_is_not_there_is_wrong_use(call: Call, command: str) -> None:
    result = call("plugin", command, "nowhere.yaml")
    assert result.code == 2
    assert "there is no file nowhere.yaml" in result.err


# --- lint


def test_lint_is_content_with_good_manifests(call: Call, folder: Path) -> None:
    result = call("plugin", "lint", folder / "cost.yaml")
    assert (result.code, result.out) == (0, "1 checked, all right\n")


def test_lint_names_mistakes_and_warnings(call: Call, folder: Path, tmp_path: Path) -> None:
    warned = call("plugin", "lint", "notes", "--plugin-folder", folder)
    line = "notes: warning: examples: there are none: nothing shows that the steps work"
    assert (warned.code, warned.out.splitlines()) == (0, [line, "1 checked, all right"])
    strict = call("plugin", "lint", "notes", "--plugin-folder", folder, "--strict")
    assert (strict.code, strict.out.splitlines()) == (1, [line])

    bad = tmp_path / "bad.yaml"
    bad.write_text(yaml.safe_dump(COST | {"patchs": [], "checks": [{"name": "x", "fail": 3}]}))
    found = call("plugin", "lint", bad, "--output", "json")
    assert found.code == 1
    assert {(row["severity"], row["path"]) for row in found.json()} == {
        ("error", "patchs"),
        ("error", "checks[0].fail"),
    }


@pytest.mark.parametrize(
    ("text", "code", "complaint"),
    [
        ("a: [", 1, "cannot be read"),
        ("just text", 1, "must be a mapping with apiVersion, kind and name"),
        ("apiVersion: kuberay-op/v9", 1, "must be kuberay-op/v1alpha1, not 'kuberay-op/v9'"),
    ],
)
def test_lint_reads_anything(call: Call, tmp_path: Path, text: str, code: int, complaint: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    result = call("plugin", "lint", path)
    assert result.code == code
    assert complaint in result.out + result.err


# --- test


def test_test_runs_examples(call: Call, folder: Path, tmp_path: Path) -> None:
    result = call("plugin", "test", "cost", "--plugin-folder", folder)
    assert (result.code, result.out) == (0, "cost: a Pod: ok\n1 passed, 0 failed\n")

    broken = json.loads(json.dumps(COST))
    broken["examples"][0]["gives"]["metadata"]["labels"]["cost-centre"] = "8"
    path = tmp_path / "broken.yaml"
    path.write_text(yaml.safe_dump(broken))
    failed = call("plugin", "test", path)
    assert failed.code == 1
    assert failed.out.splitlines()[1:] == [
        "  gives.metadata.labels.cost-centre: '8' was expected, not '7'",
        "0 passed, 1 failed",
    ]
    (row,) = call("plugin", "test", path, "--output", "json").json()
    assert row["differences"]


def test_test_without_examples_is_no_success(call: Call, folder: Path) -> None:
    result = call("plugin", "test", folder / "notes.yaml")
    assert (result.code, result.out) == (1, "0 passed, 0 failed\n")


# --- try


def test_try_shows_a_diff_and_the_step(call: Call, folder: Path, cluster: Path) -> None:
    result = call("plugin", "try", folder / "cost.yaml", "-f", cluster, "--set", "centre=42")
    assert result.code == 0
    lines = result.out.splitlines()
    assert "changed: Pod demo-head- (label the Pod)" in lines
    assert "changed: Pod demo-workers-worker- (label the Pod)" in lines
    assert lines.count("+    cost-centre: '42'") == 2


def test_try_shows_what_is_added(call: Call, folder: Path, cluster: Path) -> None:
    (added,) = call("plugin", "try", folder / "notes.yaml", "-f", cluster, "--output", "json").json()
    assert (added["what"], added["title"]) == ("added", "ConfigMap demo-note")
    assert "+  name: demo-note" in added["diff"].splitlines()


def test_try_says_when_the_plugin_refuses_warns_or_does_nothing(
    call: Call, folder: Path, cluster: Path, tmp_path: Path
) -> None:
    refused = call("plugin", "try", folder / "cost.yaml", "-f", cluster, "--set", "centre=0")
    assert refused.code == 1
    assert refused.out.startswith("refused: somebody must pay\n")
    old = tmp_path / "old.yaml"
    old.write_text(yaml.safe_dump(make.raycluster("old", make.spec(rayVersion="1.0"))))
    warned = call("plugin", "try", folder / "cost.yaml", "-f", old, "--set", "centre=1")
    assert warned.code == 0
    assert warned.out.startswith("warning: Ray 1.0 is old\n")
    idle = tmp_path / "idle.yaml"
    idle.write_text(yaml.safe_dump({key: COST[key] for key in ("apiVersion", "kind", "name", "summary")}))
    assert call("plugin", "try", idle, "-f", cluster).out == "nothing would change\n"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ((), "centre: is required"),
        (("centre=x",), "centre: must be of type int, not 'x'"),
        (("centre=1", "kee=a"), "kee: unknown option; did you mean 'key'?"),
    ],
)
def test_try_checks_options(
    call: Call, folder: Path, cluster: Path, settings: tuple[str, ...], complaint: str
) -> None:
    flags = [part for setting in settings for part in ("--set", setting)]
    result = call("plugin", "try", folder / "cost.yaml", "-f", cluster, *flags)
    assert result.code == 1
    assert complaint in result.err


def test_try_wants_one_raycluster(call: Call, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(make.rayjob("job")))
    result = call("plugin", "try", folder / "notes.yaml", "-f", path)
    assert (result.code, result.err) == (1, f"error: {path}: must hold one RayCluster\n")


# --- new


@pytest.mark.parametrize("name", ["Cost", "cost labels", "cost-", "cost_labels", "", "x" * 64])
def test_new_refuses_wrong_names(call: Call, tmp_path: Path, name: str) -> None:
    result = call("plugin", "new", name, "--folder", tmp_path / "x")
    assert result.code == 1
    assert "must be lower-case letters, digits and '-'" in result.err
    assert not (tmp_path / "x").exists()


def test_new_does_not_touch_a_folder_with_something_in_it(call: Call, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    result = call("plugin", "new", "cost", "--folder", tmp_path)
    assert result.code == 1
    assert "is not empty" in result.err
    assert os.listdir(tmp_path) == ["mine"]


@pytest.mark.parametrize("python", [False, True], ids=["yaml", "python"])
def test_new_makes_a_package_whose_tests_pass(call: Call, tmp_path: Path, python: bool) -> None:
    made = tmp_path / "cost-labels"
    result = call("plugin", "new", "cost-labels", "--folder", made, *(["--python"] if python else []))
    assert result.code == 0
    assert result.out.splitlines()[-1].startswith("next: pip install -e ")
    manifest = made / "src" / "kuberay_op_cost_labels" / "plugin.yaml"
    assert call("plugin", "lint", "--strict", manifest).code == 0
    assert call("plugin", "test", manifest).code == 0

    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "."],
        cwd=made,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert f"{4 if python else 2} passed" in tested.stdout


# --- rbac


@pytest.fixture
def bare(call: Call) -> list[str]:
    """Flags that leave out the default plugins, as far as they are installed here."""
    listed = call("plugin", "list", "--output", "json").json()
    return ["--without", ",".join(row["name"] for row in listed if row["default"] == "on")]


def test_rbac_prints_exactly_what_these_plugins_need(
    call: Call, folder: Path, bare: list[str], golden: Golden
) -> None:
    flags = ["--plugins", "cost,notes", "--plugin-folder", folder, "--namespace", "ray-system"]
    result = call("rbac", *flags, *bare)
    assert result.code == 0
    golden.check("rbac.yaml", result.out)
    with_them, leader = yaml.safe_load(result.out)["items"]
    without, _ = call("rbac", *bare, "--output", "json").json()["items"]
    added = [rule for rule in with_them["rules"] if rule not in without["rules"]]
    assert added == sorted(NOTES["rbac"], key=lambda rule: rule["resources"])
    assert leader["metadata"]["namespace"] == "ray-system"


def test_rbac_of_a_plugin_whose_gate_is_off_is_that_of_none(call: Call, folder: Path) -> None:
    flags = ["--plugin-folder", folder, "--output", "json"]
    off = call("rbac", "--plugins", "notes", "--feature-gates", "Notes=false", *flags).json()
    assert off == call("rbac", *flags).json()


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--plugins", "cots"], "there is no plugin 'cots'; did you mean 'cost'?"),
        (["--without", "nots"], "there is no plugin 'nots'; did you mean 'notes'?"),
        (["--batch-scheduler", "vulcano"], "there is no batch scheduler 'vulcano'; did you mean 'volcano'?"),
        (["--feature-gates", "Nots=true"], "unknown feature gate 'Nots'; did you mean Notes?"),
    ],
)
def test_rbac_names_what_is_wrong(call: Call, folder: Path, flags: list[str], complaint: str) -> None:
    result = call("rbac", "--plugin-folder", folder, *flags)
    assert (result.code, result.out) == (1, "")
    assert complaint in result.err
