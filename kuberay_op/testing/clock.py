"""A clock that stands still until a test moves it.

Code under test sleeps on the clock it was given; the test decides when time passes::

    clock = FakeClock()
    task = asyncio.create_task(renew_every(10, clock))
    await clock.advance(30)  # three renewals, in order, without waiting

Time moves in two ways. ``advance`` lets it flow: every sleeper wakes at its own moment and may go back to
sleep before the next one wakes. ``leap`` makes it jump, as it does for a process that was stopped and
continued: everything that fell due in between wakes at once, late.

Only sleepers of this clock are driven. ``asyncio.timeout`` and sockets follow the real clock.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final

#: Loop turns given to woken code to react, before time moves on. A chain of awaits that needs more turns
#: than this to reach its next sleep would be overtaken.
TURNS: Final = 100


class FakeClock:
    """Implements ``kuberay_op.clock.Clock``; see the module for how time passes."""

    def __init__(self, start: datetime = datetime(2030, 1, 1, tzinfo=UTC), *, turns: int = TURNS) -> None:
        self._start = start  # what the wall clock showed when ``monotonic`` was 0
        self._monotonic = 0.0
        self._turns = turns
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """Wall time, in UTC."""
        return self._start + timedelta(seconds=self._monotonic)

    def monotonic(self) -> float:
        """Seconds since this clock was made."""
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        """Wait until the test has moved time far enough."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._monotonic + seconds, next(self._order), future))
        await future

    @property
    def sleepers(self) -> int:
        """How many tasks are asleep on this clock."""
        return sum(1 for _, _, future in self._sleepers if not future.done())

    async def settle(self) -> None:
        """Let everything run that can run without time passing."""
        for _ in range(self._turns):
            await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        """Let time flow: wake each sleeper at its moment, and let it act, before the next."""
        await self.settle()
        end = self._monotonic + seconds
        while (due := self._next_due()) is not None and due <= max(end, self._monotonic):
            self.skip(due - self._monotonic)
            self._wake()
            await self.settle()
        self.skip(end - self._monotonic)
        await self.settle()

    async def leap(self, seconds: float) -> None:
        """Let time jump: nobody runs in between, then all who are due wake together."""
        self.skip(seconds)
        self._wake()
        await self.settle()

    def skip(self, seconds: float) -> None:
        """Let time pass while the loop is busy or stopped: who is due wakes at the next ``advance``."""
        self._monotonic += max(0.0, seconds)

    def shift_wall(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an administrator or NTP may; ``monotonic`` goes on."""
        self._start += timedelta(seconds=seconds)

    def _next_due(self) -> float | None:
        while self._sleepers and self._sleepers[0][2].done():  # cancelled meanwhile
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def _wake(self) -> None:
        while (due := self._next_due()) is not None and due <= self._monotonic:
            heapq.heappop(self._sleepers)[2].set_result(None)


class FastClock:
    """A clock that runs ``speed`` times as fast as the machine's: minutes of waiting become seconds.

    Times that others write, such as the API server, are still the machine's.
    """

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._began = datetime.now(UTC)
        self._from = time.monotonic()

    def now(self) -> datetime:
        """Wall time, in UTC."""
        return self._began + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Seconds since this clock was made."""
        return (time.monotonic() - self._from) * self._speed

    async def sleep(self, seconds: float) -> None:
        """Wait, for less."""
        await asyncio.sleep(max(0.0, seconds) / self._speed)
