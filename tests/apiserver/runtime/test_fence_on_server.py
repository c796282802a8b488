"""What the write fence relies on: the API server gives up a write whose ``timeout`` has passed.

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
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.resource import CONFIG_MAPS
from kuberay_op.testing.controlplane import ControlPlane

pytestmark = pytest.mark.apiserver


async def send_slowly(plane: ControlPlane, path: str, body: bytes, pause: float) -> bytes:
    """POST with a pause between the headers and the body; gives the answer's first line."""
    connection = await config.load(plane.kubeconfig)
    address = urlsplit(plane.server)
    tls = connection.credentials.tls
    assert isinstance(tls, ssl.SSLContext)
    reader, writer = await asyncio.open_connection(address.hostname, address.port, ssl=tls)
    headers = ("Host: x", "Content-Type: application/json", f"Content-Length: {len(body)}", "", "")
    writer.write("\r\n".join((f"POST {path} HTTP/1.1", *headers)).encode() + body[:1])
    await writer.drain()
    await asyncio.sleep(pause)
    writer.write(body[1:])
    try:
        return await asyncio.wait_for(reader.readline(), 30)
    finally:
        writer.transport.abort()


@pytest.mark.parametrize(("pause", "happens"), [(0.1, True), (3.0, False)], ids=["in time", "too late"])
async def test_a_body_that_comes_after_the_timeout_is_not_acted_on(
    control_plane: ControlPlane, client: Client, namespace: str, pause: float, happens: bool
) -> None:
    body = orjson.dumps({"metadata": {"name": "late"}})
    path = f"{CONFIG_MAPS.path(namespace)}?timeout={30 if happens else 1}s"
    answer = await send_slowly(control_plane, path, body, pause)
    if happens:
        assert b" 201 " in answer
        await client.get(CONFIG_MAPS, "late", namespace)
    else:
        assert b" 201 " not in answer
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAPS, "late", namespace)
