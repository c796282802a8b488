"""Many fake clusters behind one socket, behind a socket each, or without any.

A request is for the cluster

- whose own port it came to (``FakeRay.open_port``),
- that its path names: ``/clusters/NAME/...``, or the API server's proxy paths,
- that its host names: ``SERVICE.NAMESPACE.svc...`` is the cluster ``NAMESPACE/SERVICE``; this is how a client
  reaches all clusters that uses the fake as its HTTP proxy,
- else ``default``.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httpx
import orjson
from aiohttp import web

from kuberay_op.clock import Clock, SystemClock
from kuberay_op.ray.answers import Response
from kuberay_op.ray.errors import Garbled, TimedOut, TooLarge, Unreachable
from kuberay_op.testing.fake_ray.cluster import FakeCluster, Gone, Truncated
from kuberay_op.testing.fake_ray.http import Fault, Reply, Request, json_reply, text_reply
from kuberay_op.testing.fake_ray.jobs import JobScript
from kuberay_op.testing.fake_ray.serve import AppScript
from kuberay_op.testing.fake_ray.tail import tail, tailed_job

DEFAULT: Final = "default"
BY_PATH: Final = re.compile(r"^/clusters/(?P<name>.+?)(?P<rest>/(?:api|-)/.*)$")
BY_PROXY: Final = re.compile(
    r"^/api/v1/namespaces/(?P<namespace>[^/]+)/(?:services|pods)/(?P<name>[^/:]+):[^/]+/proxy(?P<rest>/.*)$"
)
BY_HOST: Final = re.compile(r"^(?P<name>[^.]+)\.(?P<namespace>[^.]+)\.svc(?:\.|$)")
#: Where a running fake is asked and told about itself.
CONTROL: Final = "/_fake"


class FakeRay:
    """Fake clusters by name, and the ways to reach them.

    With ``auto`` a cluster comes into being when somebody asks for it; otherwise unknown names are 404. Its
    token, scripts and fault are what a new cluster begins with. Use ``async with`` for real sockets; the
    transports need none.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        auto: bool = False,
        token: str | None = None,
        jobs: JobScript | None = None,
        apps: AppScript | None = None,
        fault: Fault | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.auto = auto
        self.token = token
        self.job_script = jobs or JobScript()
        self.app_script = apps or AppScript()
        self.fault = fault
        self.clusters: dict[str, FakeCluster] = {}
        self.port = 0
        self._names: dict[str, str] = {}
        self._ports: dict[int, str] = {}
        self._sites: dict[str, web.SockSite] = {}
        self._runner: web.AppRunner | None = None

    def cluster(self, name: str = DEFAULT, *, hosts: tuple[str, ...] = ()) -> FakeCluster:
        """The cluster of this name, made when it is new; ``hosts`` are further names or addresses for it."""
        for host in hosts:
            self._names[host] = name
        if name not in self.clusters:
            self.clusters[name] = FakeCluster(
                name,
                clock=self.clock,
                token=self.token,
                jobs=self.job_script,
                apps=self.app_script,
                fault=self.fault,
            )
        return self.clusters[name]

    def transport(self) -> FakeTransport:
        """All clusters as a transport of ``kuberay_op.ray.client``, without sockets."""
        return FakeTransport(self)

    def httpx_transport(self) -> httpx.MockTransport:
        """All clusters as a transport of httpx, without sockets."""
        return httpx.MockTransport(self._mock)

    def address(self, name: str = DEFAULT) -> str:
        """``host:port/path`` of a cluster on the shared port, as a client takes for an address."""
        return f"127.0.0.1:{self.port}/clusters/{name}"

    async def start(self, *, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen; 0 is any free port."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        # A client that goes away ends its request here too, or every hanging one would stay for ever.
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        self.port = await self._listen(DEFAULT, host, port)

    async def open_port(self, name: str = DEFAULT) -> str:
        """``host:port`` of a cluster with a port of its own."""
        self.cluster(name)
        port = await self._listen(f"own {name}", "127.0.0.1", 0)
        self._ports[port] = name
        return f"127.0.0.1:{port}"

    async def take_down(self, name: str = DEFAULT) -> None:
        """Nobody listens any more on the cluster's own port, and open connections are dropped."""
        await self._sites.pop(f"own {name}").stop()
        self.cluster(name).fault = Fault("gone")

    async def bring_up(self, name: str = DEFAULT) -> None:
        """Listen again, on the same port."""
        port = next(port for port, owner in self._ports.items() if owner == name)
        self.cluster(name).fault = None
        await self._listen(f"own {name}", "127.0.0.1", port)

    async def close(self) -> None:
        """Close all sockets."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _listen(self, what: str, host: str, port: int) -> int:
        if self._runner is None:
            raise RuntimeError("the fake Ray is not started; use `async with`")
        listener = socket.create_server((host, port))
        self._sites[what] = web.SockSite(self._runner, listener)
        await self._sites[what].start()
        return int(listener.getsockname()[1])

    def find(self, path: str, host: str, port: int | None = None) -> tuple[FakeCluster | None, str]:
        """The cluster that a request is for, and the path within it."""
        name, rest = self._ports.get(port or 0), path
        if name is None and (match := BY_PATH.match(path)):
            name, rest = match["name"], match["rest"]
        if name is None and (match := BY_PROXY.match(path)):
            name, rest = f"{match['namespace']}/{match['name']}", match["rest"]
        if name is None and (match := BY_HOST.match(host)):
            name = f"{match['namespace']}/{match['name']}"
        name = self._names.get(host if name is None else name, DEFAULT if name is None else name)
        if name not in self.clusters and not self.auto:
            return None, rest
        return self.cluster(name), rest

    async def reply(self, request: Request, host: str, port: int | None = None) -> Reply:
        """The answer of the cluster that a request is for; raises ``Gone`` and ``Truncated``."""
        cluster, path = self.find(request.path, host, port)
        if cluster is None:
            return text_reply(404, "no such fake cluster")
        return await cluster.handle(Request(request.method, path, request.headers, request.body))

    async def _mock(self, request: httpx.Request) -> httpx.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Request(request.method, request.url.raw_path.decode(), headers, request.content)
        try:
            reply = await self.reply(asked, request.url.host, request.url.port)
        except Gone:
            raise httpx.ConnectError("All connection attempts failed", request=request) from None
        except Truncated as error:
            return httpx.Response(error.reply.status, stream=_Broken(error.reply.body))
        return httpx.Response(reply.status, content=reply.body, headers={"content-type": reply.content_type})

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if request.path == CONTROL:
            return _to_aiohttp(self.control(await request.read()))
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Request(request.method, request.rel_url.raw_path_qs, headers, await request.read())
        transport = request.transport
        port = transport.get_extra_info("sockname")[1] if transport is not None else None
        try:
            return await self._tail(asked, request, port) or _to_aiohttp(
                await self.reply(asked, request.url.host or "", port)
            )
        except Gone:
            pass
        except Truncated as error:
            half = web.StreamResponse(
                status=error.reply.status,
                headers={
                    "content-type": error.reply.content_type,
                    "content-length": str(len(error.reply.body)),
                },
            )
            await half.prepare(request)
            await half.write(error.reply.body[: len(error.reply.body) // 2])
        if transport is not None:
            with contextlib.suppress(OSError):
                transport.close()
        return web.Response()

    async def _tail(
        self, asked: Request, request: web.Request, port: int | None
    ) -> web.StreamResponse | None:
        """A log that is to be followed; None when the request is another one or the cluster is not well."""
        cluster, path = self.find(asked.path, request.url.host or "", port)
        job = tailed_job(path)
        if cluster is None or job is None or (cluster.fault is not None and cluster.fault.hits(path)):
            return None
        cluster.requests.append(replace(asked, path=path))
        answer = await tail(cluster, asked, job, request)
        return _to_aiohttp(answer) if isinstance(answer, Reply) else answer

    def control(self, body: bytes) -> Reply:
        """Ask or tell a running fake: without a body what there is, with ``{"cluster": …}`` a change.

        A change may have ``fault`` (short form or null), ``jobs`` and ``apps`` (fields of their scripts),
        ``token`` and ``restart``.
        """
        if body:
            try:
                self._change(orjson.loads(body))
            except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
                return text_reply(400, f"cannot do that: {error}")
        return json_reply(
            {
                name: {
                    "jobs": len(cluster.jobs.all),
                    "applications": len(cluster.serve.apps),
                    "calls": dict(cluster.calls),
                    "busiest": cluster.busiest,
                    "fault": None if cluster.fault is None else cluster.fault.kind,
                }
                for name, cluster in sorted(self.clusters.items())
            }
        )

    def _change(self, change: dict[str, Any]) -> None:
        cluster = self.cluster(change["cluster"])
        if "fault" in change:
            cluster.fault = None if change["fault"] is None else Fault.parse(change["fault"])
        if "jobs" in change:
            cluster.jobs.script = JobScript(**change["jobs"])
        if "apps" in change:
            cluster.serve.script = AppScript(**change["apps"])
        if "token" in change:
            cluster.token = change["token"]
        if change.get("restart"):
            cluster.restart()


class FakeTransport:
    """A ``kuberay_op.ray.client.Transport`` that ends in the fake."""

    def __init__(self, fake: FakeRay) -> None:
        self._fake = fake

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
        """Ask the cluster that the target names."""
        url = urlsplit(target)
        path = url.path + (f"?{url.query}" if url.query else "")
        request = Request(method, path, {name.lower(): value for name, value in headers.items()}, body or b"")
        try:
            async with asyncio.timeout(within):
                reply = await self._fake.reply(request, url.hostname or "", url.port)
        except TimeoutError:
            raise TimedOut(f"no answer within {within:g} s") from None
        except Gone:
            raise Unreachable("no connection") from None
        except Truncated:
            raise Garbled("the answer ends in the middle") from None
        if len(reply.body) > max_bytes:
            raise TooLarge(f"the answer has more than {max_bytes} bytes")
        return Response(reply.status, {"content-type": reply.content_type}, reply.body)


class _Broken(httpx.AsyncByteStream):
    """Half a body, and then the connection breaks."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body[: len(self._body) // 2]
        raise httpx.RemoteProtocolError("peer closed connection without sending complete message body")


def _to_aiohttp(reply: Reply) -> web.Response:
    return web.Response(status=reply.status, body=reply.body, headers={"content-type": reply.content_type})
