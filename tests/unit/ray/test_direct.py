"""The transport over real sockets, against a fake that misbehaves."""

from __future__ import annotations

import asyncio
import socket

import pytest

from kuberay_op.ray import errors
from kuberay_op.ray.answers import MAX_BYTES, Response
from kuberay_op.ray.direct import DirectTransport
from kuberay_op.testing.fake_ray import FakeRay, Fault, JobScript

SOON = 0.3


async def get(transport: DirectTransport, url: str, *, max_bytes: int = MAX_BYTES) -> Response:
    return await transport.send("GET", url, headers={}, body=None, within=SOON, max_bytes=max_bytes)


@pytest.fixture
async def url(fake_ray: FakeRay) -> str:
    return f"http://{await fake_ray.open_port('a')}/api/version"


async def test_an_answer_is_status_headers_and_body(url: str) -> None:
    async with DirectTransport() as transport:
        answer = await get(transport, url)

    assert answer.status == 200
    assert answer.headers["content-type"].startswith("application/json")
    assert b"ray_version" in answer.body


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("hang", errors.TimedOut),
        ("slow:5", errors.TimedOut),
        ("gone", errors.Unreachable),
        ("truncated", errors.Garbled),
    ],
)
async def test_faults(fake_ray: FakeRay, url: str, fault: str, kind: type[errors.RayError]) -> None:
    fake_ray.cluster("a").fault = Fault.parse(fault)
    async with DirectTransport() as transport:
        with pytest.raises(errors.RayError) as caught:
            await get(transport, url)

        assert type(caught.value) is kind
        fake_ray.cluster("a").fault = None
        assert (await get(transport, url)).status == 200, "the pool must be usable afterwards"


async def test_nobody_listens_and_then_somebody_does(fake_ray: FakeRay, url: str) -> None:
    async with DirectTransport() as transport:
        assert (await get(transport, url)).status == 200
        await fake_ray.take_down("a")
        for _ in range(2):  # the first may still have a connection
            with pytest.raises(errors.Unreachable, match=r"no connection to 127\.0\.0\.1:"):
                await get(transport, url)
        await fake_ray.bring_up("a")
        assert (await get(transport, url)).status == 200


async def test_a_peer_that_accepts_and_says_nothing_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with DirectTransport() as transport:
            with pytest.raises(errors.TimedOut, match=r"within 0\.3 s"):
                await get(transport, f"http://127.0.0.1:{listener.getsockname()[1]}/")


async def test_a_peer_that_drips_bytes_times_out() -> None:
    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        try:
            while True:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.05)
        except (ConnectionError, asyncio.CancelledError):
            writer.close()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, DirectTransport() as transport:
        with pytest.raises(errors.TimedOut):
            await get(transport, f"http://127.0.0.1:{port}/")
        await asyncio.sleep(0.2)  # the peer notices that we have gone


async def test_a_peer_that_speaks_something_else_is_unreachable() -> None:
    async def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.9\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, DirectTransport() as transport:
        with pytest.raises(errors.Unreachable):
            await get(transport, f"http://127.0.0.1:{port}/")


async def test_long_answers_are_not_read_to_the_end(fake_ray: FakeRay, url: str) -> None:
    async with DirectTransport() as transport:
        with pytest.raises(errors.TooLarge, match="more than 10 bytes"):
            await get(transport, url, max_bytes=10)
        assert (await get(transport, url)).status == 200


@pytest.mark.parametrize(
    "target", ["http://nowhere.invalid/", "http://[/", "ftp://host/", "http://host:99999/"]
)
async def test_an_address_that_cannot_be_is_unreachable(target: str) -> None:
    async with DirectTransport() as transport:
        with pytest.raises(errors.RayUnavailable):
            await transport.send("GET", target, headers={}, body=None, within=5, max_bytes=1)


async def test_no_proxy_from_the_environment_is_used(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with DirectTransport() as transport:
        assert (await get(transport, url)).status == 200


async def test_one_fake_plays_many_clusters_as_a_proxy() -> None:
    async with (
        FakeRay(auto=True, jobs=JobScript(running=0)) as fake,
        DirectTransport(proxy=f"http://127.0.0.1:{fake.port}") as transport,
    ):
        for name in ("one", "two"):
            await get(transport, f"http://{name}-head-svc.ns.svc.cluster.local:8265/api/version")

    assert set(fake.clusters) == {"ns/one-head-svc", "ns/two-head-svc"}


async def test_hundreds_of_abandoned_requests_leave_no_connection(fake_ray: FakeRay, url: str) -> None:
    fake_ray.cluster("a").fault = Fault.parse("hang")
    async with DirectTransport() as transport:
        for _ in range(5):
            tasks = [asyncio.create_task(get(transport, url)) for _ in range(40)]
            await asyncio.sleep(0.02)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        connector = transport._http.connector
        assert connector is not None
        assert not connector._acquired
        assert not connector._conns
