"""The job API, against the fake."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuberay_op.ray import errors
from kuberay_op.ray.answers import Call
from kuberay_op.ray.client import RayClient
from kuberay_op.ray.dashboard import Dashboard, JobInfo, Submission, Version, job_info
from kuberay_op.testing.clock import FakeClock
from kuberay_op.testing.fake_ray import FakeRay, JobScript

MakeClient = Callable[..., RayClient]
JOB = Submission("python main.py", "job-1")


@pytest.fixture
def dashboard(client: MakeClient) -> Dashboard:
    return Dashboard(client())


async def test_a_job_goes_its_way(dashboard: Dashboard, ray: FakeRay, clock: FakeClock) -> None:
    ray.cluster("ns/a").jobs.script = JobScript(pending=2, running=5, log="hello\n")

    await dashboard.submit(JOB)
    statuses = []
    for seconds in (0, 2, 5):
        await clock.advance(seconds)
        info = await dashboard.info("job-1")
        statuses.append((info.status, info.terminal))

    assert statuses == [("PENDING", False), ("RUNNING", False), ("SUCCEEDED", True)]
    assert info.start == datetime(2030, 1, 1, tzinfo=UTC)
    assert info.end == info.start + timedelta(seconds=7)
    assert info.exit_code == 0
    assert await dashboard.logs("job-1") == "hello\n"
    assert [job.submission_id for job in await dashboard.jobs()] == ["job-1"]


async def test_what_is_sent(dashboard: Dashboard, ray: FakeRay) -> None:
    await dashboard.submit(JOB)
    await dashboard.submit(
        Submission(
            "echo $X",
            "job-2",
            runtime_env={"pip": ["x"]},
            metadata={"team": "a"},
            num_cpus=1.5,
            num_gpus=1,
            resources={"tpu": 4},
        )
    )

    jobs = ray.cluster("ns/a").jobs.all
    assert jobs["job-1"].request == {"entrypoint": "python main.py", "submission_id": "job-1"}
    assert jobs["job-2"].request == {
        "entrypoint": "echo $X",
        "submission_id": "job-2",
        "runtime_env": {"pip": ["x"]},
        "metadata": {"team": "a"},
        "entrypoint_num_cpus": 1.5,
        "entrypoint_num_gpus": 1,
        "entrypoint_resources": {"tpu": 4},
    }


async def test_a_second_submission_of_an_id_is_noticed(dashboard: Dashboard) -> None:
    await dashboard.submit(JOB)

    with pytest.raises(
        errors.JobExists, match="submit job job-1: 500: ValueError: Job with submission_id job-1"
    ):
        await dashboard.submit(JOB)


async def test_an_unknown_job_is_not_found_by_any_call(dashboard: Dashboard) -> None:
    for ask in (dashboard.info, dashboard.stop, dashboard.delete, dashboard.logs):
        with pytest.raises(errors.JobNotFound, match="job-1: 404: Job job-1 does not exist"):
            await ask("job-1")


async def test_a_refused_job_says_why(dashboard: Dashboard) -> None:
    bad = Submission("x", "job-1", metadata={"n": 1})  # type: ignore[dict-item]  # what a user may write

    with pytest.raises(
        errors.BadRequest, match="submit job job-1: 400: TypeError: metadata values must be strings"
    ):
        await dashboard.submit(bad)


async def test_stop_and_delete(dashboard: Dashboard) -> None:
    await dashboard.submit(JOB)

    with pytest.raises(errors.JobActive):
        await dashboard.delete("job-1")
    assert await dashboard.stop("job-1")
    assert not await dashboard.stop("job-1")
    assert (await dashboard.info("job-1")).status == "STOPPED"
    await dashboard.delete("job-1")
    with pytest.raises(errors.JobNotFound):
        await dashboard.info("job-1")


async def test_ids_may_be_anything(dashboard: Dashboard) -> None:
    odd = "a/b?c=d#e %2F ü"
    await dashboard.submit(Submission("x", odd))

    assert (await dashboard.info(odd)).submission_id == odd
    assert await dashboard.stop(odd)


async def test_version_and_health(dashboard: Dashboard) -> None:
    assert await dashboard.version() == Version(ray="2.52.0", api="4")
    assert await dashboard.gcs_healthy()


async def test_logs_have_a_limit(dashboard: Dashboard, ray: FakeRay) -> None:
    ray.cluster("ns/a").jobs.script = JobScript(log="x" * 2000)
    await dashboard.submit(JOB)

    with pytest.raises(errors.TooLarge, match="more than 1000 bytes"):
        await dashboard.logs("job-1", max_bytes=1000)


CALL = Call("info", "read job a", "GET", "/api/jobs/a", job_id="a")


def test_job_info_takes_nulls_and_ignores_what_it_does_not_know() -> None:
    value = {"status": "NEW_STATE", "message": None, "end_time": None, "metadata": None, "novelty": [1]}

    info = job_info(CALL, value)

    assert info == JobInfo(status="NEW_STATE")
    assert not info.terminal


@pytest.mark.parametrize("time", [0, -5, 2**64 - 1, 1e300])
def test_times_that_no_calendar_has_are_none(time: float) -> None:
    assert job_info(CALL, {"status": "RUNNING", "end_time": time}).end is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"status": None},
        {"status": ""},
        {"status": 3},
        {"status": "RUNNING", "message": {}},
        {"status": "RUNNING", "start_time": "now"},
        {"status": "RUNNING", "metadata": "x"},
    ],
)
def test_a_job_of_other_types_is_garbled(value: Any) -> None:
    with pytest.raises(errors.Garbled, match="read job a: "):
        job_info(CALL, value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
NAMES = st.sampled_from(
    ["status", "message", "start_time", "end_time", "driver_exit_code", "runtime_env", "x"]
)


@given(st.dictionaries(NAMES, JSON) | JSON)
def test_any_json_is_a_job_or_garbled(value: Any) -> None:
    try:
        info = job_info(CALL, value)
    except errors.Garbled:
        return
    assert info.status


def test_environment_variables_stay_out_of_sight() -> None:
    secret = {"env_vars": {"TOKEN": "hunter22"}}

    assert "hunter22" not in repr(Submission("x", "a", runtime_env=secret))
    assert "hunter22" not in repr(JobInfo("RUNNING", runtime_env=secret))
