"""One HTTP session with the API server: connections, credentials, bytes in and out, errors.

Above it, :mod:`kuberay_op.kube.client` adds verbs, the rate limit and retries.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import aiohttp
import orjson
from aiohttp.connector import NEEDS_CLEANUP_CLOSED

from kuberay_op.kube.config import Connection
from kuberay_op.kube.errors import ApiError, Unauthorized, Unreachable, error_of
from kuberay_op.kube.fence import READS, Fence, FencedBody, OnceBody, refused
from kuberay_op.kube.request import Request

#: Calls under way at once, watches not counted.
CONCURRENCY: Final = 64

#: Bytes that a watch may buffer before it stops reading from the socket.
READ_BUFFER: Final = 1 << 17

#: What client-go calls the code of a request without an answer.
NO_ANSWER: Final = "<error>"

#: The kernel's view of a dead peer: probes after 15 s of silence, given up after another 45 s. Bytes that the
#: peer has not acknowledged for 5 s are given up too, so that no write arrives long after it was sent.
KEEPALIVE: Final = (
    ("TCP_KEEPIDLE", 15),
    ("TCP_KEEPINTVL", 15),
    ("TCP_KEEPCNT", 3),
    ("TCP_USER_TIMEOUT", 5000),
)


class ClientMetrics(Protocol):
    """What the client reports; ``kuberay_op.metrics`` turns it into the ``rest_client_*`` metrics."""

    def request(self, *, verb: str, host: str, code: str, seconds: float, sent: int, received: int) -> None:
        """A request got an answer (or, with code ``<error>``, none)."""
        ...

    def rate_limited(self, *, verb: str, host: str, seconds: float) -> None:
        """A request waited this long for its turn."""
        ...

    def retried(self, *, verb: str, host: str, code: str) -> None:
        """A request is sent again after this answer."""
        ...

    def resolved(self, *, host: str, seconds: float) -> None:
        """The server's name was looked up."""
        ...


