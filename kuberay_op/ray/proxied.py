"""The transport for Ray that only the API server can reach: its proxy of Services and Pods.

The operator's own session with the API server carries the request, so that its credentials and TLS are
used. This package does not know that session's class; what it must be able to do is ``ApiServer``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

from kuberay_op.errors import OperatorError
from kuberay_op.ray.answers import Response
from kuberay_op.ray.errors import TimedOut, TooLarge, Unreachable


class ApiServer(Protocol):
    """Sends a request to any path of the API server and gives back whatever comes: an error status is an
    answer, nothing is tried again, and of a body longer than ``max_bytes`` the first ``max_bytes + 1`` bytes
    are given.
    """

    async def exchange(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None, max_bytes: int
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of the answer; raises an ``OperatorError`` when there is none."""
        ...


class ProxiedTransport:
    """Sends requests through the API server."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

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
        try:
            async with asyncio.timeout(within):
                status, answered, content = await self._server.exchange(
                    method, target, headers=headers, body=body, max_bytes=max_bytes
                )
        except TimeoutError:
            raise TimedOut(f"no complete answer through the API server within {within:g} s") from None
        except OperatorError as error:
            raise Unreachable(f"the API server did not pass the request on ({error})") from None
        if len(content) > max_bytes:
            raise TooLarge(f"the answer has more than {max_bytes} bytes")
        return Response(status, {name.lower(): value for name, value in answered.items()}, content)
