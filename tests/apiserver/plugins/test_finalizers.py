"""Deletion: each finalizer on its own, a failing plugin keeps only its own, and none is left behind."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.declarative.manifest import API_VERSION
from kuberay_op.hooks import Done, Refuse, Scope, Wait, Watch, hookimpl
from kuberay_op.kube.resource import CONFIG_MAPS, Resource
from kuberay_op.testing.operator import eventually

pytestmark = pytest.mark.apiserver

JOBS = Resource("batch", "v1", "jobs", "Job")


class Claims:
    """A plugin with one finalizer, and an answer when it is asked to clean up."""

    def __init__(self, name: str, answer: Any = None) -> None:
        self.finalizer = f"ray.io/{name}"
        self.answer = answer or Done()

    @hookimpl
    def kuberay_finalizers(self) -> list[str]:
        return [self.finalizer]

    @hookimpl
    def kuberay_finalize(self, scope: Scope, finalizer: str) -> Any:
        if finalizer != self.finalizer:
            return None
        return self.answer(scope) if callable(self.answer) else self.answer


async def finalizers(world: Any, name: str) -> set[str]:
    found = await world.get(RAY_CLUSTERS, name)
    return set(found["metadata"].get("finalizers", ())) if found else set()


async def delete(world: Any, name: str) -> None:
    await world.operator.client.delete(RAY_CLUSTERS, name, world.namespace, reason="a test")


async def test_they_are_there_before_the_first_child_and_go_one_by_one(start: Any) -> None:
    without: list[str] = []

    class Suspicious(Claims):
        @hookimpl
        def kuberay_patch_pod(self, scope: Scope) -> None:
            if "ray.io/a" not in scope.owner["metadata"].get("finalizers", ()):
                without.append(scope.name)

    async with start({"a": Suspicious("a"), "b": Claims("b", Done("all clean"))}) as world:
        await world.create("c")
        await world.has_head("c")
        assert await finalizers(world, "c") == {"ray.io/a", "ray.io/b"}
        assert without == []
        await delete(world, "c")
        await world.gone(RAY_CLUSTERS, "c")
        notes = await eventually(lambda: world.said("c", "FinalizerReleased"))
        assert "ray.io/a: plugin a is done" in notes
        assert "ray.io/b: all clean" in await eventually_two(world, "c")


async def eventually_two(world: Any, name: str) -> list[str]:
    async def both() -> Any:
        notes = await world.said(name, "FinalizerReleased")
        return notes if len(notes) >= 2 else None

    found: list[str] = await eventually(both)
    return found


async def test_one_of_a_plugin_that_is_gone_is_released_and_others_stay(start: Any) -> None:
    async with start({"a": Claims("a")}) as world:
        await world.create("c")
        await world.has_head("c")
        theirs = {"metadata": {"finalizers": ["ray.io/a", "example.com/theirs"]}}
        await world.operator.client.patch(RAY_CLUSTERS, "c", world.namespace, theirs, reason="a test")
    async with start({}) as world:
        await delete(world, "c")

        async def ours_gone() -> bool:
            return await finalizers(world, "c") == {"example.com/theirs"}

        await eventually(ours_gone)
        notes = await eventually(lambda: world.said("c", "FinalizerReleased"))
        assert notes == ["ray.io/a: no enabled plugin claims it"]
        free: dict[str, Any] = {"metadata": {"finalizers": []}}
        await world.operator.client.patch(RAY_CLUSTERS, "c", world.namespace, free, reason="they are done")
        await world.gone(RAY_CLUSTERS, "c")


@pytest.mark.parametrize("how", ["raises", "refuses", "answers rubbish"])
async def test_a_plugin_that_fails_keeps_its_own_and_others_go_on(start: Any, how: str) -> None:
    broken = threading.Event()
    broken.set()

    class Broken(Claims):
        """Fails whoever's finalizer it is asked about."""

        @hookimpl
        def kuberay_finalize(self, scope: Scope, finalizer: str) -> Any:
            if not broken.is_set():
                return Done() if finalizer == self.finalizer else None
            if how == "raises":
                raise ValueError("cannot clean up")
            if how == "refuses" and finalizer == self.finalizer:
                return Refuse("cannot clean up")
            return "cannot clean up" if how == "answers rubbish" else None

    async with start({"bad": Broken("bad"), "good": Claims("good")}) as world:
        await world.create("c")
        await world.has_head("c")
        await delete(world, "c")

        async def good_is_gone() -> bool:
            return await finalizers(world, "c") == {"ray.io/bad"}

        await eventually(good_is_gone)
        reason = "PluginRefuses" if how == "refuses" else "PluginFailed"
        condition = await world.objects("c", reason)
        assert condition["message"].startswith("ray.io/bad: plugin ")
        assert "bad" in condition["message"]
        notes = await eventually(lambda: world.said("c", reason))
        assert notes[0].startswith("ray.io/bad: ")
        broken.clear()
        await world.operator.client.patch(
            RAY_CLUSTERS, "c", world.namespace, {"metadata": {"labels": {"try": "again"}}}, reason="a nudge"
        )
        await world.gone(RAY_CLUSTERS, "c")


