"""A proxy that stands between the engine and a real API server and breaks things on purpose.

::

    async with FaultProxy(await config.load(kubeconfig), FaultPlan(seed=7)) as proxy:
        async with await Client.connect(proxy.write_kubeconfig(tmp_path / "faulty")) as client:
            ...
        print(proxy.calls["list", "pods"], proxy.plan.log)

It speaks plain HTTP on loopback and holds the credentials of the server behind it. What breaks is decided by
a plan (``kuberay_op.testing.fault_plan``); this module knows how to break it. Events of one watch are never
reordered, since no API server does that: they are delayed, doubled, or lost together with their connection.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import orjson
import yaml
from aiohttp import web
from yarl import URL

from kuberay_op.kube.config import Connection
from kuberay_op.testing.fault_plan import (
    BAD_DAY,
    EVENT_FAULTS,
    STREAM_ENDS,
    Call,
    ExactPlan,
    Fault,
    FaultPlan,
    Plan,
    Script,
    Strike,
)

__all__ = [
    "BAD_DAY",
    "EVENT_FAULTS",
    "STREAM_ENDS",
    "Call",
    "ExactPlan",
    "Fault",
    "FaultPlan",
    "FaultProxy",
    "Plan",
    "Script",
    "Strike",
    "call_of",
    "plain_kubeconfig",
]

#: What THROTTLE asks the client to wait. Whole seconds: the header knows no fractions.
RETRY_AFTER: Final = 1

#: A slow watch recovers after so many events: no client could keep up with a busy one otherwise.
SLOW_EVENTS: Final = 30

#: Headers that belong to one connection and are not passed on; compression would hide where we cut.
_HOP_HEADERS: Final = frozenset(
    {
        "host",
        "connection",
        "keep-alive",
        "transfer-encoding",
        "content-length",
        "accept-encoding",
        "authorization",
    }
)
_STATUS: Final[Mapping[Fault, tuple[int, str]]] = {
    Fault.CONFLICT: (409, "Conflict"),
    Fault.GONE: (410, "Expired"),
    Fault.THROTTLE: (429, "TooManyRequests"),
    Fault.INTERNAL: (500, "InternalError"),
    Fault.UNAVAILABLE: (503, "ServiceUnavailable"),
}
_VERBS: Final[Mapping[str, str]] = {
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


def plain_kubeconfig(url: str, path: Path) -> Path:
    """Write a kubeconfig for a server that asks for no credentials."""
    name = "plain"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": {}}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


def call_of(method: str, path: str, query: Mapping[str, str]) -> Call:
    """Name a request by verb and resource ("patch rayclusters/status"); other paths stand for themselves."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:] if parts[0] == "apis" else []
    if not rest:
        return Call(method.lower(), path)
    # "namespaces/x/pods" lies in a namespace; "namespaces/x" and "namespaces/x/status" are the namespace.
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in {"status", "finalize"}:
        rest = rest[2:]
    resource = "/".join([rest[0], *rest[2:]])
    named = len(rest) > 1
    if method == "GET":
        if query.get("watch") in {"1", "true"}:
            return Call("watch", resource)
        return Call("get", resource) if named else Call("list", resource, paging=bool(query.get("continue")))
    if method == "DELETE" and not named:
        return Call("deletecollection", resource)
    return Call(_VERBS.get(method, method.lower()), resource)


