"""The submitter against dashboards that are well, slow, broken, gone, or replaced in the middle of a log."""

from __future__ import annotations

import asyncio
import json
import signal

import pytest

from kuberay_op.testing.fake_ray import FakeRay, Fault, JobScript
from kuberay_op_submitter import follow
from kuberay_op_submitter.dashboard import Dashboard

from .conftest import Start, until

RUN = ("--", "python", "job.py", "--steps", "3")


async def test_a_job_from_its_submission_to_its_end(fake_ray: FakeRay, start: Start) -> None:
    cluster = fake_ray.cluster("a")
    address = await fake_ray.open_port("a")
    submitter = await start(address, *RUN)
    await submitter.printed("SUCC -- Job 'job-1' submitted successfully")
    job = cluster.jobs.all["job-1"]
    assert job.request == {"entrypoint": "python job.py --steps 3", "submission_id": "job-1"}
    job.log += "one\n"
    await submitter.printed("one\n")
    job.log += "two\nthree\n"
    cluster.jobs.finish("job-1")
    ended = await submitter.ended()
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        "SUCC -- Job 'job-1' submitted successfully\none\ntwo\nthree\nSUCC -- Job 'job-1' ended: SUCCEEDED\n"
    )


async def test_all_that_can_be_said_about_a_job(fake_ray: FakeRay, start: Start) -> None:
    cluster = fake_ray.cluster("a")
    cluster.jobs.script = JobScript(running=0.0)
    runtime_env = {"env_vars": {"A": "b"}, "pip": ["x"]}
    submitter = await start(
        f"http://{await fake_ray.open_port('a')}",
        *("--runtime-env-json", json.dumps(runtime_env), '--metadata-json={"k": "v"}'),
        *("--entrypoint-num-cpus", "0.5", "--entrypoint-num-gpus=1"),
        *("--entrypoint-resources", '{"TPU": 2}', "python job.py"),
    )
    assert (await submitter.ended()).code == 0
    assert cluster.jobs.all["job-1"].request == {
        "entrypoint": "python job.py",
        "submission_id": "job-1",
        "runtime_env": runtime_env,
        "metadata": {"k": "v"},
        "entrypoint_num_cpus": 0.5,
        "entrypoint_num_gpus": 1.0,
        "entrypoint_resources": {"TPU": 2},
    }


@pytest.mark.parametrize("outcome", ["FAILED", "STOPPED"])
async def test_a_job_that_fails_is_followed_to_its_end_too(
    fake_ray: FakeRay, start: Start, outcome: str
) -> None:
    """Exit code 0, as with `ray job logs --follow`: whether the job failed is Ray's to tell the operator."""
    fake_ray.cluster("a").jobs.script = JobScript(running=0.0, outcome=outcome, log="Traceback\n")
    ended = await (await start(await fake_ray.open_port("a"), *RUN)).ended()
    assert ended.code == 0
    assert ended.out.endswith(f"Traceback\nINFO -- Job 'job-1' ended: {outcome}\n")


async def test_a_second_submitter_follows_the_same_job(fake_ray: FakeRay, start: Start) -> None:
    """The Pod was lost; its replacement re-attaches and submits nothing."""
    cluster = fake_ray.cluster("a")
    address = await fake_ray.open_port("a")
    first = await start(address, *RUN)
    await first.printed("submitted successfully")
    cluster.jobs.all["job-1"].log = "one\n"
    await first.printed("one")
    await first.stop()
    second = await start(address, *RUN)
    await second.printed("Job 'job-1' has already been submitted, tailing logs.")
    await second.printed("one\n")
    cluster.jobs.finish("job-1")
    assert (await second.ended()).code == 0
    assert len(cluster.jobs.all) == 1


async def test_a_dashboard_that_comes_late(fake_ray: FakeRay, start: Start) -> None:
    cluster = fake_ray.cluster("a")
    cluster.jobs.script = JobScript(running=0.0, log="hello\n")
    address = await fake_ray.open_port("a")
    await fake_ray.take_down("a")
    submitter = await start(address, *RUN)
    await asyncio.sleep(0.5)
    assert submitter.process.returncode is None
    await fake_ray.bring_up("a")
    ended = await submitter.ended()
    assert ended.code == 0
    assert "hello\n" in ended.out