async def test_waiting_makes_objects_and_ends_with_them(start: Any) -> None:
    def clean(scope: Scope) -> Any:
        for found in scope.children.get("ConfigMap", ()):
            if found["data"]["done"] == "yes":
                return Done("the ConfigMap says so")
        wanted = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "clean-up"},
            "data": {"done": "no"},
        }
        return Wait("the clean-up is under way", 300, objects=(wanted,))

    class Waits(Claims):
        @hookimpl
        def kuberay_watches(self) -> Any:
            return [Watch("v1", "ConfigMap", "configmaps")]

    async with start({"a": Waits("a", clean)}) as world:
        await world.create("c")
        await world.has_head("c")
        await delete(world, "c")
        made = await eventually(lambda: world.get(CONFIG_MAPS, "clean-up"))
        assert made["metadata"]["labels"]["kuberay-op/plugin"] == "a"
        assert (await world.objects("c", "PluginWaits"))["message"] == "plugin a: the clean-up is under way"
        assert await finalizers(world, "c") == {"ray.io/a"}
        done = {"data": {"done": "yes"}}
        await world.operator.client.patch(CONFIG_MAPS, "clean-up", world.namespace, done, reason="done")
        await world.gone(RAY_CLUSTERS, "c")


async def test_a_job_that_cannot_be_made_is_reported_and_does_not_hold_others(start: Any) -> None:
    wanted = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": {}}
    plugins = {"bad": Claims("bad", Wait("waiting", 300, objects=(wanted,))), "good": Claims("good")}
    async with start(plugins) as world:
        await world.create("c")
        await world.has_head("c")
        await delete(world, "c")

        async def good_is_gone() -> bool:
            return await finalizers(world, "c") == {"ray.io/bad"}

        await eventually(good_is_gone)
        condition = await world.objects("c", "PluginFailed")
        assert condition["message"].startswith("plugin bad: Job x: Job of batch/v1 is not watched")
    async with start({}) as world:
        await world.gone(RAY_CLUSTERS, "c")


CLEANER: dict[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": "Plugin",
    "name": "cleaner",
    "summary": "Run a Job when a cluster goes.",
    "rbac": [
        {
            "apiGroups": ["batch"],
            "resources": ["jobs"],
            "verbs": ["create", "delete", "get", "list", "patch", "watch"],
        }
    ],
    "watches": [{"apiVersion": "batch/v1", "kind": "Job", "plural": "jobs"}],
    "finalizers": [
        {
            "name": "ray.io/cleaner",
            "job": {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "${owner.metadata.name}-clean"},
                "spec": {
                    "template": {
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [{"name": "clean", "image": "clean"}],
                        }
                    }
                },
            },
        }
    ],
}


async def test_a_page_of_yaml_cleans_up_with_a_job(start: Any) -> None:
    async with start({"cleaner": CLEANER}) as world:
        await world.create("c")
        await world.has_head("c")
        await delete(world, "c")
        job = await eventually(lambda: world.get(JOBS, "c-clean"))
        assert await finalizers(world, "c") == {"ray.io/cleaner"}
        now = job["metadata"]["creationTimestamp"]
        conditions = [
            {"type": kind, "status": "True", "lastProbeTime": now, "lastTransitionTime": now}
            for kind in ("SuccessCriteriaMet", "Complete")
        ]
        # The Job controller may have counted a Pod by now, and a finished Job may not have one running.
        counts = {"active": None, "ready": None, "uncountedTerminatedPods": None}
        ended = {"status": {"conditions": conditions, "startTime": now, "completionTime": now, **counts}}
        await world.operator.client.patch(
            JOBS, "c-clean", world.namespace, ended, subresource="status", reason="it ran"
        )
        await world.gone(RAY_CLUSTERS, "c")
        notes = await eventually(lambda: world.said("c", "FinalizerReleased"))
        assert notes == ["ray.io/cleaner: Job c-clean ended: Complete"]