class FaultProxy:
    """Serve an API server on loopback with faults.

    Args:
        upstream: The real server and our credentials for it.
        plan: What breaks; may be replaced while running (``proxy.plan = Plan()`` heals everything).
        pause: Seconds by which DELAY holds a stream and SLOW stretches an answer or an early event.
    """

    def __init__(self, upstream: Connection, plan: Plan | None = None, *, pause: float = 0.2) -> None:
        self.plan = plan or Plan()
        self.calls: Counter[tuple[str, str]] = Counter()
        self.url = ""
        self._upstream = upstream
        self._pause = pause
        self._session: aiohttp.ClientSession | None = None
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)  # watches last as long as they last
        self._session = aiohttp.ClientSession(
            timeout=timeout, connector=aiohttp.TCPConnector(limit=0), auto_decompress=False
        )
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        # Cancellation ends a hanging answer as soon as its client has given up.
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        if self._session is not None:
            await self._session.close()

    def write_kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig that leads clients here; it holds no credentials, the proxy has them."""
        return plain_kubeconfig(self.url, path)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        call = call_of(request.method, request.path, request.query)
        self.calls[call.verb, call.resource] += 1
        script = self.plan.script(call)
        if script.fault is Fault.RESET_BEFORE:
            return await _reset(request)
        if script.fault is Fault.HANG:
            return await _hang()
        if script.fault is not None and script.fault in _STATUS:
            return _refusal(script.fault)
        body = await request.read()
        try:
            async with await self._forward(request, body) as answer:
                if call.verb == "watch" and answer.status == 200:
                    return await self._relay(request, answer, script)
                return await self._pass_on(request, answer, script.fault)
        except aiohttp.ClientError:  # the server itself is gone: so are we, to the client
            return await _reset(request)

    async def _forward(self, request: web.Request, body: bytes) -> aiohttp.ClientResponse:
        assert self._session is not None
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP_HEADERS}
        authorization = await self._upstream.credentials.authorization()
        if authorization:
            headers["Authorization"] = authorization
        return await self._session.request(
            request.method,
            # As it came: decoding and encoding again could change a selector.
            URL(self._upstream.server + request.raw_path, encoded=True),
            headers={**headers, "Accept-Encoding": "identity"},
            data=body or None,
            ssl=self._upstream.credentials.tls,
        )

    async def _pass_on(
        self, request: web.Request, answer: aiohttp.ClientResponse, fault: Fault | None
    ) -> web.StreamResponse:
        """Hand on a whole answer, or what the fault leaves of it."""
        body = await answer.read()
        if fault is Fault.RESET_AFTER:
            return await _reset(request)
        if fault is Fault.TRUNCATE:
            body = body[: len(body) // 2]
        response = web.StreamResponse(status=answer.status, headers=_passed(answer))
        response.content_length = len(body)
        await response.prepare(request)
        if fault is Fault.RESET_BODY:
            await response.write(body[: len(body) // 2])
            return await _reset(request)
        await self._write(response, body, slowly=fault is Fault.SLOW)
        await response.write_eof()
        return response

    async def _relay(
        self, request: web.Request, answer: aiohttp.ClientResponse, script: Script
    ) -> web.StreamResponse:
        """Hand on a watch, event by event."""
        response = web.StreamResponse(headers=_passed(answer))
        response.enable_chunked_encoding()
        await response.prepare(request)
        slow = script.fault is Fault.SLOW
        number = 0
        async for line in _lines(answer.content):
            fault = script.at(number)
            number += 1
            if fault is Fault.SILENCE:
                return await _hang()
            if fault is Fault.CUT_EVENT:
                await response.write(line[: len(line) // 2])
                return await _reset(request)
            if fault is Fault.TRUNCATE_EVENT:
                await response.write(line[: len(line) // 2])
                break
            if fault is Fault.GONE_EVENT:
                await response.write(_event("ERROR", _status(410, "Expired")))
                break
            if fault is Fault.DELAY:
                await asyncio.sleep(self._pause)
            await self._write(response, line, slowly=slow and number <= SLOW_EVENTS)
            if fault is Fault.DUPLICATE:
                await response.write(line)
        await response.write_eof()
        return response

    async def _write(self, response: web.StreamResponse, data: bytes, *, slowly: bool) -> None:
        if not slowly:
            await response.write(data)
            return
        pieces = 4
        size = max(1, -(-len(data) // pieces))
        for start in range(0, len(data), size):
            await asyncio.sleep(self._pause / pieces)
            await response.write(data[start : start + size])


async def _lines(stream: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Lines of any length; the reader's own line methods refuse long ones."""
    rest = b""
    async for chunk in stream.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line + b"\n"


async def _reset(request: web.Request) -> web.StreamResponse:
    """Drop the connection with RST, as a dying process or a firewall does."""
    transport = request.transport
    if transport is not None:
        # A twin, since what uvloop calls a socket takes no options; they belong to both.
        with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as twin:
            twin.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    return await _hang()


async def _hang() -> web.StreamResponse:
    """Say nothing until the client (or we) close the connection, which cancels this."""
    await asyncio.Event().wait()
    raise AssertionError("nobody sets this event")


def _refusal(fault: Fault) -> web.Response:
    code, reason = _STATUS[fault]
    headers = {"Retry-After": str(RETRY_AFTER)} if fault is Fault.THROTTLE else {}
    return web.Response(
        status=code,
        headers=headers,
        body=orjson.dumps(_status(code, reason)),
        content_type="application/json",
    )


def _status(code: int, reason: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"{reason}, by order of the fault proxy",
        "reason": reason,
        "code": code,
    }


def _event(kind: str, obj: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


def _passed(answer: aiohttp.ClientResponse) -> dict[str, str]:
    return {k: v for k, v in answer.headers.items() if k.lower() not in _HOP_HEADERS}
