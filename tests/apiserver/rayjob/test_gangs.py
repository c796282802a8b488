"""A batch scheduler and RayJobs: the gang is the job's, it is held as a whole, and let go at the end."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.hooks import Done, Gang, Group, Merge, Refuse, Wait, Watch, hookimpl
from kuberay_op.kube.resource import CONFIG_MAPS, JOBS
from kuberay_op.testing import make
from kuberay_op.testing.fake_ray import JobScript
from kuberay_op.testing.operator import eventually

pytestmark = pytest.mark.apiserver


class Scheduler:
    """Keeps the gangs of jobs in ConfigMaps, and admits them when the test says so."""

    def __init__(self) -> None:
        self.room = threading.Event()
        self.released: list[str] = []

    @hookimpl
    def kuberay_watches(self) -> Any:
        return [Watch("v1", "ConfigMap", "configmaps")]

    @hookimpl
    def kuberay_gang_objects(self, scope: Any, gang: Gang) -> Any:
        if scope.kind != "RayJob" or not gang.members:
            return []
        data = {"count": str(gang.count), "groups": ",".join(each.group.name for each in gang.members)}
        return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": gang.name}, "data": data}]

    @hookimpl
    async def kuberay_admit_gang(self, scope: Any, gang: Gang) -> Any:
        if scope.name == "never":
            return Refuse("it does not fit")
        return Done() if self.room.is_set() else Wait(f"no room for {gang.count} Pods", 1)

    @hookimpl
    def kuberay_schedule_child(self, child: Any, group: Group) -> Merge:
        return Merge({"metadata": {"annotations": {"gang": group.name or group.role}}})

    @hookimpl
    async def kuberay_release_gang(self, scope: Any, gang: Gang) -> Any:
        self.released.append(f"{scope.kind} {gang.name}")
        return Done()


async def test_the_gang_of_a_job(start: Any) -> None:
    scheduler = Scheduler()
    async with start(plugins={"gangs": scheduler}, scheduler="gangs") as world:
        await world.create("a", "K8sJobMode", make.workers(2))
        waits = await eventually(lambda: world.said("a", "PluginWaits"))
        assert "no room for 3 Pods" in waits[0]
        assert await world.clusters() == []
        held = await world.get(CONFIG_MAPS, "a")
        assert held is not None
        assert held["data"] == {"count": "3", "groups": "headgroup,workers,submittergroup"}

        scheduler.room.set()
        status = await world.reaches("a", "Running")
        cluster = await world.get(RAY_CLUSTERS, status["rayClusterName"])
        submitter = await world.get(JOBS, "a")
        assert cluster is not None
        assert submitter is not None
        assert cluster["metadata"]["annotations"]["gang"] == "cluster"
        assert submitter["spec"]["template"]["metadata"]["annotations"]["gang"] == "submittergroup"
        (head,) = await world.heads(status["rayClusterName"])
        assert head["metadata"]["annotations"]["gang"] == "headgroup"

        fake = await world.submit("a")
        fake.jobs.finish(status["jobId"])
        await world.end_submitter("a")
        await world.reaches("a", "Complete")
        await world.gone(CONFIG_MAPS, "a")
        assert "RayJob a" in scheduler.released


async def test_a_refusal_is_said_and_the_deadline_counts(start: Any) -> None:
    scheduler = Scheduler()
    async with start(plugins={"gangs": scheduler}, scheduler="gangs") as world:
        await world.create("never", "HTTPMode", make.spec(preRunningDeadlineSeconds=3))
        assert await eventually(lambda: world.said("never", "PluginRefuses"))
        agreement = (await world.job("never"))["status"]["conditions"]
        assert [(each["type"], each["status"]) for each in agreement] == [("PluginsAgree", "False")]
        await world.reaches("never", "Failed", reason="PreRunningDeadlineExceeded")


async def test_a_retry_lets_go_first(start: Any) -> None:
    scheduler = Scheduler()
    scheduler.room.set()
    script = JobScript(running=0, outcome="FAILED")
    async with start(speed=20, jobs=script, plugins={"gangs": scheduler}, scheduler="gangs") as world:
        await world.create("a", "HTTPMode", make.spec(backoffLimit=1))
        await world.reaches("a", "Failed", failed=2)
        assert await world.said("a", "BatchSchedulerCleanedUp")
