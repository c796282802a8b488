"""The fake Ray: how clusters are found, what it answers where Ray would, and its command."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest
import pytest_asyncio
from click.testing import CliRunner

from kuberay_op.clock import SystemClock
from kuberay_op.testing.clock import FakeClock
from kuberay_op.testing.fake_ray import AppScript, FakeCluster, FakeRay, Fault, JobScript
from kuberay_op.testing.fake_ray.__main__ import main
from kuberay_op.testing.fake_ray.http import Request


def ask(cluster: FakeCluster, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    content = b"" if body is None else orjson.dumps(body)
    reply = cluster.answer(Request(method, path, headers, content))
    is_json = reply.content_type.startswith("application/json")
    return reply.status, orjson.loads(reply.body) if is_json else reply.body.decode()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def cluster(clock: FakeClock) -> FakeCluster:
    return FakeCluster("a", clock=clock)


@pytest_asyncio.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as client:
        yield client


# --- how a cluster is found


@pytest.mark.parametrize(
    ("path", "host", "name", "rest"),
    [
        ("/api/jobs/", "127.0.0.1", "default", "/api/jobs/"),
        ("/clusters/a/api/jobs/", "127.0.0.1", "a", "/api/jobs/"),
        ("/clusters/ns/a-head-svc/-/healthz", "127.0.0.1", "ns/a-head-svc", "/-/healthz"),
        ("/api/version", "a-head-svc.ns.svc.cluster.local", "ns/a-head-svc", "/api/version"),
        ("/api/version", "a-head-svc.ns.svc", "ns/a-head-svc", "/api/version"),
        ("/api/v1/namespaces/ns/services/s:dashboard/proxy/api/jobs/x", "k8s", "ns/s", "/api/jobs/x"),
        ("/api/v1/namespaces/ns/pods/p:8000/proxy/-/healthz", "k8s", "ns/p", "/-/healthz"),
        ("/-/healthz", "10.0.0.7", "ns/known", "/-/healthz"),
    ],
)
def test_a_request_finds_its_cluster(path: str, host: str, name: str, rest: str) -> None:
    fake = FakeRay(auto=True)
    fake.cluster("ns/known", hosts=("10.0.0.7",))

    cluster, within = fake.find(path, host)

    assert cluster is not None
    assert (cluster.name, within) == (name, rest)


def test_unknown_clusters_are_made_only_on_demand() -> None:
    fake = FakeRay()

    assert fake.find("/clusters/a/api/jobs/", "127.0.0.1") == (None, "/api/jobs/")
    assert not fake.clusters


async def test_one_port_serves_many_clusters(fake_ray: FakeRay, http: httpx.AsyncClient) -> None:
    for number in range(200):
        fake_ray.cluster(f"c{number}").jobs.script = JobScript(log=f"log {number}")
        url = f"http://{fake_ray.address(f'c{number}')}/api/jobs/"
        assert (await http.post(url, json={"entrypoint": "x", "submission_id": "j"})).status_code == 200

    assert (await http.get(f"http://{fake_ray.address('c7')}/api/jobs/j/logs")).json() == {"logs": "log 7"}
    assert (await http.get(f"http://{fake_ray.address('unknown')}/api/jobs/")).status_code == 404


# --- where Ray's answers are peculiar


def test_jobs_follow_their_script(cluster: FakeCluster, clock: FakeClock) -> None:
    cluster.jobs.scripts["bad"] = JobScript(running=0, outcome="FAILED", message="exit code 3")

    assert ask(cluster, "POST", "/api/jobs/", {"entrypoint": "x"})[1]["submission_id"].startswith(
        "raysubmit_"
    )
    ask(cluster, "POST", "/api/jobs/", {"entrypoint": "x", "submission_id": "good"})
    ask(cluster, "POST", "/api/jobs/", {"entrypoint": "x", "submission_id": "bad"})

    assert [job["status"] for job in ask(cluster, "GET", "/api/jobs/")[1]] == ["RUNNING", "RUNNING", "FAILED"]
    assert ask(cluster, "GET", "/api/jobs/bad")[1]["message"] == "exit code 3"
    cluster.jobs.finish("good")
    assert cluster.jobs.status("good") == "SUCCEEDED"


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ([], "a job must be an object"),
        ({}, "entrypoint must be a string"),
        ({"entrypoint": "x", "novelty": 1}, "unexpected argument 'novelty'"),
        ({"entrypoint": "x", "submission_id": 1}, "submission_id must be a str"),
        ({"entrypoint": "x", "runtime_env": []}, "runtime_env must be a dict"),
        ({"entrypoint": "x", "metadata": {"a": 1}}, "metadata values must be strings"),
    ],
)
def test_bad_jobs_are_refused(cluster: FakeCluster, body: Any, complaint: str) -> None:
    status, text = ask(cluster, "POST", "/api/jobs/", body)

    assert status == 400
    assert text.startswith("Traceback (most recent call last)")
    assert complaint in text


def test_a_duplicate_is_a_400_inside_a_500(cluster: FakeCluster) -> None:
    for _ in range(2):
        status, text = ask(cluster, "POST", "/api/jobs/", {"entrypoint": "x", "submission_id": "a"})

    assert status == 500
    assert "Request failed with status code 400" in text
    assert "Job with submission_id a already exists. Please use a different submission_id." in text


def test_unknown_jobs_and_unknown_paths_are_different_404s(cluster: FakeCluster) -> None:
    assert ask(cluster, "GET", "/api/jobs/x") == (404, "Job x does not exist")
    assert ask(cluster, "GET", "/api/novelty") == (404, "404: Not Found")
    assert ask(cluster, "GET", "/api/jobs") == (404, "404: Not Found")
    assert ask(cluster, "PATCH", "/api/jobs/x") == (404, "404: Not Found")


def test_a_body_that_is_no_json_is_a_500(cluster: FakeCluster) -> None:
    assert cluster.answer(Request("POST", "/api/jobs/", {}, b"{")).status == 500


def test_a_restart_loses_everything(cluster: FakeCluster) -> None:
    ask(cluster, "POST", "/api/jobs/", {"entrypoint": "x", "submission_id": "a"})
    ask(cluster, "PUT", "/api/serve/applications/", {"applications": [{"name": "a", "import_path": "a:b"}]})

    cluster.restart()

    assert ask(cluster, "GET", "/api/jobs/")[1] == []
    assert ask(cluster, "GET", "/api/serve/applications/")[1]["applications"] == {}


def test_applications_follow_their_script(cluster: FakeCluster) -> None:
    cluster.serve.script = AppScript(deploying=None)
    cluster.serve.scripts["b"] = AppScript(outcome="DEPLOY_FAILED", message="no such module")
    apps = [{"name": name, "import_path": "a:b"} for name in "ab"]
    ask(cluster, "PUT", "/api/serve/applications/", {"applications": apps})

    seen = ask(cluster, "GET", "/api/serve/applications/?api_type=declarative")[1]["applications"]

    assert {name: app["status"] for name, app in seen.items()} == {"a": "DEPLOYING", "b": "DEPLOY_FAILED"}
    assert seen["b"]["deployments"]["Ingress"]["status"] == "UNHEALTHY"
    cluster.serve.force("a", "RUNNING")
    assert ask(cluster, "GET", "/api/serve/applications/")[1]["applications"]["a"]["status"] == "RUNNING"


def test_a_new_capacity_deploys_anew(cluster: FakeCluster) -> None:
    config = {"applications": [{"name": "a", "import_path": "a:b"}]}
    ask(cluster, "PUT", "/api/serve/applications/", config)
    cluster.serve.script = AppScript(deploying=None)

    ask(cluster, "PUT", "/api/serve/applications/", config | {"target_capacity": 50})

    details = ask(cluster, "GET", "/api/serve/applications/")[1]
    assert details["target_capacity"] == 50
    assert details["applications"]["a"]["status"] == "DEPLOYING"


@pytest.mark.parametrize("header", ["authorization", "x-ray-authorization"])
def test_a_token_opens_all_but_health(cluster: FakeCluster, header: str) -> None:
    cluster.token = "t"

    assert ask(cluster, "GET", "/api/jobs/")[0] == 401
    assert ask(cluster, "GET", "/api/jobs/", **{header: "Bearer wrong"})[0] == 403
    assert ask(cluster, "GET", "/api/jobs/", **{header: "Bearer t"})[0] == 200
    assert ask(cluster, "GET", "/api/gcs_healthz") == (200, "success")
    assert ask(cluster, "GET", "/-/healthz") == (200, "success")


def test_requests_are_counted_and_remembered(cluster: FakeCluster) -> None:
    ask(cluster, "GET", "/api/jobs/a")
    ask(cluster, "GET", "/api/jobs/b")
    ask(cluster, "POST", "/api/jobs/b/stop")

    assert cluster.calls == {"GET /api/jobs/*": 2, "POST /api/jobs/*/stop": 1}


# --- faults


@pytest.mark.parametrize("text", ["slow", "status", "hang:1", "nonsuch", "", "slow:x", "slow:nan"])
def test_a_misspelt_fault_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"unknown fault .*; choose slow:SECONDS"):
        Fault.parse(text)


async def test_a_fault_may_concern_some_paths_only(cluster: FakeCluster) -> None:
    cluster.fault = Fault.parse("status:503", only="/api/serve/")

    assert (await cluster.handle(Request("GET", "/api/jobs/"))).status == 200
    assert (await cluster.handle(Request("GET", "/api/serve/applications/"))).status == 503


async def test_hanging_requests_end_with_their_clients(fake_ray: FakeRay, http: httpx.AsyncClient) -> None:
    cluster = fake_ray.cluster("a")
    cluster.fault = Fault.parse("hang")
    with pytest.raises(httpx.TimeoutException):
        await http.get(f"http://{fake_ray.address('a')}/api/jobs/", timeout=0.1)

    for _ in range(100):
        if cluster._busy == 0:
            break
        await asyncio.sleep(0.01)
    assert cluster._busy == 0


async def test_closing_does_not_wait_for_hanging_requests(http: httpx.AsyncClient) -> None:
    fake = FakeRay()
    await fake.start()
    fake.cluster().fault = Fault.parse("hang")
    asking = asyncio.create_task(http.get(f"http://127.0.0.1:{fake.port}/api/jobs/", timeout=30))
    await asyncio.sleep(0.1)

    await fake.close()

    with pytest.raises(httpx.RequestError):
        await asking


async def test_httpx_reaches_it_without_sockets() -> None:
    fake = FakeRay(auto=True)
    async with httpx.AsyncClient(transport=fake.httpx_transport()) as client:
        url = "http://a-head-svc.ns.svc:8265/api/jobs/"
        assert (await client.post(url, json={"entrypoint": "x", "submission_id": "j"})).status_code == 200
        assert (await client.get(f"{url}j")).json()["status"] == "RUNNING"

        fake.cluster("ns/a-head-svc").fault = Fault.parse("gone")
        with pytest.raises(httpx.ConnectError):
            await client.get(url)
        fake.cluster("ns/a-head-svc").fault = Fault.parse("truncated")
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get(url)


async def test_without_a_server_there_is_no_port() -> None:
    with pytest.raises(RuntimeError, match="not started"):
        await FakeRay().open_port("a")


# --- asked and told while it runs


async def test_a_running_fake_is_changed_through_its_control_path(
    fake_ray: FakeRay, http: httpx.AsyncClient
) -> None:
    url = f"http://127.0.0.1:{fake_ray.port}/_fake"
    change = {
        "cluster": "a",
        "fault": "slow:2",
        "jobs": {"running": 1},
        "apps": {"deploying": 3},
        "token": "t",
    }

    told = (await http.post(url, json=change)).json()

    assert told == (await http.get(url)).json()
    assert told["a"]["fault"] == "slow"
    cluster = fake_ray.cluster("a")
    assert cluster.jobs.script == JobScript(running=1)
    assert cluster.serve.script == AppScript(deploying=3)
    assert cluster.token == "t"
    ask(cluster, "POST", "/api/jobs/", {"entrypoint": "x"}, authorization="Bearer t")
    assert (await http.post(url, json={"cluster": "a", "fault": None, "restart": True})).json()["a"][
        "jobs"
    ] == 0
    assert cluster.fault is None


@pytest.mark.parametrize(
    "body", ["{", "[]", "{}", '{"cluster": "a", "fault": "x"}', '{"cluster": "a", "jobs": {"x": 1}}']
)
def test_a_change_that_makes_no_sense_is_refused(body: str) -> None:
    reply = FakeRay().control(body.encode())

    assert reply.status == 400
    assert reply.body.startswith(b"cannot do that: ")


async def test_the_command_plays_until_it_is_told_to_stop(http: httpx.AsyncClient) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "kuberay_op.testing.fake_ray",
        *("--port", "0", "--running", "0", "--pending", "0", "--outcome", "FAILED"),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 30)).decode().strip()
        assert line.startswith("fake Ray on http://127.0.0.1:")
        url = line.removeprefix("fake Ray on ")
        await http.post(f"{url}/clusters/a/api/jobs/", json={"entrypoint": "x", "submission_id": "j"})
        assert (await http.get(f"{url}/clusters/a/api/jobs/j")).json()["status"] == "FAILED"
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 30) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--fault", "nonsuch"], "unknown fault 'nonsuch'; choose slow:SECONDS"),
        (["--outcome", "MAYBE"], "'MAYBE' is not one of"),
    ],
)
def test_the_command_explains_a_bad_option(arguments: list[str], complaint: str) -> None:
    result = CliRunner().invoke(main, arguments)

    assert result.exit_code == 2
    assert complaint in result.output


def test_ten_thousand_jobs_are_no_burden() -> None:
    """Nothing runs for a job: it is an entry in a dictionary, and its state follows from the time."""
    cluster = FakeCluster("a", clock=SystemClock())
    for number in range(10_000):
        cluster.jobs.submit({"entrypoint": "x", "submission_id": f"job-{number}"})

    assert cluster.jobs.status("job-9999") == "RUNNING"
    assert len(orjson.loads(cluster.jobs.list().body)) == 10_000
