"""The write fence, against a server that keeps every byte it gets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kuberay_op.kube.client import Client
from kuberay_op.kube.fence import NotLeader
from kuberay_op.kube.resource import CONFIG_MAPS

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


class Recorder(asyncio.Protocol):
    """Answers everything with an empty object."""

    def __init__(self) -> None:
        self.received = b""
        self.asked_for_body: Callable[[], None] = lambda: None
        self.closed = asyncio.Event()
        self.closed.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.closed.clear()

    def data_received(self, data: bytes) -> None:
        self.received += data
        assert isinstance(self.transport, asyncio.WriteTransport)
        expects = data.endswith(b"\r\n\r\n") and b"100-continue" in data
        self.transport.write(CONTINUE if expects else ANSWER)
        if expects:
            self.asked_for_body()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()


class Leadership:
    """Says yes a given number of times, then no."""

    def __init__(self, yes: int, seconds: float = 9.5) -> None:
        self.yes = yes
        self.seconds = seconds

    def __call__(self) -> float:
        self.yes -= 1
        if self.yes < 0:
            raise NotLeader("the lease is not ours")
        return self.seconds


@asynccontextmanager
async def connected(fence: Leadership, folder: Path) -> AsyncIterator[tuple[Client, Recorder]]:
    recorder = Recorder()
    server = await asyncio.get_running_loop().create_server(lambda: recorder, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        f"""
        apiVersion: v1
        kind: Config
        current-context: here
        contexts: [{{name: here, context: {{cluster: here, user: me}}}}]
        clusters: [{{name: here, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
        users: [{{name: me, user: {{}}}}]
        """
    )
    async with server:
        async with await Client.connect(kubeconfig, fence=fence) as client:
            yield client, recorder
        await recorder.closed.wait()


async def write(client: Client) -> None:
    await client.patch(CONFIG_MAPS, "a", "default", {"data": {"k": "v"}}, reason="a test")


async def test_a_write_carries_the_time_it_may_take(tmp_path: Path) -> None:
    async with connected(Leadership(yes=2), tmp_path) as (client, server):
        await write(client)
        assert b"timeout=9.500s" in server.received
        assert b'{"data":{"k":"v"}}' in server.received


async def test_without_leadership_not_a_byte_of_a_write_leaves(tmp_path: Path) -> None:
    async with connected(Leadership(yes=0), tmp_path) as (client, server):
        with pytest.raises(NotLeader, match="the lease is not ours"):
            await write(client)
        with pytest.raises(NotLeader):
            await client.request("POST", "/api/v1/without-a-body")
        assert server.received == b""
        await client.get(CONFIG_MAPS, "a", "default")  # reading stays allowed
        assert b"timeout" not in server.received


async def test_leadership_lost_while_the_headers_were_sent_keeps_the_body_back(tmp_path: Path) -> None:
    fence = Leadership(yes=9)
    async with connected(fence, tmp_path) as (client, server):

        def stopped_for_long() -> None:
            fence.yes = 0

        server.asked_for_body = stopped_for_long
        with pytest.raises(NotLeader, match="the lease is not ours"):
            await write(client)
        assert server.received.endswith(b"\r\n\r\n"), "headers may have left, the body must not"
        assert b"PATCH" in server.received


async def test_a_write_that_waited_too_long_for_the_server_is_not_made(tmp_path: Path) -> None:
    fence = Leadership(yes=9)
    async with connected(fence, tmp_path) as (client, server):

        def took_long() -> None:
            fence.seconds = 8.0

        server.asked_for_body = took_long
        with pytest.raises(NotLeader, match="the server took so long"):
            await write(client)
        assert b"ConfigMap" not in server.received
        assert server.received.endswith(b"\r\n\r\n")
