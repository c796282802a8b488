"""Objects that plugins add: made, kept up to date, pruned; what others put on them stays."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.declarative.manifest import API_VERSION
from kuberay_op.hooks import Done, Merge, Scope, Wait, Watch, hookimpl
from kuberay_op.kube.resource import CONFIG_MAPS
from kuberay_op.testing import make
from kuberay_op.testing.operator import eventually

pytestmark = pytest.mark.apiserver

NOTES: dict[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": "Plugin",
    "name": "notes",
    "summary": "Keep a note on every cluster.",
    "options": {"text": {"type": "str", "default": "hello", "description": "The note."}},
    "rbac": [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "verbs": ["create", "delete", "get", "list", "patch", "watch"],
        }
    ],
    "watches": [{"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps"}],
    "objects": [
        {
            "name": "the note",
            "when": "not owner.metadata.labels.quiet",
            "template": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "${owner.metadata.name}-note"},
                "data": {"text": "${options.text}", "team": "${owner.metadata.labels.team}"},
            },
        }
    ],
}


async def relabel(world: Any, name: str, **labels: str | None) -> None:
    patch = {"metadata": {"labels": labels}}
    await world.operator.client.patch(RAY_CLUSTERS, name, world.namespace, patch, reason="an edit")


async def note_says(world: Any, **data: str) -> dict[str, Any]:
    async def says() -> Any:
        found = await world.get(CONFIG_MAPS, "a-note")
        return found if found is not None and data.items() <= found["data"].items() else None

    found: dict[str, Any] = await eventually(says)
    return found


async def test_it_is_made_follows_its_owner_and_is_pruned(start: Any) -> None:
    async with start({"notes": NOTES}) as world:
        owner = await world.create("a", make.labels(team="ml"))
        made = await note_says(world, text="hello", team="ml")
        assert made["metadata"]["labels"] == {"kuberay-op/plugin": "notes"}
        assert made["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]

        theirs = {"data": {"theirs": "x"}, "metadata": {"annotations": {"theirs": "y"}}}
        await world.operator.client.patch(
            CONFIG_MAPS, "a-note", world.namespace, theirs, reason="somebody else"
        )
        await relabel(world, "a", team="web")
        changed = await note_says(world, text="hello", team="web", theirs="x")
        assert changed["metadata"]["annotations"]["theirs"] == "y"

        await relabel(world, "a", team=None)  # the plugin does not want the field any more

        async def without_team() -> bool:
            found = await world.get(CONFIG_MAPS, "a-note")
            return found is not None and found["data"] == {"text": "hello", "theirs": "x"}

        await eventually(without_team)

        spoilt = {"data": {"text": "spoilt"}}
        await world.operator.client.patch(
            CONFIG_MAPS, "a-note", world.namespace, spoilt, reason="an accident"
        )
        await note_says(world, text="hello", theirs="x")

        await relabel(world, "a", quiet="yes")
        await world.gone(CONFIG_MAPS, "a-note")
        await relabel(world, "a", quiet=None)
        await note_says(world, text="hello")


async def test_new_options_reach_objects_that_exist(start: Any) -> None:
    async with start({"notes": NOTES}) as world:
        await world.create("a")
        await note_says(world, text="hello")
    async with start({"notes": NOTES}, options={"notes": {"text": "good evening"}}) as world:
        await note_says(world, text="good evening")


async def test_other_plugins_may_patch_them_but_not_take_them_over(start: Any) -> None:
    class Labels:
        @hookimpl
        def kuberay_patch_object(self, scope: Scope, obj: Any) -> Merge:
            assert obj["metadata"]["namespace"] == scope.namespace
            return Merge({"metadata": {"labels": {"cost-centre": "42"}}})

    async with start({"notes": NOTES, "labels": Labels()}) as world:
        await world.create("a")
        made = await note_says(world, text="hello")
        assert made["metadata"]["labels"] == {"kuberay-op/plugin": "notes", "cost-centre": "42"}


def makes(*objects: dict[str, Any], watches: bool = True) -> Any:
    class Plugin:
        @hookimpl
        def kuberay_watches(self) -> Any:
            return [Watch("v1", "ConfigMap", "configmaps")] if watches else []

        @hookimpl
        def kuberay_extra_objects(self, scope: Scope) -> Any:
            return objects if scope.name.startswith("bad-") else ()

    return Plugin()


CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}


@pytest.mark.parametrize(
    ("plugins", "complaint"),
    [
        ({"b": makes(CONFIG_MAP, watches=False)}, "must name it under watches"),
        ({"b": makes({**CONFIG_MAP, "kind": "Pod"})}, "let a Job make it"),
        ({"a": makes(CONFIG_MAP), "b": makes(CONFIG_MAP)}, "is made by plugin 'a' already"),
        ({"b": makes({**CONFIG_MAP, "data": {"not a key!": "x"}})}, "ConfigMap x: "),
        ({"b": makes({**CONFIG_MAP, "metadata": {"name": "NOT A NAME"}})}, "ConfigMap NOT A NAME: "),
        ({"b": makes({**CONFIG_MAP, "metadata": {"name": "kube-root-ca.crt"}})}, "is not ours"),
    ],
    ids=["not watched", "a Pod", "made twice", "invalid", "bad name", "not ours"],
)
async def test_what_cannot_be_made_is_the_plugins_failure(
    start: Any, plugins: dict[str, Any], complaint: str
) -> None:
    async with start(plugins) as world:
        await world.create("bad-1")
        condition = await world.objects("bad-1", "PluginFailed")
        assert condition["message"].startswith("plugin 'b': kuberay_extra_objects: ")
        assert complaint in condition["message"]
        assert await eventually(lambda: world.said("bad-1", "PluginFailed"))
        assert world.operator.calls("b", "error") > 0
        await world.create("good-1")
        await world.has_head("good-1")


async def test_what_a_plugin_waits_for_is_made_first_and_stays(start: Any) -> None:
    class Patient:
        @hookimpl
        def kuberay_watches(self) -> Any:
            return [Watch("v1", "ConfigMap", "configmaps")]

        @hookimpl
        async def kuberay_before_reconcile(self, scope: Scope) -> Any:
            wanted = {**CONFIG_MAP, "data": {"answer": ""}}
            for found in scope.children.get("ConfigMap", ()):
                if found["data"]["answer"] == "yes":
                    return Done()
            return Wait("nobody has said yes", 300, objects=(wanted,))

    async with start({"patient": Patient()}) as world:
        await world.create("a")
        condition = await world.objects("a", "PluginWaits")
        assert condition["message"] == "plugin patient: nobody has said yes"
        assert await world.heads("a") == []
        await eventually(lambda: world.get(CONFIG_MAPS, "x"))
        yes = {"data": {"answer": "yes"}}
        await world.operator.client.patch(CONFIG_MAPS, "x", world.namespace, yes, reason="an answer")
        await world.has_head("a")  # woken by the child, long before the 300 s
        await world.agrees("a")
        await relabel(world, "a", team="ml")  # another pass
        await eventually(lambda: world.said("a", "PluginWaits"))
        assert (await world.get(CONFIG_MAPS, "x"))["data"] == {"answer": "yes"}