async def test_a_dashboard_that_is_gone_in_mid_stream_and_comes_back(fake_ray: FakeRay, start: Start) -> None:
    """Nothing is printed twice, and nothing is lost."""
    cluster = fake_ray.cluster("a")
    address = await fake_ray.open_port("a")
    submitter = await start(address, *RUN)
    await submitter.printed("submitted successfully")
    job = cluster.jobs.all["job-1"]
    job.log += "one\ntwo\n"
    await submitter.printed("two\n")
    await fake_ray.take_down("a")
    job.log += "three\n"
    await asyncio.sleep(0.5)
    await fake_ray.bring_up("a")
    await submitter.printed("three\n")
    job.log += "four\n"
    cluster.jobs.finish("job-1")
    ended = await submitter.ended()
    assert ended.code == 0
    assert ended.out.splitlines()[1:-1] == ["one", "two", "three", "four"]
    assert cluster.calls["POST /api/jobs/"] == 1
    assert cluster.calls["GET /api/jobs/*/logs/tail"] == 2


async def test_a_head_that_was_replaced_and_kept_nothing(fake_ray: FakeRay, start: Start) -> None:
    cluster = fake_ray.cluster("a")
    submitter = await start(await fake_ray.open_port("a"), *RUN)
    await submitter.printed("submitted successfully")
    await until(lambda: cluster.calls["GET /api/jobs/*/logs/tail"] == 1)
    cluster.restart()
    ended = await submitter.ended()
    assert ended.code == 1
    assert ended.err == "error: the cluster does not know job 'job-1' any more: it has been restarted\n"


