"""What every request has: classified faults, a gate, a token, metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

import pytest

from kuberay_op.errors import OperatorError
from kuberay_op.ray import errors
from kuberay_op.ray.answers import Call, Response
from kuberay_op.ray.breaker import State
from kuberay_op.ray.client import CachedToken, Connector, RayClient
from kuberay_op.ray.dashboard import Dashboard, Submission
from kuberay_op.ray.limits import Gates
from kuberay_op.ray.proxied import ProxiedTransport
from kuberay_op.ray.urls import Endpoint, direct, proxied_service
from kuberay_op.testing.clock import FakeClock
from kuberay_op.testing.fake_ray import FakeCluster, FakeRay, Fault
from kuberay_op.testing.fake_ray.http import Request

from .conftest import SOON, Recorder

MakeClient = Callable[..., RayClient]

FAULTS = {
    "gone": errors.Unreachable,
    "hang": errors.TimedOut,
    "html": errors.Garbled,
    "nonsense": errors.Garbled,
    "truncated": errors.Garbled,
    "status:500": errors.ServerError,
    "status:401": errors.Unauthorized,
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_each_fault_is_an_error_of_its_own(client: MakeClient, ray: FakeRay, fault: str) -> None:
    dashboard = Dashboard(client())
    await dashboard.submit(Submission("x", "job-1"))
    ray.cluster("ns/a").fault = Fault.parse(fault)

    with pytest.raises(errors.RayError) as caught:
        await dashboard.info("job-1")

    assert type(caught.value) is FAULTS[fault]
    assert str(caught.value).startswith("read job job-1: ")


async def test_a_slow_answer_is_an_answer(client: MakeClient, ray: FakeRay, clock: FakeClock) -> None:
    dashboard = Dashboard(client())
    ray.cluster("ns/a").fault = Fault.parse("slow:0.1")

    asking = asyncio.create_task(dashboard.version())
    await clock.advance(0.1)

    assert (await asking).ray


async def test_faults_open_the_breaker_and_answers_do_not(
    client: MakeClient, ray: FakeRay, clock: FakeClock, metrics: Recorder
) -> None:
    dashboard = Dashboard(client())
    for _ in range(10):
        with pytest.raises(errors.JobNotFound):
            await dashboard.info("job-1")

    cluster = ray.cluster("ns/a")
    cluster.fault = Fault.parse("gone")
    for _ in range(5):
        with pytest.raises(errors.Unreachable):
            await dashboard.info("job-1")
    asked = len(cluster.requests)
    with pytest.raises(
        errors.HeldBack, match=r"ns/a keeps failing and is left alone for another \d\.\d s"
    ) as caught:
        await dashboard.info("job-1")
    assert len(cluster.requests) == asked

    cluster.fault = None
    assert caught.value.after
    await clock.advance(caught.value.after)
    assert await dashboard.version()
    assert metrics.states == [
        ("ns/a", State.OPEN),
        ("ns/a", State.HALF_OPEN),
        ("ns/a", State.CLOSED),
    ]


async def test_a_cluster_in_trouble_costs_only_itself(client: MakeClient, ray: FakeRay) -> None:
    bad, good = Dashboard(client("ns/bad")), Dashboard(client("ns/good"))
    ray.cluster("ns/bad").fault = Fault.parse("hang")
    async with asyncio.TaskGroup() as group:
        stuck = [group.create_task(_outcome(bad)) for _ in range(40)]
        await asyncio.sleep(0)
        assert await _outcome(good) == "ok"

    assert {task.result() for task in stuck} == {"timeout", "held_back"}
    assert ray.cluster("ns/bad").busiest == 4


async def _outcome(dashboard: Dashboard) -> str:
    try:
        await dashboard.version()
    except errors.RayError as error:
        return error.outcome
    return "ok"


async def test_a_cancelled_request_gives_its_place_back(client: MakeClient, ray: FakeRay) -> None:
    dashboard = Dashboard(client())
    ray.cluster("ns/a").fault = Fault.parse("hang")
    for _ in range(20):
        asking = asyncio.create_task(dashboard.version())
        for _ in range(20):
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    ray.cluster("ns/a").fault = None
    assert await dashboard.version()


async def test_requests_are_counted_by_outcome(client: MakeClient, metrics: Recorder) -> None:
    dashboard = Dashboard(client())
    await dashboard.submit(Submission("x", "a"))
    with pytest.raises(errors.JobExists):
        await dashboard.submit(Submission("x", "a"))
    await dashboard.info("a")

    assert metrics.requests == [("submit", "ok"), ("submit", "job_exists"), ("info", "ok")]


async def test_a_cluster_that_goes_takes_its_gate_and_metric_along(
    connector: Connector, client: MakeClient, gates: Gates, metrics: Recorder
) -> None:
    client("ns/a")
    connector.forget("ns/a")
    connector.forget("ns/a")

    assert len(gates) == 0
    assert metrics.states == [("ns/a", None)]


# --- tokens


class Secret:
    """A Secret that can be rotated; counts how often it is read."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.reads = 0

    async def read(self) -> str:
        self.reads += 1
        return self.token


