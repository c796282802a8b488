"""RayCronJobs on a real API server: one RayJob per time, never two, whatever happens to the operator."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from kuberay_op.build.cronjob import timestamp
from kuberay_op.controllers.resources import RAY_CRON_JOBS, RAY_JOBS
from kuberay_op.hooks import Merge, Scope, hookimpl
from kuberay_op.kube.errors import NotFound
from kuberay_op.testing import make
from kuberay_op.testing.operator import eventually
from tests.apiserver.raycronjob.conftest import Begin, Json, Stage

pytestmark = pytest.mark.apiserver


async def settled(stage: Stage, *, name: str = "a") -> None:
    """Wait until the operator has seen the present spec."""

    async def seen() -> bool:
        cron = await stage.cron(name)
        return bool(cron.get("status", {}).get("observedGeneration") == cron["metadata"]["generation"])

    await eventually(seen)


async def ran(stage: Stage, number: int, *, name: str = "a") -> None:
    """Wait until the status says that the month's run was made."""

    async def there() -> bool:
        status = await stage.status(name)
        return bool(status.get("lastScheduleTime") == timestamp(stage.month(number)))

    await eventually(there)


async def test_one_job_per_time(begin: Begin) -> None:
    async with begin() as stage, stage.operator():
        made = await stage.create()
        await settled(stage)
        assert await stage.names() == []
        for number in (1, 2):
            stage.clock.set(stage.month(number))
            await ran(stage, number)
        assert await stage.names() == [stage.name(1), stage.name(2)]

        first, second = await stage.jobs()
        assert first["spec"] == second["spec"] == made["spec"]["jobTemplate"]
        assert first["metadata"]["annotations"] == {
            "ray.io/cronjob-scheduled-timestamp": timestamp(stage.month(1))
        }
        [owner] = first["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (made["metadata"]["uid"], True)

        status = await stage.status()
        assert [job["name"] for job in status["active"]] == [stage.name(1), stage.name(2)]
        assert "lastSuccessfulTime" not in status
        assert len(await eventually(lambda: stage.said("CreatedRayJob"))) >= 1

        await stage.finish(stage.name(1))

        async def told() -> bool:
            now = await stage.status()
            return "lastSuccessfulTime" in now and [job["name"] for job in now["active"]] == [stage.name(2)]

        await eventually(told)


async def test_a_run_that_was_made_before_a_crash_is_not_made_again(begin: Begin) -> None:
    """The operator ended after the RayJob was made and before the status said so."""
    async with begin() as stage:
        async with stage.operator():
            cron = await stage.create()
            await settled(stage)
            stage.clock.set(stage.month(1))
            await ran(stage, 1)
        [job] = await stage.jobs()
        gone = {"status": {"lastScheduleTime": None}}
        await stage.client.patch(
            RAY_CRON_JOBS, "a", stage.namespace, gone, subresource="status", reason="a test"
        )
        # Edited meanwhile: the job that is there must stay as it is.
        await stage.edit({"spec": {"jobTemplate": {"entrypoint": "another"}}})
        async with stage.operator():
            await ran(stage, 1)
        [again] = await stage.jobs()
        assert again["metadata"]["uid"] == job["metadata"]["uid"]
        assert again["spec"] == cron["spec"]["jobTemplate"]


async def test_an_absence_ends_with_one_run(begin: Begin) -> None:
    async with begin() as stage:
        async with stage.operator():
            await stage.create()
            await settled(stage)
        stage.clock.set(stage.month(101))
        async with stage.operator():
            await ran(stage, 101)
            assert await stage.names() == [stage.name(101)]
            [note] = await eventually(lambda: stage.said("MissSchedule"))
            assert "Missed 100 or more earlier runs" in note


async def test_a_clock_that_is_set_back_runs_nothing_twice(begin: Begin) -> None:
    async with begin() as stage, stage.operator():
        await stage.create()
        await settled(stage)
        stage.clock.set(stage.month(2))
        await ran(stage, 2)
        await stage.client.delete(RAY_JOBS, stage.name(2), stage.namespace, reason="a test")
        stage.clock.set(stage.month(1))
        await stage.edit({"metadata": {"labels": {"a": "b"}}})
        stage.clock.set(stage.month(3))
        await ran(stage, 3)
        assert await stage.names() == [stage.name(3)]


async def test_a_job_of_somebody_else_is_left_alone(begin: Begin) -> None:
    async with begin() as stage, stage.operator():
        await stage.create()
        foreign = make.rayjob(stage.name(1), make.namespace(stage.namespace))
        foreign["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"
        before = await stage.client.create(RAY_JOBS, foreign, reason="a test")
        stage.clock.set(stage.month(1))
        [note, *_] = await eventually(lambda: stage.said("FailedToCreateRayJob"))
        assert "is not ours" in note
        assert "lastScheduleTime" not in await stage.status()
        stage.clock.set(stage.month(2))
        await ran(stage, 2)
        after = await stage.client.get(RAY_JOBS, stage.name(1), stage.namespace)
        assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_suspended_and_resumed(begin: Begin) -> None:
    async with begin() as stage, stage.operator():
        await stage.create(suspend=True)
        await settled(stage)
        stage.clock.set(stage.month(3))
        await stage.edit({"metadata": {"labels": {"pass": "again"}}})
        assert len(await eventually(lambda: stage.said("SuspendedRayCronJob"))) == 1
        assert await stage.names() == []
        await stage.edit({"spec": {"suspend": False}})
        await ran(stage, 3)
        assert await stage.names() == [stage.name(3)]


async def test_forbid_waits_for_the_job_before(begin: Begin) -> None:
    async with begin() as stage, stage.operator():
        await stage.create(concurrencyPolicy="Forbid")
        await settled(stage)
        stage.clock.set(stage.month(1))
        await ran(stage, 1)
        stage.clock.set(stage.month(2))
        [note] = await eventually(lambda: stage.said("JobAlreadyActive"))
        assert stage.name(1) in note
        assert await stage.names() == [stage.name(1)]
        await stage.finish(stage.name(1), "Failed", "FAILED")
        await ran(stage, 2)
        assert await stage.names() == [stage.name(1), stage.name(2)]


async def test_replace_takes_the_place_of_the_job_before(begin: Begin) -> None:
    async with begin() as stage, stage.operator():
        await stage.create(concurrencyPolicy="Replace")
        await settled(stage)
        for number in (1, 2):
            stage.clock.set(stage.month(number))
            await ran(stage, number)

        async def replaced() -> bool:
            return await stage.names() == [stage.name(2)] and len((await stage.status())["active"]) == 1

        await eventually(replaced)


async def test_history_is_kept_short(begin: Begin) -> None:
    async with begin() as stage, stage.operator():
        await stage.create(successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
        await settled(stage)
        for number, (state, outcome) in enumerate(
            [("Complete", "SUCCEEDED"), ("Failed", "FAILED"), ("Complete", "SUCCEEDED")], 1
        ):
            stage.clock.set(stage.month(number))
            await ran(stage, number)
            await stage.finish(stage.name(number), state, outcome)

        async def short() -> bool:
            return await stage.names() == [stage.name(3)] and "active" not in await stage.status()

        await eventually(short)


async def test_too_late_is_skipped(begin: Begin) -> None:
    async with begin() as stage:
        async with stage.operator():
            await stage.create(startingDeadlineSeconds=3600)
            await settled(stage)
        stage.clock.set(stage.month(1).replace(hour=2))
        async with stage.operator():
            [note] = await eventually(lambda: stage.said("MissSchedule"))
            assert "startingDeadlineSeconds (3600)" in note
            stage.clock.set(stage.month(2))
            await ran(stage, 2)
        assert await stage.names() == [stage.name(2)]


async def test_a_schedule_that_never_comes_is_refused_and_can_be_mended(begin: Begin) -> None:
    async with begin() as stage, stage.operator():
        await stage.create()
        await settled(stage)
        await stage.edit({"spec": {"schedule": "0 0 30 2 *"}})
        [note] = await eventually(lambda: stage.said("InvalidRayCronJobSpec"))
        assert "never matches" in note
        stage.clock.set(stage.month(1))
        await stage.edit({"metadata": {"labels": {"pass": "again"}}})
        await stage.edit({"spec": {"schedule": "0 0 1 * *"}})
        await ran(stage, 1)
        assert await stage.names() == [stage.name(1)]


async def test_deletion(begin: Begin) -> None:
    """Nothing is made for an object that is going, and what it has made goes with it."""
    async with begin() as stage, stage.operator():
        await stage.create()
        await settled(stage)
        stage.clock.set(stage.month(1))
        await ran(stage, 1)
        await stage.edit({"metadata": {"finalizers": ["example.com/hold"]}})
        await stage.client.delete(RAY_CRON_JOBS, "a", stage.namespace, reason="a test")
        stage.clock.set(stage.month(2))
        await stage.create("b")
        stage.clock.set(stage.month(3))
        await ran(stage, 3, name="b")  # another one is served meanwhile
        assert await stage.names() == [stage.name(1)]
        await stage.edit({"metadata": {"finalizers": None}})

        async def gone() -> bool:
            try:
                await stage.cron()
            except NotFound:
                return await stage.names() == []
            return False

        await eventually(gone)


async def test_plugins_have_their_say(begin: Begin) -> None:
    class Labels:
        @hookimpl
        def kuberay_patch_object(self, obj: Json) -> Any:
            return Merge({"metadata": {"labels": {"team": "ml"}}}) if obj["kind"] == "RayJob" else None

    class Scheduler:
        """A RayCronJob has no Pods, so no gang: this must not be asked."""

        @hookimpl
        def kuberay_gang_objects(self, scope: Scope) -> Any:
            assert scope.kind != "RayCronJob"

    plugins = {"labels": Labels(), "scheduler": Scheduler()}
    async with begin() as stage, stage.operator(plugins=plugins, scheduler="scheduler"):
        await stage.create()
        await settled(stage)
        stage.clock.set(stage.month(1))
        await ran(stage, 1)
        [job] = await stage.jobs()
        assert job["metadata"]["labels"] == {"ray.io/cronjob-name": "a", "team": "ml"}


@pytest.mark.loop_guard(milliseconds=500)  # it shakes hands with the server seven times over
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
async def test_an_operator_that_comes_and_goes(begin: Begin, seed: int) -> None:
    """It may end at any moment: every time is run once, or passed over by a later one; none is run twice."""
    rng = Random(seed)  # noqa: S311 (seeded on purpose)
    async with begin() as stage:
        await stage.create()
        uids: dict[str, str] = {}
        for number in range(1, 7):
            async with stage.operator():
                if rng.random() < 0.5:
                    await asyncio.sleep(rng.random() / 3)
                stage.clock.set(stage.month(number))
                if rng.random() < 0.7:
                    await asyncio.sleep(rng.random() / 3)
            for job in await stage.jobs():
                name = job["metadata"]["name"]
                assert uids.setdefault(name, job["metadata"]["uid"]) == job["metadata"]["uid"]
        async with stage.operator():
            await ran(stage, 6)
        assert set(await stage.names()) <= {stage.name(number) for number in range(1, 7)}
        assert stage.name(6) in await stage.names()
