"""The transport for Ray that we can reach ourselves: aiohttp, as for the API server.

In-cluster addresses are never sent through an HTTP proxy from the environment: ``HTTP_PROXY`` is for the
world outside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

import aiohttp
from yarl import URL

from kuberay_op.ray.answers import Response
from kuberay_op.ray.errors import Garbled, TimedOut, TooLarge, Unreachable

#: Seconds an idle connection is kept. Ray keeps it for longer, so that we never send on a connection that it
#: is just closing.
KEEP_ALIVE: Final = 5.0


class DirectTransport:
    """One pool of connections for all clusters; make it in a running event loop, close it when done.

    ``proxy`` sends everything through an HTTP proxy: ``http://127.0.0.1:8265`` of a fake Ray that plays many
    clusters.
    """

    def __init__(self, *, proxy: str | None = None) -> None:
        self._proxy = proxy
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,  # bounded per cluster, so that no cluster waits for another
                keepalive_timeout=KEEP_ALIVE,
                use_dns_cache=False,  # a new head Pod has a new address
            ),
            timeout=aiohttp.ClientTimeout(total=None),  # send() has a deadline over the whole exchange
            headers={"Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
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
            url = URL(target, encoded=True)
            async with (
                asyncio.timeout(within),
                self._http.request(
                    method, url, headers=headers, data=body, proxy=self._proxy, allow_redirects=False
                ) as answer,
            ):
                answering = True
                found = {name.lower(): value for name, value in answer.headers.items()}
                return Response(answer.status, found, await _read(answer, max_bytes))
        except TimeoutError:
            raise TimedOut(f"no complete answer from {_host(target)} within {within:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if answering:
                raise Garbled(f"the answer from {_host(target)} ends in the middle") from None
            raise Unreachable(f"no connection to {_host(target)} ({_why(error)})") from None

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


async def _read(answer: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > max_bytes:
            answer.close()  # the rest is not worth the time
            raise TooLarge(f"the answer from {answer.url.host} has more than {max_bytes} bytes")
    return bytes(body)


def _host(target: str) -> str:
    """``host:port`` of a URL: enough to find the culprit, and no id or query in the way."""
    return target.split("://", 1)[-1].split("/", 1)[0]


def _why(error: Exception) -> str:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return str(cause) or type(cause).__name__