@pytest.fixture
def locked(ray: FakeRay) -> FakeCluster:
    cluster = ray.cluster("ns/a")
    cluster.token = "right-token"
    return cluster


async def test_the_token_travels_in_rays_own_header(
    client: MakeClient, locked: FakeCluster, clock: FakeClock
) -> None:
    token = CachedToken(Secret("right-token\n").read, clock=clock)

    await Dashboard(client(token=token)).jobs()

    headers = locked.requests[-1].headers
    assert headers["x-ray-authorization"] == "Bearer right-token"
    assert "authorization" not in headers
    assert headers["user-agent"].startswith("kuberay-op/")


async def test_without_or_with_a_wrong_token_ray_refuses(
    client: MakeClient, locked: FakeCluster, clock: FakeClock
) -> None:
    with pytest.raises(errors.Unauthorized, match="401: Unauthorized: Missing"):
        await Dashboard(client()).jobs()

    wrong = CachedToken(Secret("wrong-token").read, clock=clock)
    with pytest.raises(errors.Unauthorized, match="403: Forbidden: Invalid"):
        await Dashboard(client(token=wrong)).jobs()


async def test_a_token_is_read_once_until_it_is_old(
    client: MakeClient, locked: FakeCluster, clock: FakeClock
) -> None:
    secret = Secret("right-token")
    dashboard = Dashboard(client(token=CachedToken(secret.read, clock=clock, lifetime=60)))
    for _ in range(5):
        await dashboard.jobs()
    assert secret.reads == 1

    await clock.advance(60)
    await dashboard.jobs()
    assert secret.reads == 2


async def test_a_rotated_token_is_read_again_at_once(
    client: MakeClient, locked: FakeCluster, clock: FakeClock
) -> None:
    secret = Secret("right-token")
    dashboard = Dashboard(client(token=CachedToken(secret.read, clock=clock)))
    await dashboard.jobs()

    locked.token = secret.token = "rotated-token"
    await dashboard.jobs()

    assert secret.reads == 2


@pytest.mark.parametrize("token", ["", " \n", "two\nlines", "ünicode"])
async def test_a_token_that_fits_in_no_header_is_not_sent(
    client: MakeClient, locked: FakeCluster, clock: FakeClock, token: str
) -> None:
    with pytest.raises(errors.Unauthorized, match="check its Secret") as caught:
        await Dashboard(client(token=CachedToken(Secret(token).read, clock=clock))).jobs()

    assert token.strip() == "" or token.strip() not in str(caught.value)
    assert not locked.requests


async def test_a_missing_secret_is_the_readers_error(client: MakeClient, locked: FakeCluster) -> None:
    async def missing(*, fresh: bool) -> str:
        raise OperatorError("get secrets ns/a: 404 NotFound")

    with pytest.raises(OperatorError, match="get secrets ns/a"):
        await Dashboard(client(token=missing)).jobs()


