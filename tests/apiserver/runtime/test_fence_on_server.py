"""What the write fence relies on: the API server's clock for a write runs from its headers.

A process that is stopped while a request is half sent goes on with it when it is continued. The server then
has the headers from before and the body from now; it must not act on them.
"""

from __future__ import annotations

import asyncio
import ssl
from urllib.parse import urlsplit

import orjson
import pytest

from kuberay_op.kube import config
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import AlreadyExists, Forbidden, NotFound
from kuberay_op.kube.resource import CONFIG_MAPS
from kuberay_op.testing.controlplane import ControlPlane

pytestmark = pytest.mark.apiserver


async def send_slowly(plane: ControlPlane, path: str, body: bytes, pause: float) -> bytes:
    """POST with a pause between headers and body; gives the first line of the answer."""
    connection = await config.load(plane.kubeconfig)
    address = urlsplit(plane.server)
    tls = connection.credentials.tls
    assert isinstance(tls, ssl.SSLContext)
    reader, writer = await asyncio.open_connection(address.hostname, address.port, ssl=tls)
    headers = ("Host: x", "Content-Type: application/json", f"Content-Length: {len(body)}")
    lines = (f"POST {path} HTTP/1.1", *headers, "Expect: 100-continue", "", "")
    writer.write("\r\n".join(lines).encode())
    try:
        async with asyncio.timeout(30):
            assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
            assert await reader.readline() == b"\r\n"
            await asyncio.sleep(pause)
            writer.write(body)
            return await reader.readline()
    finally:
        writer.transport.abort()


async def test_a_body_that_comes_in_time_is_acted_on(
    control_plane: ControlPlane, client: Client, namespace: str
) -> None:
    body = orjson.dumps({"metadata": {"name": "a"}})
    answer = await send_slowly(control_plane, f"{CONFIG_MAPS.path(namespace)}?timeout=30s", body, 0.1)
    assert b" 201 " in answer
    await client.get(CONFIG_MAPS, "a", namespace)


async def test_a_body_that_comes_after_the_timeout_is_not(
    control_plane: ControlPlane, client: Client, namespace: str
) -> None:
    body = orjson.dumps({"metadata": {"name": "a"}})
    answer = await send_slowly(control_plane, f"{CONFIG_MAPS.path(namespace)}?timeout=1s", body, 3.0)
    assert b" 201 " not in answer
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAPS, "a", namespace)


async def test_refusals_come_through_whether_the_server_wanted_the_body_or_not(
    control_plane: ControlPlane, namespace: str
) -> None:
    body = {"metadata": {"name": "a", "namespace": namespace}}
    async with await Client.connect(control_plane.kubeconfig, fence=lambda: 10.0) as client:
        await client.create(CONFIG_MAPS, body, reason="a test")
        with pytest.raises(AlreadyExists):
            await client.create(CONFIG_MAPS, body, reason="a test")
        await client.delete(CONFIG_MAPS, "a", namespace, reason="a test")
    nobody = control_plane.cluster.issue_client_cert("nobody")
    async with await Client.connect(nobody, fence=lambda: 10.0) as client:
        for _ in range(3):
            with pytest.raises(Forbidden):
                await client.create(CONFIG_MAPS, body, reason="a test")
