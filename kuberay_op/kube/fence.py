"""The write fence: no write leaves this process, or is carried out, unless we may write.

Only the leader may write. A process can lose its lease without noticing: it was stopped, or starved of CPU,
between the moment it decided to write and the moment the bytes go out. So the question is asked late, in the
call that hands the bytes to the socket, and its answer is a number of seconds: until then the write must
have happened. That number goes along as the request's ``timeout``, so that a server that got the headers
in time and the body too late, or whose storage hangs, gives the write up by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from kuberay_op.kube.errors import ApiError

#: Asked before each write: raises :class:`NotLeader`, or gives the seconds in which it must have happened.
Fence = Callable[[], float]

#: Seconds that may pass between choosing a request's ``timeout`` and sending it.
SLACK: Final = 1.0

READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class NotLeader(ApiError):
    """This process may not write now; nothing was sent."""


class OnceBody(aiohttp.BytesPayload):
    """The body of a write. aiohttp repeats PUT and DELETE after a lost connection unless their body is used
    up, so it always is: whether a write may be repeated is for the client to decide.
    """

    @property
    def consumed(self) -> bool:
        """Say that this cannot be sent a second time."""
        return True


class FencedBody(OnceBody):
    """The body of a write that only the leader may make. aiohttp holds the headers back until the body is
    written, so this guards both.

    ``seconds`` is what the fence said when the request was made, and what the server is told.
    """

    def __init__(self, value: bytes, fence: Fence, seconds: float, **options: Any) -> None:
        super().__init__(value, **options)
        self._fence = fence
        self._seconds = seconds

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Ask the fence, then write."""
        if self._fence() < self._seconds - SLACK:
            raise NotLeader("connecting took so long that the write could have outlived the lease; not sent")
        await super().write_with_length(writer, content_length)


def refused(error: BaseException) -> NotLeader | None:
    """The fence's refusal, if that is why a request could not be sent."""
    cause = error.__cause__
    return cause if isinstance(cause, NotLeader) else None
