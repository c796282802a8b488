"""Each fault of the proxy, as a plain HTTP client meets it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import orjson
import pytest
import uvloop
from aiohttp import web

from kuberay_op.clock import SystemClock
from kuberay_op.kube import config
from kuberay_op.kube.config import Connection
from kuberay_op.kube.credentials import Material, PlainCredentials
from kuberay_op.testing.faults import ExactPlan, Fault, FaultProxy, Plan, Strike, call_of

ITEMS = {"kind": "PodList", "items": [{"metadata": {"name": f"pod-{n}"}} for n in range(50)]}
EVENTS = [orjson.dumps({"type": "ADDED", "object": {"n": n, "pad": "x" * 200}}) + b"\n" for n in range(6)]
PODS = "/api/v1/namespaces/a/pods"


class Server:
    """Stands for the API server and counts what reaches it."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.reached.append(f"{request.method} {request.path_qs}")
        self.headers.append(dict(request.headers))
        if "watch" in request.query:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b"".join(EVENTS))
            return response
        if request.method == "GET":
            return web.Response(body=orjson.dumps(ITEMS), content_type="application/json")
        return web.Response(status=201, body=await request.read(), content_type="application/json")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = "http://{}:{}".format(*runner.addresses[0][:2])
    yield server
    await runner.cleanup()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session:
        yield session


def upstream(url: str, token: str | None = None) -> Connection:
    return Connection(url, PlainCredentials(Material(token=token), SystemClock()))


def with_fault(server: Server, call: str, fault: Fault, event: int | None = None) -> FaultProxy:
    return FaultProxy(upstream(server.url), ExactPlan(Strike(call, 1, fault, event)), pause=0.01)


async def watched(session: aiohttp.ClientSession, proxy: FaultProxy) -> bytes:
    """Everything a watch delivers before it ends; a reset keeps what came before it."""
    got = b""
    async with session.get(proxy.url + PODS, params={"watch": "1"}) as answer:
        try:
            async for chunk in answer.content.iter_any():
                got += chunk
        except aiohttp.ClientError:
            got += b"<reset>"
    return got


async def test_without_faults_everything_passes_unchanged(
    server: Server, session: aiohttp.ClientSession
) -> None:
    async with FaultProxy(upstream(server.url, "t")) as proxy:
        async with session.get(
            proxy.url + PODS, params={"limit": "5", "fieldSelector": "a=b,c!=d"}
        ) as answer:
            assert await answer.json() == ITEMS
        async with session.post(proxy.url + PODS, data=b'{"a":1}', headers={"X-Mine": "1"}) as answer:
            assert (answer.status, await answer.read()) == (201, b'{"a":1}')
        assert await watched(session, proxy) == b"".join(EVENTS)
    assert server.reached[0] == f"GET {PODS}?limit=5&fieldSelector=a%3Db,c!%3Dd"
    assert server.headers[1]["X-Mine"] == "1"
    assert server.headers[1]["Authorization"] == "Bearer t"
    assert proxy.calls == {("list", "pods"): 1, ("create", "pods"): 1, ("watch", "pods"): 1}


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        (Fault.CONFLICT, 409, "Conflict"),
        (Fault.THROTTLE, 429, "TooManyRequests"),
        (Fault.INTERNAL, 500, "InternalError"),
        (Fault.UNAVAILABLE, 503, "ServiceUnavailable"),
    ],
)
async def test_a_refused_write_never_reaches_the_server(
    server: Server, session: aiohttp.ClientSession, fault: Fault, status: int, reason: str
) -> None:
    async with with_fault(server, "create pods", fault) as proxy:
        async with session.post(proxy.url + PODS, data=b"{}") as answer:
            body = await answer.json()
        assert (answer.status, body["code"], body["reason"]) == (status, status, reason)
        assert ("Retry-After" in answer.headers) == (fault is Fault.THROTTLE)
        assert server.reached == []
        async with session.post(proxy.url + PODS, data=b"{}") as answer:
            assert answer.status == 201