class Session:
    """Sends requests to one API server. Create it inside a running event loop, close it when done."""

    def __init__(
        self,
        connection: Connection,
        *,
        user_agent: str,
        metrics: ClientMetrics | None = None,
        fence: Fence | None = None,
    ) -> None:
        self.connection = connection
        self._fence = fence
        self.host = urlsplit(connection.server).netloc
        self._metrics = metrics
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._http = aiohttp.ClientSession(
            # The slots above limit calls; a limit here would let watches starve them.
            connector=aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=60,
                socket_factory=_keepalive_socket,
                # Where Python itself would wait for a server's farewell for half a minute.
                enable_cleanup_closed=NEEDS_CLEANUP_CLOSED,
            ),
            headers={
                "User-Agent": user_agent,
                "Accept": "application/json",
                # The server's gzip costs both sides more CPU than the bytes are worth inside a cluster.
                "Accept-Encoding": "identity",
            },
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            read_bufsize=READ_BUFFER,
            trace_configs=[_dns_trace(metrics)] if metrics else [],
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()
        await asyncio.sleep(0)  # sockets are closed in the next round of the loop

    async def send(self, request: Request, *, urgent: bool = False) -> bytes:
        """Send a request and read the whole answer.

        Raises an :class:`~kuberay_op.kube.errors.ApiError` for anything but success. The caller sets the
        time limit. An ``urgent`` request does not wait for others to be done.
        """
        async with contextlib.nullcontext() if urgent else self._slots, self._open(request) as response:
            return await response.read()

    async def exchange(self, request: Request, *, max_bytes: int) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request that the server passes on, once, and give back whatever comes.

        Of a body longer than ``max_bytes`` the first ``max_bytes + 1`` bytes are given.
        """
        async with self._slots:
            answer = await self._exchange(request, max_bytes)
            if answer[0] == HTTPStatus.UNAUTHORIZED and _from_the_server(answer[2]):
                # A rotated token looks like this. Nothing was passed on, so once more is safe.
                await self.connection.credentials.renew()
                answer = await self._exchange(request, max_bytes)
            return answer

    async def _exchange(self, request: Request, max_bytes: int) -> tuple[int, Mapping[str, str], bytes]:
        async with self._open(request) as response:
            body = bytearray()
            async for part in response.content.iter_any():
                body += part
                if len(body) > max_bytes:
                    break
            return response.status, response.headers, bytes(body[: max_bytes + 1])

    @contextlib.asynccontextmanager
    async def stream(self, request: Request, *, within: float) -> AsyncIterator[aiohttp.StreamReader]:
        """Open an answer that goes on; its start must come ``within`` seconds.

        Transport errors while the body is read come out as :class:`~kuberay_op.kube.errors.Unreachable`.
        """
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(within):
                response = await stack.enter_async_context(self._open(request, endless=True))
            yield response.content

    @contextlib.asynccontextmanager
    async def _open(
        self, request: Request, *, endless: bool = False
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with contextlib.AsyncExitStack() as stack:
                try:
                    response = await stack.enter_async_context(self._attempt(request, endless=endless))
                except Unauthorized:
                    # A rotated token looks like this. The server has not acted, so once more is safe.
                    await self.connection.credentials.renew()
                    response = await stack.enter_async_context(self._attempt(request, endless=endless))
                yield response
        except (aiohttp.ClientError, OSError) as error:
            if type(error) is TimeoutError and error.errno is None:
                raise  # the caller's own time limit, not the kernel's
            raise refused(error) or self._unreachable(request, error) from error

    @contextlib.asynccontextmanager
    async def _attempt(self, request: Request, *, endless: bool) -> AsyncIterator[aiohttp.ClientResponse]:
        connection = self.connection
        headers = dict(request.headers)
        authorization = await connection.credentials.authorization()
        if authorization:
            headers["Authorization"] = authorization
        if request.body is not None and not request.passed_on:
            headers["Content-Type"] = request.content_type
        options: dict[str, Any] = {}
        if connection.server.startswith("https"):
            options["ssl"] = connection.credentials.tls
        params, body = request.params, request.body
        data: aiohttp.BytesPayload | None = None
        if request.method not in READS:
            if self._fence is None:
                data = OnceBody(body or b"", content_type=request.content_type)
            else:
                seconds = self._fence()
                data = FencedBody(body or b"", self._fence, seconds, content_type=request.content_type)
                if not request.passed_on:
                    params = {**params, "timeout": f"{seconds:.3f}s"}
                    options["expect100"] = bool(body)
        start = time.perf_counter()
        code, received, answered = NO_ANSWER, 0, 0.0
        try:
            async with self._http.request(
                request.method,
                connection.server + request.path,
                params=params,
                data=data,
                headers=headers,
                proxy=connection.proxy,
                server_hostname=connection.server_name,
                allow_redirects=False,
                **options,
            ) as response:
                code = str(response.status)
                if response.status >= 300 and not request.passed_on:
                    raise await _refusal(request, response)
                if endless:  # how long it lasts says nothing about the server
                    answered = time.perf_counter()
                yield response
                received = response.content.total_bytes
        finally:
            if self._metrics is not None:
                self._metrics.request(
                    verb=request.method,
                    host=self.host,
                    code=code,
                    seconds=(answered or time.perf_counter()) - start,
                    sent=len(body or b""),
                    received=received,
                )

    def _unreachable(self, request: Request, error: Exception) -> Unreachable:
        sent = not isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
        return Unreachable(
            f"{request.doing}: no usable answer from the API server at {self.host}: {_describe(error)}",
            sent=sent,
        )


def _from_the_server(body: bytes) -> bool:
    """Whether the API server itself wrote this answer, not the one it passes requests on to."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(answer, dict) and answer.get("kind") == "Status"


async def _refusal(request: Request, response: aiohttp.ClientResponse) -> ApiError:
    error = error_of(response.status, await response.read(), doing=request.doing, path=request.path)
    header = response.headers.get("Retry-After", "")
    if header.isdigit():
        error.retry_after = float(header)
    return error


def _describe(error: Exception) -> str:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return str(cause) or type(cause).__name__


def _keepalive_socket(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, _, _ = address
    sock = socket.socket(family=family, type=kind, proto=protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE:
        if hasattr(socket, name):  # not every system has every one
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return sock


def _dns_trace(metrics: ClientMetrics) -> aiohttp.TraceConfig:
    trace = aiohttp.TraceConfig()

    async def start(_: aiohttp.ClientSession, context: Any, params: Any) -> None:
        context.resolving = time.perf_counter()

    async def end(
        _: aiohttp.ClientSession, context: Any, params: aiohttp.TraceDnsResolveHostEndParams
    ) -> None:
        metrics.resolved(host=params.host, seconds=time.perf_counter() - context.resolving)

    trace.on_dns_resolvehost_start.append(start)
    trace.on_dns_resolvehost_end.append(end)
    return trace
