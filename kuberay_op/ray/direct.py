"""The transport for Ray that we can reach ourselves: httpx.

In-cluster addresses are never sent through an HTTP proxy from the environment: ``HTTP_PROXY`` is for the
world outside, and ``NO_PROXY`` with address ranges, which operators' Pods often have, is not something that
httpx understands.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

import httpcore  # noqa: F401 - httpx imports it when first used, which would hold the event loop up
import httpx

from kuberay_op.ray.answers import Response
from kuberay_op.ray.errors import Garbled, TimedOut, TooLarge, Unreachable

#: Idle connections kept open, over all clusters, and for how many seconds. Ray keeps them for longer, so
#: that we never send on a connection that it is just closing.
KEEP_ALIVE: Final = 64
KEEP_ALIVE_SECONDS: Final = 5.0


class HttpxTransport:
    """One pool of connections for all clusters; close it with ``aclose`` or ``async with``.

    ``proxy`` sends everything through an HTTP proxy: ``http://127.0.0.1:8265`` of a fake Ray that plays many
    clusters. ``transport`` replaces the network itself, in tests. ``tls`` is only for addresses with
    ``https://``, which we never make ourselves: Ray's dashboard speaks plain HTTP.
    """

    def __init__(
        self,
        *,
        proxy: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._client = httpx.AsyncClient(
            # Left alone, httpx reads all certificates of the world, which holds the event loop up.
            verify=tls or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            transport=transport,
            proxy=proxy,
            trust_env=False,
            follow_redirects=False,
            timeout=None,  # noqa: S113 - send() has a deadline over the whole exchange, httpx only per step
            limits=httpx.Limits(
                max_connections=None,  # bounded per cluster, so that no cluster waits for another
                max_keepalive_connections=KEEP_ALIVE,
                keepalive_expiry=KEEP_ALIVE_SECONDS,
            ),
        )

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
        """Send the request and read the answer, in ``within`` seconds and ``max_bytes`` bytes."""
        answering = False
        try:
            async with (
                asyncio.timeout(within),
                self._client.stream(method, target, headers=dict(headers), content=body) as answer,
            ):
                answering = True
                return Response(
                    answer.status_code,
                    {name.lower(): value for name, value in answer.headers.items()},
                    await _read(answer, max_bytes),
                )
        except (TimeoutError, httpx.TimeoutException):
            raise TimedOut(f"no complete answer from {_host(target)} within {within:g} s") from None
        except httpx.DecodingError:
            raise Garbled(f"the answer from {_host(target)} cannot be decompressed") from None
        except (httpx.RequestError, httpx.InvalidURL) as error:
            if answering:
                raise Garbled(f"the answer from {_host(target)} ends in the middle") from None
            raise Unreachable(f"no connection to {_host(target)} ({_why(error)})") from None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


async def _read(answer: httpx.Response, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in answer.aiter_bytes():
        body += chunk
        if len(body) > max_bytes:
            raise TooLarge(f"the answer from {answer.url.host} has more than {max_bytes} bytes")
    return bytes(body)


def _host(target: str) -> str:
    """``host:port`` of a URL: enough to find the culprit, and no id or query in the way."""
    return target.split("://", 1)[-1].split("/", 1)[0]


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