@pytest.mark.parametrize(("fault", "reached"), [(Fault.RESET_BEFORE, 0), (Fault.RESET_AFTER, 1)])
async def test_a_reset_comes_before_or_after_the_server_acted(
    server: Server, session: aiohttp.ClientSession, fault: Fault, reached: int
) -> None:
    async with with_fault(server, "create pods", fault) as proxy:
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.post(proxy.url + PODS, data=b"{}")
    assert len(server.reached) == reached


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_reset_is_a_reset_and_no_orderly_end(
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def reset() -> None:
        plan = ExactPlan(Strike("list pods", 1, Fault.RESET_BEFORE))
        async with FaultProxy(upstream("http://127.0.0.1:1"), plan) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
            writer.write(f"GET {PODS} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            with pytest.raises(ConnectionResetError):
                await reader.read()
            writer.close()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(reset())


async def test_a_reset_in_the_body_leaves_half_of_it(server: Server, session: aiohttp.ClientSession) -> None:
    async with (
        with_fault(server, "list pods", Fault.RESET_BODY) as proxy,
        session.get(proxy.url + PODS) as answer,
    ):
        assert answer.status == 200
        with pytest.raises(aiohttp.ClientError):
            await answer.read()


async def test_truncated_json_is_a_complete_answer(server: Server, session: aiohttp.ClientSession) -> None:
    async with (
        with_fault(server, "list pods", Fault.TRUNCATE) as proxy,
        session.get(proxy.url + PODS) as answer,
    ):
        body = await answer.read()
    whole = orjson.dumps(ITEMS)
    assert body == whole[: len(whole) // 2]


async def test_slow_bytes_arrive_in_pieces_and_whole(server: Server, session: aiohttp.ClientSession) -> None:
    async with (
        with_fault(server, "list pods", Fault.SLOW) as proxy,
        session.get(proxy.url + PODS) as answer,
    ):
        pieces = [chunk async for chunk in answer.content.iter_any()]
    assert len(pieces) > 1
    assert b"".join(pieces) == orjson.dumps(ITEMS)


async def test_a_hanging_call_ends_when_the_client_gives_up(
    server: Server, session: aiohttp.ClientSession
) -> None:
    async with with_fault(server, "get pods", Fault.HANG) as proxy:
        with pytest.raises(TimeoutError):
            await session.get(proxy.url + PODS + "/x", timeout=aiohttp.ClientTimeout(total=0.2))
        async with session.get(proxy.url + PODS + "/x") as answer:
            assert answer.status == 200


async def test_a_watch_can_be_refused_as_gone(server: Server, session: aiohttp.ClientSession) -> None:
    async with (
        with_fault(server, "watch pods", Fault.GONE) as proxy,
        session.get(proxy.url + PODS, params={"watch": "1"}) as answer,
    ):
        assert answer.status == 410
        assert (await answer.json())["reason"] == "Expired"


async def test_a_watch_can_end_with_a_gone_event(server: Server, session: aiohttp.ClientSession) -> None:
    async with with_fault(server, "watch pods", Fault.GONE_EVENT, 2) as proxy:
        got = (await watched(session, proxy)).splitlines(keepends=True)
    assert got[:2] == EVENTS[:2]
    last = orjson.loads(got[2])
    assert (len(got), last["type"], last["object"]["code"]) == (3, "ERROR", 410)


async def test_an_event_can_come_twice(server: Server, session: aiohttp.ClientSession) -> None:
    async with with_fault(server, "watch pods", Fault.DUPLICATE, 1) as proxy:
        assert await watched(session, proxy) == b"".join([EVENTS[0], EVENTS[1], *EVENTS[1:]])


@pytest.mark.parametrize("fault", [Fault.DELAY, Fault.SLOW])
async def test_a_delayed_or_slow_stream_keeps_its_order(
    server: Server, session: aiohttp.ClientSession, fault: Fault
) -> None:
    event = 2 if fault is Fault.DELAY else None
    async with with_fault(server, "watch pods", fault, event) as proxy:
        assert await watched(session, proxy) == b"".join(EVENTS)
        assert proxy.plan.strikes == {fault: 1}


async def test_a_stream_can_break_inside_an_event(server: Server, session: aiohttp.ClientSession) -> None:
    half = EVENTS[2][: len(EVENTS[2]) // 2]
    async with with_fault(server, "watch pods", Fault.TRUNCATE_EVENT, 2) as proxy:
        assert await watched(session, proxy) == b"".join(EVENTS[:2]) + half
    async with with_fault(server, "watch pods", Fault.CUT_EVENT, 2) as proxy:
        assert (await watched(session, proxy)).endswith(b"<reset>")


async def test_a_silent_watch_stays_open_and_says_nothing(
    server: Server, session: aiohttp.ClientSession
) -> None:
    async with with_fault(server, "watch pods", Fault.SILENCE, 3) as proxy:
        answer = await session.get(proxy.url + PODS, params={"watch": "1"})
        assert await answer.content.readexactly(sum(map(len, EVENTS[:3]))) == b"".join(EVENTS[:3])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(answer.content.readany(), timeout=0.3)
        assert not answer.content.at_eof()
        answer.close()


async def test_a_dead_server_looks_like_a_reset(session: aiohttp.ClientSession) -> None:
    async with FaultProxy(upstream("http://127.0.0.1:1")) as proxy:
        with pytest.raises(aiohttp.ClientError):
            await session.get(proxy.url + PODS)


async def test_a_new_plan_heals_a_running_proxy(server: Server, session: aiohttp.ClientSession) -> None:
    strikes = [Strike("list pods", n, Fault.INTERNAL) for n in range(1, 9)]
    async with FaultProxy(upstream(server.url), ExactPlan(*strikes)) as proxy:
        async with session.get(proxy.url + PODS) as answer:
            assert answer.status == 500
        proxy.plan = Plan()
        async with session.get(proxy.url + PODS) as answer:
            assert answer.status == 200


async def test_no_task_outlives_the_proxy(server: Server, session: aiohttp.ClientSession) -> None:
    before = asyncio.all_tasks()
    async with with_fault(server, "get pods", Fault.HANG) as proxy:
        with pytest.raises(TimeoutError):
            await session.get(proxy.url + PODS + "/x", timeout=aiohttp.ClientTimeout(total=0.2))
        await session.get(proxy.url + PODS, params={"watch": "1"})  # left open
    for _ in range(100):  # connections to the server behind end a moment later
        if asyncio.all_tasks() == before:
            break
        await asyncio.sleep(0.05)
    assert asyncio.all_tasks() == before


async def test_the_kubeconfig_leads_to_the_proxy_without_credentials(server: Server, tmp_path: Path) -> None:
    async with FaultProxy(upstream(server.url, "secret")) as proxy:
        path = proxy.write_kubeconfig(tmp_path / "kubeconfig")
    assert (await config.load(path)).server == proxy.url
    assert "secret" not in path.read_text()


@pytest.mark.parametrize(
    ("method", "path", "query", "named"),
    [
        ("GET", "/api/v1/pods", {}, "list pods"),
        ("GET", "/api/v1/namespaces/a/pods", {"watch": "true"}, "watch pods"),
        ("GET", "/api/v1/namespaces/a/pods/x", {}, "get pods"),
        ("GET", "/api/v1/namespaces/a", {}, "get namespaces"),
        ("GET", "/api/v1/namespaces", {}, "list namespaces"),
        ("PUT", "/api/v1/namespaces/a/finalize", {}, "update namespaces/finalize"),
        ("PATCH", "/apis/ray.io/v1/namespaces/a/rayclusters/x/status", {}, "patch rayclusters/status"),
        ("POST", "/apis/ray.io/v1/namespaces/a/rayclusters", {}, "create rayclusters"),
        ("DELETE", "/apis/ray.io/v1/namespaces/a/rayclusters", {}, "deletecollection rayclusters"),
        ("DELETE", "/apis/ray.io/v1/namespaces/a/rayclusters/x", {}, "delete rayclusters"),
        ("GET", "/version", {}, "get /version"),
    ],
)
def test_calls_are_named_as_kubernetes_names_them(
    method: str, path: str, query: dict[str, str], named: str
) -> None:
    assert str(call_of(method, path, query)) == named


def test_a_further_page_is_seen_as_paging() -> None:
    assert call_of("GET", "/api/v1/pods", {"continue": "x"}).paging
