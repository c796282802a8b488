"""The write fence: no write is carried out unless we may write.

Only the leader may write, and a process can lose its lease without noticing: it was stopped, or starved of
CPU, between its decision to write and the moment the bytes go out, or in the middle of sending them. No check
of ours can be later than the last instruction before the bytes leave. So the write is made in two steps, and
the server's clock runs from the first::

    fence open? ──► headers, with timeout=SECONDS and "Expect: 100-continue"
                    the server starts its clock, and asks for the body
    fence open? ──► body

Stopped before the headers leave: the second question is answered with no, and the body never leaves. Stopped
after it: when the body leaves at last, the server's time for it is up. SECONDS is what the fence gave, the
time within which the write must have happened; it also ends writes that hang in the server or in its storage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from kuberay_op.kube.errors import ApiError

#: Asked before each write: raises :class:`NotLeader`, or gives the seconds in which it must have happened.
Fence = Callable[[], float]

#: Seconds that may pass between choosing a request's ``timeout`` and sending its body.
SLACK: Final = 1.0

READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class NotLeader(ApiError):
    """This process may not write now; nothing was written."""


class OnceBody(aiohttp.BytesPayload):
    """The body of a write. aiohttp repeats PUT and DELETE after a lost connection unless their body is used
    up, so it always is: whether a write may be repeated is for the client to decide.
    """

    @property
    def consumed(self) -> bool:
        """Say that this cannot be sent a second time."""
        return True


class FencedBody(OnceBody):
    """The body of a write that only the leader may make.

    ``seconds`` is what the fence said when the request was made, and what the server is told. (Without a body
    to wait for, aiohttp holds the headers back until here, so then this is the only question.)
    """

    def __init__(self, value: bytes, fence: Fence, seconds: float, **options: Any) -> None:
        super().__init__(value, **options)
        self._fence = fence
        self._seconds = seconds

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Ask the fence, then write."""
        if self._fence() < self._seconds - SLACK:
            raise NotLeader("the server took so long that the write could have outlived the lease; not made")
        await super().write_with_length(writer, content_length)


def refused(error: BaseException) -> NotLeader | None:
    """The fence's refusal, if that is why a request could not be sent."""
    cause = error.__cause__
    return cause if isinstance(cause, NotLeader) else None
