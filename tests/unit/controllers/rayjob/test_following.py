"""Asking Ray about a job: when it is submitted, when it is stopped, and when nothing is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any, cast

import pytest

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.rayjob import RayJob
from kuberay_op.clock import SystemClock
from kuberay_op.controllers.rayjob.following import Asking, Following, question
from kuberay_op.errors import Retry
from kuberay_op.kube.client import Client
from kuberay_op.kube.resource import Key
from kuberay_op.ray.client import Connector
from kuberay_op.ray.dashboard import Dashboard
from kuberay_op.ray.errors import JobNotFound, RayUnavailable
from kuberay_op.ray.limits import Gates
from kuberay_op.ray.urls import direct
from kuberay_op.testing import make
from kuberay_op.testing.fake_ray import FakeRay, Fault, JobScript
from tests.unit.controllers.rayjob.situations import DASHBOARD, NOW, at, cluster, job

KEY = Key("default", "j")
#: How the fake knows the cluster of these jobs, by its address.
FAKE = "default/c-head-svc"


def connector(ray: FakeRay) -> Connector:
    """The way to the fake."""
    clock = SystemClock()
    gates = Gates(clock=clock, rng=Random(1))  # noqa: S311 (seeded on purpose)
    return Connector(direct=ray.transport(), proxied=ray.transport(), gates=gates, clock=clock)


def asking(ray: FakeRay, of: RayJob) -> Asking:
    """The questions about a job."""
    return Asking(Dashboard(connector(ray).client("default/c", direct(DASHBOARD))), of)


# --- submitting


async def test_a_job_that_ray_never_had_is_submitted_once() -> None:
    ray = FakeRay(auto=True)
    first = asking(ray, job("Running"))
    assert (await first.info()).status == "PENDING", "Ray has taken it"
    assert (await first.info()).status == "RUNNING"
    other_operator = asking(ray, job("Running"))
    assert (await other_operator.info()).status == "RUNNING"
    assert ray.cluster(FAKE).calls["POST /api/jobs/"] == 1


async def test_two_that_submit_at_the_same_time_make_one_job() -> None:
    ray = FakeRay(auto=True, fault=Fault.parse("slow:0.05"))
    await asyncio.gather(*(asking(ray, job("Running")).info() for _ in range(5)))
    fake = ray.cluster(FAKE)
    assert fake.calls["POST /api/jobs/"] == 5, "all of them found no job and submitted"
    assert list(fake.jobs.all) == ["j-abcde"]


@pytest.mark.parametrize("mode", ["K8sJobMode", "SidecarMode", "InteractiveMode"])
async def test_in_other_modes_the_operator_never_submits(mode: str) -> None:
    ray = FakeRay(auto=True)
    with pytest.raises(JobNotFound):
        await asking(ray, job("Running", mode=mode)).info()
    assert ray.cluster(FAKE).calls["POST /api/jobs/"] == 0


async def test_a_job_that_ray_has_had_is_not_submitted_again() -> None:
    ray = FakeRay(auto=True)
    for known in (job("Running", status={"jobStatus": "RUNNING"}), job("Running")):
        one = asking(ray, known)
        if not known.status.job_status:
            await one.info()
        ray.cluster(FAKE).restart()
        with pytest.raises(JobNotFound):
            await one.info()
        assert ray.cluster(FAKE).jobs.all == {}


@pytest.mark.parametrize("fault", ["status:503", "gone", "html", "nonsense", "truncated", "status:404"])
async def test_no_answer_is_no_reason_to_submit(fault: str) -> None:
    ray = FakeRay(auto=True, fault=Fault.parse(fault))
    with pytest.raises(RayUnavailable):
        await asking(ray, job("Running")).info()
    assert ray.cluster(FAKE).calls["POST /api/jobs/"] == 0


# --- stopping


async def test_a_job_is_stopped() -> None:
    ray = FakeRay(auto=True)
    one = asking(ray, job("Running"))
    await one.stop()  # there is none
    await one.info()
    await one.stop()
    assert ray.cluster(FAKE).jobs.status("j-abcde") == "STOPPED"
    await one.stop()  # it has ended


async def test_a_job_that_cannot_be_stopped_yet_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing_to_stop(self: Dashboard, submission_id: str) -> bool:
        return False

    ray = FakeRay(auto=True, jobs=JobScript(pending=1000))
    one = asking(ray, job("Running"))
    await one.info()
    monkeypatch.setattr(Dashboard, "stop", nothing_to_stop)
    with pytest.raises(Retry, match="yet"):
        await one.stop()


# --- when


@pytest.mark.parametrize(
    ("of", "found", "expected"),
    [
        (job("Initializing"), cluster(), ""),
        (job("Running"), cluster(), "info"),
        (job("Running"), None, ""),
        (job("Running", status={"jobId": None}), cluster(), ""),
        (job("Complete", status={"jobStatus": "SUCCEEDED"}), cluster(), ""),
        (job("Failed", status={"jobStatus": "RUNNING", "endTime": at(10)}), cluster(), "stop"),
        (job("Failed", status={"jobStatus": "RUNNING", "endTime": at(301)}), cluster(), ""),
        (job("Failed", status={"jobStatus": "FAILED", "endTime": at(10)}), cluster(), ""),
        (job("Failed", status={"jobStatus": "RUNNING", "endTime": at(10)}), None, ""),
        (job("Running", make.deleted()), cluster(), "stop"),
        (job("Running", make.deleted(), status={"jobStatus": "STOPPED"}), cluster(), ""),
        (job("Running", make.deleted()), cluster("ready", make.deleted()), ""),
        (job("Suspended"), None, ""),
    ],
)
def test_what_there_is_to_ask(of: RayJob, found: RayCluster | None, expected: str) -> None:
    assert question(of, found, NOW) == expected


@asynccontextmanager
async def following(ray: FakeRay, *, proxied: bool = False) -> AsyncIterator[tuple[Following, list[Key]]]:
    """What follows jobs, and whom it has woken."""
    woken: list[Key] = []
    rng = Random(1)  # noqa: S311 (seeded on purpose)
    found = Following(
        connector(ray), cast(Client, None), wake=woken.append, clock=SystemClock(), rng=rng, proxied=proxied
    )
    yield found, woken
    await found.close()


async def until(question: Any) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(10):
        while not question():  # noqa: ASYNC110 (the answer is in the fake)
            await asyncio.sleep(0.01)


async def test_news_wakes_the_job_and_the_last_answer_stays() -> None:
    ray = FakeRay(auto=True)
    async with following(ray) as (follow, woken):
        assert follow.look(KEY, job("Running"), cluster()).job is None
        await until(lambda: woken == [KEY])
        seen = follow.look(KEY, job("Running"), cluster()).job
        assert seen is not None
        assert seen.now is not None
        assert seen.now.status == "PENDING"
        ray.cluster(FAKE).jobs.finish("j-abcde")
        follow.hurry(KEY)
        await until(lambda: woken == [KEY, KEY])
        for _ in range(2):
            last = follow.look(KEY, job("Running"), cluster()).job
            assert last is not None
            assert last.now is not None
            assert last.now.status == "SUCCEEDED"
        assert follow.look(KEY, job("Complete", status={"jobStatus": "SUCCEEDED"}), cluster()).job is None


async def test_when_somebody_else_leads_nothing_is_asked() -> None:
    ray = FakeRay(auto=True)
    async with following(ray) as (follow, woken):
        follow.look(KEY, job("Running"), cluster())
        await until(lambda: woken)
        follow.clear()
        asked = sum(ray.cluster(FAKE).calls.values())
        await asyncio.sleep(1.3)  # longer than until the next question
        assert sum(ray.cluster(FAKE).calls.values()) == asked


async def test_a_job_that_is_deleted_is_stopped() -> None:
    ray = FakeRay(auto=True)
    async with following(ray) as (follow, woken):
        follow.look(KEY, job("Running"), cluster())
        await until(lambda: woken)
        going = job("Running", make.deleted())
        assert not follow.look(KEY, going, cluster()).stopped
        await until(lambda: follow.look(KEY, going, cluster()).stopped)
        assert ray.cluster(FAKE).jobs.status("j-abcde") == "STOPPED"


async def test_through_the_api_server_the_service_of_the_cluster_is_asked() -> None:
    ray = FakeRay(auto=True)
    async with following(ray, proxied=True) as (follow, woken):
        follow.look(KEY, job("Running", status={"dashboardURL": "nowhere:1"}), cluster())
        await until(lambda: woken)
    assert list(ray.clusters) == [FAKE]
    (request, *_) = ray.cluster(FAKE).requests
    assert request.path == "/api/jobs/j-abcde"
