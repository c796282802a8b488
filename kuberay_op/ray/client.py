"""Carries requests to one Ray cluster, directly or through the API server.

A ``Transport`` moves bytes and nothing else. ``RayClient`` adds what every request needs: the cluster's
gate, a deadline, the token, a limit on the answer's size, and the reading of the status code. The two APIs
stand on it (``dashboard``, ``serve``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import orjson

from kuberay_op import __version__
from kuberay_op.api import probes
from kuberay_op.clock import Clock
from kuberay_op.ray.answers import MAX_BYTES, Call, Response, problem
from kuberay_op.ray.errors import RayError, Unauthorized
from kuberay_op.ray.limits import Gate, Gates, NoMetrics, RayMetrics
from kuberay_op.ray.urls import Endpoint

#: Ray reads the token here too; the usual ``Authorization`` would be eaten by the API server's proxy.
TOKEN_HEADER: Final = "x-ray-authorization"  # noqa: S105 - the name of a header, not a token
#: Ray refuses writes from browsers, which it tells by this header; requests without it fail on old versions.
USER_AGENT: Final = f"kuberay-op/{__version__}"
#: Seconds a token is kept before it is read again.
TOKEN_LIFETIME: Final = 60.0


class Transport(Protocol):
    """Moves one request to its target and the answer back.

    ``target`` is a URL, or a path of the API server, as the endpoint says. Implementations raise
    ``TimedOut``, ``Unreachable``, ``Garbled`` or ``TooLarge``; any status code is an answer. They take
    ``within`` seconds at most, all in all, and put neither headers nor bodies into logs or errors.
    """

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
        """Send it and wait for the answer."""
        ...


class TokenSource(Protocol):
    """Reads a cluster's token. ``fresh`` means: Ray refused the last one, read the Secret again."""

    async def __call__(self, *, fresh: bool) -> str:
        """The token."""
        ...


class CachedToken:
    """A token that is read from its Secret when first needed, when it gets old, and when Ray refuses it."""

    def __init__(
        self, read: Callable[[], Awaitable[str]], *, clock: Clock, lifetime: float = TOKEN_LIFETIME
    ) -> None:
        self._read = read
        self._clock = clock
        self._lifetime = lifetime
        self._token: str | None = None
        self._read_at = 0.0

    async def __call__(self, *, fresh: bool) -> str:
        """The token, read anew when needed."""
        now = self._clock.monotonic()
        if fresh or self._token is None or now - self._read_at >= self._lifetime:
            self._token = await self._read()
            self._read_at = now
        return self._token

    def __repr__(self) -> str:
        return "CachedToken(***)"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds an answer may take, in total."""

    direct: float = float(probes.CLIENT_TIMEOUT)
    proxied: float = float(probes.PROXY_CLIENT_TIMEOUT)

    def of(self, endpoint: Endpoint) -> float:
        """The one for this endpoint."""
        return self.proxied if endpoint.proxied else self.direct


class RayClient:
    """Asks one cluster's Ray. Make it with ``Connector.client``; it holds nothing that must be closed."""

    def __init__(
        self,
        endpoint: Endpoint,
        transport: Transport,
        *,
        gate: Gate,
        clock: Clock,
        timeout: float,
        metrics: RayMetrics,
        token: TokenSource | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._transport = transport
        self._gate = gate
        self._clock = clock
        self._timeout = timeout
        self._metrics = metrics
        self._token = token

    def __repr__(self) -> str:
        return f"RayClient({self.endpoint})"

    async def ask(self, call: Call) -> Response:
        """The answer, when its status is 2xx; otherwise the error it stands for is raised."""
        started = self._clock.monotonic()
        outcome = "cancelled"
        try:
            answer = await self._authorized(call)
            outcome = "ok"
        except RayError as error:
            outcome = error.outcome
            raise
        finally:
            self._metrics.request(call=call.name, outcome=outcome, seconds=self._clock.monotonic() - started)
        return answer

    async def _authorized(self, call: Call) -> Response:
        token = await self._read_token(call, fresh=False)
        try:
            return await self._guarded(call, token)
        except Unauthorized:
            fresh = await self._read_token(call, fresh=True)
            if fresh == token:
                raise
        return await self._guarded(call, fresh)

    async def _read_token(self, call: Call, *, fresh: bool) -> str:
        if self._token is None:
            return ""
        token = (await self._token(fresh=fresh)).strip()
        if not token or not (token.isascii() and token.isprintable()):
            raise Unauthorized(
                f"{call.doing}: the token of {self._gate.cluster} is empty or has characters that no header "
                "may have; check its Secret"
            )
        return token

    async def _guarded(self, call: Call, token: str) -> Response:
        headers = {"accept": "application/json", "user-agent": USER_AGENT}
        if call.method in {"POST", "PUT"}:
            headers["content-type"] = "application/json"
        if token:
            headers[TOKEN_HEADER] = f"Bearer {token}"
        async with self._gate.guard(call.doing, patience=self._timeout):
            try:
                answer = await self._transport.send(
                    call.method,
                    self.endpoint.url(call.path),
                    headers=headers,
                    body=None if call.body is None else orjson.dumps(call.body),
                    within=self._timeout,
                    max_bytes=call.max_bytes,
                )
            except RayError as error:
                raise type(error)(f"{call.doing}: {error}") from None
            trouble = problem(call, answer, token=token)
            if trouble is not None:
                raise trouble
            return answer

    async def probe(self, path: str) -> int:
        """The status code of a plain GET, without token and breaker: for health, where "no" is an answer."""
        async with self._gate.slot(f"GET {path}", patience=self._timeout):
            answer = await self._transport.send(
                "GET",
                self.endpoint.url(path),
                headers={"user-agent": USER_AGENT},
                body=None,
                within=self._timeout,
                max_bytes=MAX_BYTES,
            )
        return answer.status


class Connector:
    """Makes clients for all clusters; they share transports, limits and metrics."""

    def __init__(
        self,
        *,
        direct: Transport,
        gates: Gates,
        clock: Clock,
        proxied: Transport | None = None,
        timeouts: Timeouts | None = None,
        metrics: RayMetrics | None = None,
    ) -> None:
        self._direct = direct
        self._proxied = proxied
        self._gates = gates
        self._clock = clock
        self._timeouts = timeouts or Timeouts()
        self._metrics = metrics or NoMetrics()

    def client(self, cluster: str, endpoint: Endpoint, *, token: TokenSource | None = None) -> RayClient:
        """A client for the cluster (``namespace/name``) at this endpoint. Cheap: make one per use."""
        transport = self._proxied if endpoint.proxied else self._direct
        if transport is None:
            raise ValueError(f"{endpoint} needs a transport through the API server, and none was given")
        return RayClient(
            endpoint,
            transport,
            gate=self._gates.of(cluster),
            clock=self._clock,
            timeout=self._timeouts.of(endpoint),
            metrics=self._metrics,
            token=token,
        )

    def forget(self, cluster: str) -> None:
        """The cluster is gone: drop its limit and breaker."""
        self._gates.forget(cluster)
