"""YAML plugins: what each section does, the linter, the examples and the generated pages."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from kuberay_op.api.view import View
from kuberay_op.declarative.doc import page
from kuberay_op.declarative.examples import run_examples
from kuberay_op.declarative.lint import lint
from kuberay_op.declarative.manifest import PluginManifest, parse_manifest
from kuberay_op.declarative.options import checked_options
from kuberay_op.declarative.plugin import DeclarativePlugin
from kuberay_op.declarative.steps import StepFailed
from kuberay_op.hooks.patches import Merge
from kuberay_op.hooks.scope import Gang, GangMember, Group, Scope
from kuberay_op.hooks.verdicts import Done, Wait

HERE = Path(__file__).parent
NOW = datetime(2026, 5, 1, tzinfo=UTC)


def load(name: str) -> dict[str, Any]:
    raw: dict[str, Any] = yaml.safe_load((HERE / f"{name}.yaml").read_text())
    return raw


@pytest.fixture
def everything() -> DeclarativePlugin:
    return DeclarativePlugin(PluginManifest(load("everything")))


def scope(**metadata: Any) -> Scope:
    owner = {"kind": "RayCluster", "metadata": {"name": "c", **metadata}}
    return Scope(owner=owner, now=NOW, gate=lambda _: True)


@pytest.mark.parametrize("name", ["kai", "everything"])
def test_the_manifest_is_clean_and_its_examples_pass(name: str) -> None:
    raw = load(name)
    assert [str(problem) for problem in lint(raw)] == []
    ran = run_examples(parse_manifest(raw, name))
    assert len(ran) == len(raw["examples"])
    assert [result for result in ran if result.differences] == []


def test_an_example_that_differs_says_where() -> None:
    raw = load("kai")
    raw["examples"][0]["gives"]["spec"]["schedulerName"] = "other"
    raw["examples"][1]["warns"] = ["something else"]
    first, second = run_examples(parse_manifest(raw, "kai"))
    assert first.differences == ("gives.spec.schedulerName: 'other' was expected, not 'kai-scheduler'",)
    assert any("'something else' was expected" in line for line in second.differences)
    assert any("was not expected" in line for line in second.differences)


def keys(view: type[View], prefix: str = "") -> Iterator[str]:
    for field in view.fields().values():
        yield f"{prefix}{field.json}"
        below = field.children()
        if below is not None:
            yield from keys(below, f"{prefix}{field.json}.")


def used(raw: Any, view: type[View], prefix: str = "") -> Iterator[str]:
    for field in view.fields().values():
        value = raw.get(field.json)
        if value is None:
            continue
        yield f"{prefix}{field.json}"
        below = field.children()
        if below is not None:
            named = field.type_name == "map of objects"
            entries = value.values() if named else value if isinstance(value, list) else [value]
            for entry in entries:
                yield from used(entry, below, f"{prefix}{field.json}.")


def test_every_key_is_exercised_and_documented() -> None:
    exercised = set(used(load("everything"), PluginManifest)) | set(used(load("kai"), PluginManifest))
    exercised |= {key for key in keys(PluginManifest) if ".match." in key}  # the same view in each section
    assert set(keys(PluginManifest)) == exercised
    text = (HERE.parents[2] / "docs/reference/plugin-manifest.md").read_text()
    for key in keys(PluginManifest):
        assert f"| `{key.rpartition('.')[2]}` |" in text


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"checks": [{"name": "x"}]}, "checks[0]: needs either fail or warn"),
        ({"checks": [{"name": "x", "fail": "a", "warn": "b"}]}, "needs either fail or warn"),
        ({"patches": [{"name": "x"}]}, "patches[0]: needs either merge or jsonPatch"),
        ({"patches": [{"name": "x", "merge": []}]}, "patches[0].merge: must be a mapping"),
        ({"patches": [{"name": "x", "jsonPatch": {}}]}, "must be a list of operations"),
        ({"patches": [{"name": "x", "merge": {}, "when": 3}]}, "patches[0].when: must be a text or a list"),
        ({"patches": [{"name": "x", "merge": {}, "match": {"owner": "Pod"}}]}, "must be among RayCluster"),
        ({"patches": [{"name": "x", "merge": {}, "match": {"role": "boss"}}]}, "must be head, worker"),
        ({"values": [{"name": "x", "set": []}]}, "values[0].set: must be a mapping"),
        ({"objects": [{"name": "x", "template": []}]}, "objects[0].template: must be an object"),
        (
            {"objects": [{"name": "x", "template": {"kind": "A"}}]},
            "objects[0].template.apiVersion: is required",
        ),
        (
            {
                "objects": [
                    {"name": "x", "template": {"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "x"}}}
                ]
            },
            "objects[0].template: makes A of a/v1, which is not under watches",
        ),
        (
            {
                "objects": [
                    {"name": "x", "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}}
                ]
            },
            "objects[0].template.kind: cannot be Pod; let a Job make it",
        ),
        (
            {"watches": [{"apiVersion": "a/v1", "kind": "A", "plural": "as"}]},
            "watches[0]: the rbac section does not grant create, delete, get, list, patch, watch on as",
        ),
        (
            {"finalizers": [{"name": "example.com/x", "job": {"kind": "Job"}}]},
            "finalizers[0].name: a finalizer must be ray.io/NAME, not 'example.com/x'",
        ),
        ({"finalizers": [{"name": "ray.io/x", "job": {"kind": "Pod"}}]}, "finalizers[0].job.kind: must be"),
        ({"values": [{"name": "x", "set": {"owner": 1}}]}, "a name that the language has already"),
        ({"values": [{"name": "x", "set": {"a-b": 1}}]}, "must be a name"),
        (
            {"options": {"x": {"type": "int", "description": "d", "default": "a"}}},
            "must be of type int, not 'a'",
        ),
        (
            {"options": {"x": {"type": "int", "description": "d", "default": 1, "required": True}}},
            "is required and has a default",
        ),
        ({"patches": [{"name": "x", "merge": {"a": "${options.nope}"}}]}, "there is no option 'nope'"),
        ({"patches": [{"name": "x", "merge": {"a": "${1 +}"}}]}, "is not an expression"),
        ({"patches": [{"name": "x", "merge": {}}, {"name": "x", "merge": {}}]}, "2 steps are named 'x'"),
        ({"apiVersion": "v2"}, "must be kuberay-op/v1alpha1"),
        ({"nope": 1}, "nope: unknown field"),
    ],
)
def test_the_linter_names_the_mistake(change: dict[str, Any], complaint: str) -> None:
    raw = {
        "apiVersion": "kuberay-op/v1alpha1",
        "kind": "Plugin",
        "name": "a",
        "summary": "S.",
        **copy.deepcopy(change),
    }
    assert complaint in "\n".join(str(problem) for problem in lint(raw))


def test_a_scheduler_acts_only_through_scheduling_hooks() -> None:
    kai = DeclarativePlugin(PluginManifest(load("kai")))
    assert "kuberay_schedule_child" in kai.kuberay_hooks
    assert "kuberay_patch_pod" not in kai.kuberay_hooks


def test_a_scheduler_s_objects_see_the_gang() -> None:
    raw = load("kai") | {
        "objects": [
            {
                "name": "group",
                "template": {
                    "apiVersion": "x/v1",
                    "kind": "PodGroup",
                    "metadata": {"name": "${gang.name}"},
                    "spec": {"minMember": "${gang.count}", "minResources": "${gang.requests}"},
                },
            }
        ],
        "rbac": [{"apiGroups": ["x"], "resources": ["podgroups"], "verbs": ["create"]}],
    }
    plugin = DeclarativePlugin(PluginManifest(raw))
    gang = Gang(
        "g",
        (
            GangMember(Group("headgroup", "head"), 1, {"cpu": "256m"}),
            GangMember(Group("w", "worker"), 2, {"cpu": "256m", "nvidia.com/gpu": "1"}),
        ),
    )
    options = checked_options(plugin.manifest, {})
    (made,) = plugin.kuberay_gang_objects(scope=scope(), gang=gang, options=options)
    assert made.obj["spec"] == {"minMember": 3, "minResources": {"cpu": "768m", "nvidia.com/gpu": "2"}}


def test_a_loop_of_values_gathers_a_list() -> None:
    raw = load("kai") | {
        "values": [
            {
                "name": "groups",
                "loop": "gang.members",
                "when": "item.count",
                "set": {"groups": {"name": "${item.group}", "cpu": "${item.total.cpu}"}, "odd": None},
            }
        ],
        "patches": [
            {"name": "list", "merge": {"metadata": {"annotations": {"groups": "${json(groups + odd)}"}}}}
        ],
    }
    plugin = DeclarativePlugin(PluginManifest(raw))
    gang = Gang(
        "g",
        (
            GangMember(Group("headgroup", "head"), 1, {"cpu": "256m"}),
            GangMember(Group("none", "worker"), 0, {"cpu": "1"}),
            GangMember(Group("w", "worker"), 2, {"cpu": "256m"}),
        ),
    )
    asked = replace(scope(), gang=gang)
    options = checked_options(plugin.manifest, {})
    made = plugin.kuberay_schedule_child(
        scope=asked, child={"kind": "Pod"}, group=Group("w", "worker"), options=options
    )
    assert made is not None
    (patch,) = made
    assert isinstance(patch, Merge)
    text = patch.patch["metadata"]["annotations"]["groups"]
    assert text == '[{"name":"headgroup","cpu":"256m"},{"name":"w","cpu":"512m"}]'


def test_a_finalizer_makes_its_job_waits_for_it_and_gives_up_at_the_deadline(
    everything: DeclarativePlugin,
) -> None:
    options = checked_options(everything.manifest, {"token": "t"})
    assert list(everything.kuberay_finalizers(scope=scope(), options=options)) == ["ray.io/clean"]

    def finalize(seconds: int, *jobs: dict[str, Any]) -> Any:
        stamp = (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
        deleted = scope(deletionTimestamp=stamp)
        asked = Scope(deleted.owner, NOW, deleted.gate, children={"Job": jobs})
        return everything.kuberay_finalize(scope=asked, finalizer="ray.io/clean", options=options)

    job = {"metadata": {"name": "c-ml-clean"}}
    waiting = finalize(10)
    assert isinstance(waiting, Wait)
    assert waiting.objects[0]["metadata"] == {"name": "c-ml-clean"}
    assert isinstance(finalize(10, job), Wait)
    for how in ("Complete", "Failed"):
        ended = {**job, "status": {"conditions": [{"type": how, "status": "True"}]}}
        assert finalize(10, ended) == Done(f"Job c-ml-clean ended: {how}")
    assert finalize(61, job) == Done("gave up cleaning up after 61 s")
    assert everything.kuberay_finalize(scope=scope(), finalizer="other", options=options) is None


def test_a_step_that_fails_is_named(everything: DeclarativePlugin) -> None:
    options = checked_options(everything.manifest, {"token": "t", "quotas": [{"name": 3, "cpu": "x"}]})
    with pytest.raises(StepFailed, match=r"step 'one ConfigMap per quota'.*quantity"):
        list(everything.kuberay_extra_objects(scope=scope(), options=options))


def test_a_loop_is_limited(everything: DeclarativePlugin) -> None:
    options = checked_options(everything.manifest, {"token": "t", "quotas": [{}] * 1000})
    with pytest.raises(StepFailed, match="1000 rounds"):
        list(everything.kuberay_extra_objects(scope=scope(), options=options))


def greedy(**sections: Any) -> DeclarativePlugin:
    base = {"apiVersion": "kuberay-op/v1alpha1", "kind": "Plugin", "name": "greedy", "summary": "S."}
    return DeclarativePlugin(PluginManifest(base | sections))


def test_values_that_double_end_soon() -> None:
    doubling = [{"name": "0", "set": {"x": ["a"] * 10}}]
    doubling += [{"name": str(number), "set": {"x": "${[x, x]}"}} for number in range(1, 60)]
    plugin = greedy(values=doubling, checks=[{"name": "c", "when": "x", "warn": "w"}])
    with pytest.raises(StepFailed, match="one call may make 10000 values"):
        list(plugin.kuberay_validate(obj={}, options={}))


def test_texts_that_grow_end_soon() -> None:
    template = {"kind": "A", "metadata": {"name": "${options.text}" * 60}}
    plugin = greedy(objects=[{"name": "o", "template": template}])
    with pytest.raises(StepFailed, match="1000000 characters together"):
        list(plugin.kuberay_extra_objects(scope=scope(), options={"text": "x" * 19_000}))


def test_many_steps_over_many_items_end_soon() -> None:
    steps = [
        {"name": str(number), "loop": "owner.items", "when": "1 + 1 + 1 + 1 + 1 == 6", "merge": {}}
        for number in range(100)
    ]
    plugin = greedy(patches=steps)
    asked = Scope(owner={"kind": "RayCluster", "items": list(range(100))}, now=NOW, gate=lambda _: True)
    with pytest.raises(StepFailed, match="50000 steps of expressions"):
        list(plugin.kuberay_patch_object(scope=asked, obj={"kind": "Service"}, options={}) or ())


def test_the_page_shows_options_steps_rights_and_examples(everything: DeclarativePlugin) -> None:
    text = page(everything.manifest)
    for part in (
        "# everything",
        "| `team` | str | `ml` |",
        "Never printed.",
        "- head only",
        "configmaps",
        "## worker",
    ):
        assert part in text