async def test_the_token_is_seen_nowhere(
    client: MakeClient, locked: FakeCluster, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = CachedToken(Secret("right-token").read, clock=clock)
    ray_client = client(token=token)
    seen = [repr(token), repr(ray_client)]
    for fault in [None, *FAULTS]:
        locked.fault = None if fault is None else Fault.parse(fault)
        try:
            await Dashboard(ray_client).jobs()
        except errors.RayError as error:
            seen += [str(error), repr(error), repr(error.__cause__), repr(error.__context__)]

    assert "right-token" not in "\n".join([*seen, caplog.text])


# --- through the API server


class ApiServer:
    """Plays the operator's session with the API server: passes requests on, or does not."""

    def __init__(self, ray: FakeRay) -> None:
        self.ray = ray
        self.fails: Exception | None = None
        self.answers: tuple[int, Mapping[str, str], bytes] | None = None

    async def exchange(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None, max_bytes: int
    ) -> tuple[int, Mapping[str, str], bytes]:
        if self.fails is not None:
            raise self.fails
        if self.answers is not None:
            return self.answers
        cluster, rest = self.ray.find(path, "kubernetes")
        assert cluster is not None
        reply = await cluster.handle(Request(method, rest, headers, body or b""))
        return reply.status, {"Content-Type": reply.content_type}, reply.body[: max_bytes + 1]


@pytest.fixture
def api_server(ray: FakeRay) -> ApiServer:
    ray.cluster("ns/a-head-svc")
    return ApiServer(ray)


@pytest.fixture
def proxied(connector: Connector, api_server: ApiServer, gates: Gates, clock: FakeClock) -> Dashboard:
    through = Connector(
        direct=connector._direct,
        proxied=ProxiedTransport(api_server),
        gates=gates,
        clock=clock,
        timeouts=connector._timeouts,
    )
    return Dashboard(through.client("ns/a", proxied_service("ns", "a-head-svc")))


async def test_the_api_server_carries_requests(proxied: Dashboard) -> None:
    await proxied.submit(Submission("x", "job-1"))

    assert (await proxied.info("job-1")).status == "RUNNING"
    with pytest.raises(errors.JobNotFound):
        await proxied.info("job-2")


async def test_a_service_that_is_gone_is_no_missing_job(proxied: Dashboard, api_server: ApiServer) -> None:
    status = (
        b'{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "services not found: job-1"}'
    )
    api_server.answers = (404, {"Content-Type": "application/json"}, status)

    with pytest.raises(errors.DashboardAbsent, match="services not found"):
        await proxied.info("job-1")


async def test_an_api_server_out_of_reach_leaves_ray_unreachable(
    proxied: Dashboard, api_server: ApiServer
) -> None:
    api_server.fails = OperatorError("GET /x: no usable answer")

    with pytest.raises(errors.Unreachable, match="the API server did not pass the request on"):
        await proxied.info("job-1")


async def test_a_hanging_dashboard_times_out_behind_the_api_server(proxied: Dashboard, ray: FakeRay) -> None:
    ray.cluster("ns/a-head-svc").fault = Fault.parse("hang")

    with pytest.raises(errors.TimedOut, match=f"through the API server within {SOON:g} s"):
        await proxied.info("job-1")


async def test_answers_through_the_api_server_have_a_limit(proxied: Dashboard, ray: FakeRay) -> None:
    await proxied.submit(Submission("x", "job-1"))
    ray.cluster("ns/a-head-svc").jobs.all["job-1"].log = "x" * 100

    with pytest.raises(errors.TooLarge, match="more than 50 bytes"):
        await proxied.logs("job-1", max_bytes=50)


def test_a_proxied_endpoint_needs_its_transport(connector: Connector) -> None:
    with pytest.raises(ValueError, match="needs a transport through the API server"):
        connector.client("ns/a", proxied_service("ns", "a-head-svc"))


# --- any transport will do


class Canned:
    """A transport that always gives the same answer."""

    async def send(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        within: float,
        max_bytes: int,
    ) -> Response:
        return Response(200, {}, f"{method} {target} {len(body or b'')}".encode())


async def test_transports_are_exchangeable(gates: Gates, clock: FakeClock) -> None:
    connector = Connector(direct=Canned(), gates=gates, clock=clock)
    answer = await connector.client("a", direct("host:1")).ask(Call("x", "x", "POST", "/y", body={}))

    assert answer.body == b"POST http://host:1/y 2"


def test_clients_show_where_they_go(connector: Connector) -> None:
    assert repr(connector.client("a", Endpoint("http://host:1"))) == "RayClient(http://host:1)"
