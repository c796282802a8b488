"""A fake API server: an aiohttp application in this process that answers as the test tells it to.

It knows no Kubernetes. Tests that claim something about Kubernetes are in ``tests/apiserver/kube``.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohttp import web
from aiohttp.test_utils import TestServer

from kuberay_op.clock import Clock, SystemClock
from kuberay_op.kube.client import Client
from kuberay_op.kube.config import Connection
from kuberay_op.kube.credentials import Material, PlainCredentials
from kuberay_op.kube.ratelimit import RateLimiter
from kuberay_op.kube.session import ClientMetrics, Session

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class FakeApi:
    """Serves the answers put into ``answers``, first come first served; the last one again and again."""

    def __init__(self, *answers: Answer | web.Response | tuple[int, Any]) -> None:
        self.answers = list(answers)
        self.requests: list[web.Request] = []
        self.bodies: list[Any] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        body = await request.read()
        self.bodies.append(orjson.loads(body) if body else None)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, web.Response):
            return web.Response(status=answer.status, body=answer.body, headers=answer.headers)
        if isinstance(answer, tuple):
            return json(answer[1], status=answer[0])
        return await answer(request)


def json(body: Any, *, status: int = 200, **headers: str) -> web.Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.Response(
        body=orjson.dumps(body), status=status, headers=names, content_type="application/json"
    )


def failure(code: int, reason: str, message: str = "no", **details: Any) -> dict[str, Any]:
    """A ``Status`` as the API server would send it."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        "details": details,
    }


def pod(name: str, version: int = 1, *, uid: str | None = None, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **fields}


def line(kind: str, obj: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


def bookmark(version: int, *, end: bool = False) -> bytes:
    annotations = {"k8s.io/initial-events-end": "true"} if end else {}
    return line(
        "BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version), "annotations": annotations}}
    )


def streams(*chunks: bytes, then: Callable[[web.Request], Awaitable[None]] | None = None) -> Answer:
    """An answer in chunks; ``then`` decides how it goes on (by default it ends)."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if then is not None:
            await then(request)
        return response

    return answer


@asynccontextmanager
async def connected(
    api: FakeApi,
    *,
    clock: Clock | None = None,
    material: Material | None = None,
    metrics: ClientMetrics | None = None,
    deadline: float = 10.0,
    qps: float = 0.0,
    burst: int = 1,
) -> AsyncIterator[Client]:
    """A client that talks to the fake."""
    clock = clock or SystemClock()
    app = web.Application(client_max_size=64 << 20)
    app.router.add_route("*", "/{path:.*}", api.handle)
    async with TestServer(app) as server:
        # In a thread, as in production: reading the system's authorities takes tens of milliseconds.
        credentials = await asyncio.to_thread(PlainCredentials, material or Material(), clock)
        connection = Connection(str(server.make_url("")).rstrip("/"), credentials)
        client = Client(
            Session(connection, user_agent="test", metrics=metrics),
            limiter=RateLimiter(qps, burst, clock),
            clock=clock,
            rng=random.Random(7),  # noqa: S311 – jitter that is the same in every run
            metrics=metrics,
            deadline=deadline,
        )
        async with client:
            yield client


async def until(true: Callable[[], object]) -> None:
    """Wait until something has come about; the test's time limit ends a wait for nothing."""
    while not true():  # noqa: ASYNC110 – what is waited for sets no event
        await asyncio.sleep(0.001)
