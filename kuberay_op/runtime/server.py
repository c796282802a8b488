"""The small HTTP servers of the operator: probes, metrics and, if wanted, ``/debug`` and the webhook."""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from kuberay_op.errors import Misconfigured
from kuberay_op.metrics import Metrics
from kuberay_op.runtime.health import Check, Health, report

#: Host and port; an empty host means every interface.
Address = tuple[str, int]

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

#: Bytes of a request that are read at most, where nothing else is said.
LARGEST: Final = 1 << 20

#: Seconds that answers under way get when a server closes.
CLOSING: Final = 1.0


def health_routes(health: Health) -> list[web.RouteDef]:
    """``/healthz`` and ``/readyz``."""

    def probe(checks: dict[str, Check]) -> Handler:
        async def answer(_: web.Request) -> web.Response:
            well, text = await report(checks)
            return web.Response(status=200 if well else 500, text=text)

        return answer

    return [web.get("/healthz", probe(health.live)), web.get("/readyz", probe(health.ready))]


def metrics_routes(metrics: Metrics) -> list[web.RouteDef]:
    """``/metrics``."""

    async def answer(request: web.Request) -> web.Response:
        # In a thread: printing many series takes longer than the loop may be kept.
        body, kind = await asyncio.to_thread(metrics.render, request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": kind})

    return [web.get("/metrics", answer)]


@asynccontextmanager
async def serving(
    address: Address,
    routes: Iterable[web.RouteDef],
    *,
    option: str,
    tls: ssl.SSLContext | None = None,
    largest: int = LARGEST,
) -> AsyncIterator[Address]:
    """Serve ``routes`` while the context lasts; gives the address with the real port.

    ``option`` names the setting in the error for an address that cannot be had; with ``tls`` it is HTTPS.
    """
    app = web.Application(client_max_size=largest)
    app.add_routes(routes)
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=CLOSING)
    await runner.setup()
    try:
        host, port = address
        site = web.TCPSite(runner, host or None, port, ssl_context=tls)
        try:
            await site.start()
        except OSError as error:
            raise Misconfigured(_why_not(address, option, error)) from error
        yield host, runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _why_not(address: Address, option: str, error: OSError) -> str:
    host, port = address
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if error.errno == errno.EADDRINUSE:
        return f"{option} is {where!r}, but another program listens there; choose another port, or 0 for none"
    return f"{option} is {where!r}, where we cannot listen: {error.strerror or error}"
