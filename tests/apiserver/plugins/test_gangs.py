"""A batch scheduler as a plugin: its objects come first, it holds the Pods, and it is told of the end."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.hooks import Done, Gang, Merge, Refuse, Wait, Watch, hookimpl
from kuberay_op.kube.resource import CONFIG_MAPS
from kuberay_op.testing import make
from kuberay_op.testing.operator import eventually

pytestmark = pytest.mark.apiserver


class Scheduler:
    """Keeps its gangs in ConfigMaps and admits them when the test says so."""

    def __init__(self) -> None:
        self.room = threading.Event()
        self.freed = threading.Event()
        self.released: list[tuple[str, int]] = []

    @hookimpl
    def kuberay_watches(self) -> Any:
        return [Watch("v1", "ConfigMap", "configmaps")]

    @hookimpl
    def kuberay_gang_objects(self, gang: Gang) -> Any:
        data = {"count": str(gang.count), "cpu": gang.requests["cpu"]}
        return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": gang.name}, "data": data}]

    @hookimpl
    async def kuberay_admit_gang(self, gang: Gang) -> Any:
        if gang.name.startswith("never"):
            return Refuse("it does not fit")
        return Done() if self.room.is_set() else Wait(f"no room for {gang.count} Pods", 1)

    @hookimpl
    def kuberay_schedule_child(self, child: Any) -> Merge:
        return Merge({"spec": {"schedulerName": child["spec"].get("schedulerName", "gangs")}})

    @hookimpl
    def kuberay_finalizers(self) -> list[str]:
        return ["ray.io/gangs"]

    @hookimpl
    async def kuberay_finalize(self, finalizer: str) -> Any:
        return Done() if finalizer == "ray.io/gangs" else None

    @hookimpl
    async def kuberay_release_gang(self, gang: Gang) -> Any:
        self.released.append((gang.name, gang.count))
        return Done() if self.freed.is_set() else Wait("still freeing", 1)


async def test_it_holds_the_pods_and_frees_the_gang_in_the_end(start: Any) -> None:
    scheduler = Scheduler()
    async with start({"gangs": scheduler}, scheduler="gangs") as world:
        await world.create("a", make.workers(2))
        condition = await world.objects("a", "PluginWaits")
        assert condition["message"] == "plugin gangs: no room for 3 Pods"
        group = await eventually(lambda: world.get(CONFIG_MAPS, "a"))
        assert group["data"] == {"count": "3", "cpu": "3"}
        assert await world.heads("a") == []

        scheduler.room.set()
        await world.has_head("a")
        await world.agrees("a")
        (head,) = await world.heads("a")
        assert head["spec"]["schedulerName"] == "gangs"

        await world.operator.client.delete(RAY_CLUSTERS, "a", world.namespace, reason="a test")
        waiting = await world.objects("a", "PluginWaits")
        assert waiting["message"] == "plugin gangs: still freeing"
        scheduler.freed.set()
        await world.gone(RAY_CLUSTERS, "a")
        assert set(scheduler.released) == {("a", 3)}


async def test_it_may_refuse(start: Any) -> None:
    async with start({"gangs": Scheduler()}, scheduler="gangs") as world:
        await world.create("never")
        condition = await world.objects("never", "PluginRefuses")
        assert condition["message"] == "plugin gangs: it does not fit"
        assert await world.heads("never") == []


async def test_one_that_is_not_chosen_is_not_asked(start: Any) -> None:
    scheduler = Scheduler()
    async with start({"gangs": scheduler}) as world:
        await world.create("a")
        await world.has_head("a")
        (head,) = await world.heads("a")
        assert head["spec"]["schedulerName"] == "default-scheduler"
        assert await world.get(CONFIG_MAPS, "a") is None
        await world.operator.client.delete(RAY_CLUSTERS, "a", world.namespace, reason="a test")
        await world.gone(RAY_CLUSTERS, "a")
        assert scheduler.released == []


async def test_its_failure_does_not_hold_a_deletion(start: Any) -> None:
    class Broken(Scheduler):
        @hookimpl
        async def kuberay_release_gang(self, gang: Gang) -> Any:
            raise ValueError("cannot free it")

    scheduler = Broken()
    scheduler.room.set()
    async with start({"gangs": scheduler}, scheduler="gangs") as world:
        await world.create("a")
        await world.has_head("a")
        await world.operator.client.delete(RAY_CLUSTERS, "a", world.namespace, reason="a test")
        await world.gone(RAY_CLUSTERS, "a")
        notes = await eventually(lambda: world.said("a", "FailedToCleanupBatchScheduler"))
        assert "plugin 'gangs': kuberay_release_gang: ValueError('cannot free it')" in notes[0]
