"""The client-side rate limit: a token bucket that is fair between objects.

While there are tokens nobody waits. When there are none, waiters are served round-robin by their owner (the
object they work for), so that one object with a hundred Pods to make does not hold up the others.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Final

from kuberay_op.clock import Clock

#: What adding up fractions of a token may lose.
ROUNDING: Final = 1e-6


class _Urgent:
    def __repr__(self) -> str:
        return "URGENT"


#: The owner of calls that must not wait in line, such as renewing the leader's lease.
URGENT: Final[Hashable] = _Urgent()


class TokenBucket:
    """Fills with ``rate`` tokens a second up to ``size``; a rate of zero or less means no limit."""

    __slots__ = ("_clock", "_filled", "_tokens", "rate", "size")

    def __init__(self, rate: float, size: int, clock: Clock) -> None:
        self.rate = rate
        self.size = max(1, size)
        self._clock = clock
        self._tokens = float(self.size)
        self._filled = clock.monotonic()

    def take(self) -> bool:
        """Take a token if there is one."""
        if self.rate <= 0:
            return True
        self._fill()
        if self._tokens < 1 - ROUNDING:
            return False
        self._tokens -= 1
        return True

    def wait(self) -> float:
        """Seconds until there is a token."""
        self._fill()
        return 0.0 if self.rate <= 0 else max(0.0, (1 - self._tokens) / self.rate)

    def _fill(self) -> None:
        now = self._clock.monotonic()
        self._tokens = min(float(self.size), self._tokens + (now - self._filled) * self.rate)
        self._filled = now


class RateLimiter:
    """Makes callers wait for their turn; see :meth:`acquire`."""

    def __init__(self, qps: float, burst: int, clock: Clock) -> None:
        self._bucket = TokenBucket(qps, burst, clock)
        self._clock = clock
        self._waiting: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()
        self._pump: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """How many calls wait for a token."""
        return sum(map(len, self._waiting.values()))

    async def acquire(self, owner: Hashable = None) -> float:
        """Wait for a token and say how many seconds that took."""
        if owner is URGENT or (not self._waiting and self._bucket.take()):
            return 0.0
        start = self._clock.monotonic()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._serve(), name="kube rate limiter")
        await turn
        return self._clock.monotonic() - start

    async def close(self) -> None:
        """Stop serving; whoever still waits is cancelled."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
        for line in self._waiting.values():
            for turn in line:
                turn.cancel()
        self._waiting.clear()

    async def _serve(self) -> None:
        while self._waiting:
            owner, line = self._waiting.popitem(last=False)
            # A caller whose deadline passed has cancelled its turn and must not cost a token.
            while line and line[0].done():
                line.popleft()
            if not line:
                continue
            if not self._bucket.take():
                self._waiting[owner] = line
                self._waiting.move_to_end(owner, last=False)
                await self._clock.sleep(self._bucket.wait())
                continue
            line.popleft().set_result(None)
            if line:
                self._waiting[owner] = line