async def test_a_quiet_log_uses_up_no_patience(fake_ray: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job printed nothing for longer than the dashboard may be away; then the connection breaks."""
    monkeypatch.setattr(follow, "LONGEST", 0.2)
    cluster = fake_ray.cluster("a")
    dashboard = Dashboard.at(await fake_ray.open_port("a"))
    follower = follow.Follower(dashboard, "job-1", patience=0.6)
    body = {"entrypoint": "x", "submission_id": "job-1"}
    following = asyncio.create_task(asyncio.to_thread(follower.run, body))
    await until(lambda: cluster.calls["GET /api/jobs/*/logs/tail"] == 1)
    await asyncio.sleep(1)
    await fake_ray.take_down("a")
    await asyncio.sleep(0.1)
    await fake_ray.bring_up("a")
    await until(lambda: cluster.calls["GET /api/jobs/*/logs/tail"] == 2)
    cluster.jobs.finish("job-1")
    await following


@pytest.mark.parametrize("fault", ["slow:0.4", "status:503", "html", "nonsense", "truncated", "gone"])
async def test_trouble_that_passes(fake_ray: FakeRay, start: Start, fault: str) -> None:
    cluster = fake_ray.cluster("a")
    cluster.jobs.script = JobScript(running=0.0, log="hello\n")
    cluster.fault = Fault.parse(fault)
    submitter = await start(await fake_ray.open_port("a"), *RUN)
    await until(lambda: len(cluster.requests) >= 2)
    cluster.fault = None
    ended = await submitter.ended()
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("hello\n") == 1
    assert len(cluster.jobs.all) == 1


@pytest.mark.parametrize(
    ("fault", "says"),
    [("status:503", "(status 503)"), ("gone", "does not answer"), ("html", "is not one of a Ray dashboard")],
)
async def test_trouble_that_stays(fake_ray: FakeRay, start: Start, fault: str, says: str) -> None:
    fake_ray.cluster("a").fault = Fault.parse(fault)
    ended = await (await start(await fake_ray.open_port("a"), "--patience=0.5", *RUN)).ended()
    assert ended.code == 1
    assert says in ended.err
    assert "gave up after" in ended.err


async def test_nobody_listens(fake_ray: FakeRay, start: Start) -> None:
    address = await fake_ray.open_port("a")
    await fake_ray.take_down("a")
    ended = await (await start(address, "--patience=0.3", *RUN)).ended()
    assert ended.code == 1
    assert ended.err.startswith(f"error: http://{address} does not answer: ")


async def test_a_token(fake_ray: FakeRay, start: Start) -> None:
    cluster = fake_ray.cluster("a")
    cluster.token = "open-sesame"
    cluster.jobs.script = JobScript(running=0.0, log="hello\n")
    address = await fake_ray.open_port("a")
    ended = await (await start(address, *RUN, RAY_AUTH_TOKEN="open-sesame")).ended()
    assert ended.code == 0
    assert "hello\n" in ended.out
    assert {request.headers.get("x-ray-authorization") for request in cluster.requests} == {
        "Bearer open-sesame"
    }
    assert "open-sesame" not in ended.out + ended.err


@pytest.mark.parametrize(("token", "status"), [("", 401), ("wrong-word", 403)])
async def test_a_token_that_is_not_right(fake_ray: FakeRay, start: Start, token: str, status: int) -> None:
    fake_ray.cluster("a").token = "open-sesame"
    ended = await (await start(await fake_ray.open_port("a"), *RUN, RAY_AUTH_TOKEN=token)).ended()
    assert ended.code == 1
    assert ended.err == f"error: the dashboard refuses the token of RAY_AUTH_TOKEN (status {status})\n"


async def test_a_job_that_ray_refuses(fake_ray: FakeRay, start: Start) -> None:
    ended = await (await start(await fake_ray.open_port("a"), '--metadata-json={"k": 1}', *RUN)).ended()
    assert ended.code == 1
    assert "metadata values must be strings (status 400)" in ended.err


async def test_secrets_of_the_runtime_env_are_not_shown(fake_ray: FakeRay, start: Start) -> None:
    """Not even when Ray quotes them."""
    secret = json.dumps({"env_vars": {"KEY": "hunter22"}, "hunter22": 1})
    metadata = '{"k": 1}'
    cluster = fake_ray.cluster("a")
    cluster.fault = Fault.parse("status:500")
    address = await fake_ray.open_port("a")
    options = ("--runtime-env-json", secret, "--metadata-json", metadata, "--patience=0.2")
    ended = await (await start(address, *options, *RUN)).ended()
    assert ended.code == 1
    assert "hunter22" not in ended.out + ended.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
async def test_signals(fake_ray: FakeRay, start: Start, number: signal.Signals, code: int) -> None:
    cluster = fake_ray.cluster("a")
    submitter = await start(await fake_ray.open_port("a"), *RUN)
    await submitter.printed("submitted successfully")
    await until(lambda: cluster.calls["GET /api/jobs/*/logs/tail"] == 1)
    submitter.process.send_signal(number)
    ended = await submitter.ended()
    assert (ended.code, ended.err) == (code, f"stopped by {number.name}; the Ray job goes on\n")
    assert cluster.jobs.status("job-1") == "RUNNING"


async def test_a_long_log(fake_ray: FakeRay, start: Start) -> None:
    log = "".join(f"line {number} {'x' * 1000}\n" for number in range(2000))
    fake_ray.cluster("a").jobs.script = JobScript(running=0.0, log=log + "y" * 100_000 + "\n")
    ended = await (await start(await fake_ray.open_port("a"), *RUN)).ended()
    assert ended.code == 0
    assert log in ended.out
    assert "y" * 100_000 in ended.out


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "says"),
    [
        (RUN, {"RAY_DASHBOARD_ADDRESS": ""}, 1, "RAY_DASHBOARD_ADDRESS must be set"),
        (RUN, {"RAY_JOB_SUBMISSION_ID": ""}, 1, "RAY_JOB_SUBMISSION_ID must be set"),
        (RUN, {"RAY_DASHBOARD_ADDRESS": "http://"}, 1, "which is no address"),
        (RUN, {"RAY_DASHBOARD_ADDRESS": "a:b"}, 1, "which is no address"),
        ((), {}, 1, "there is no entrypoint"),
        (("--",), {}, 1, "there is no entrypoint"),
        (("--runtime-env-json", "{", *RUN), {}, 1, "--runtime-env-json is not JSON"),
        (("--metadata-json", "[]", *RUN), {}, 1, "must be a JSON object, such as {}, not list"),
        (("--entrypoint-num-cpus", "many", *RUN), {}, 2, "invalid float value: 'many'"),
        (("--nonsense", "x"), {}, 2, "unrecognized arguments"),
    ],
)  # fmt: skip
async def test_bad_input_is_told_in_a_sentence(
    start: Start, arguments: tuple[str, ...], environment: dict[str, str], code: int, says: str
) -> None:
    variables = {"RAY_DASHBOARD_ADDRESS": "127.0.0.1:9", **environment}
    ended = await (await start(variables.pop("RAY_DASHBOARD_ADDRESS"), *arguments, **variables)).ended()
    assert ended.code == code
    assert says in ended.err
    assert "Traceback" not in ended.err
