"""Time and randomness, passed in so that tests can drive them."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What time it is, and how to wait. Code under test gets ``kuberay_op.testing.clock.FakeClock``."""

    def now(self) -> datetime:
        """Wall time, in UTC: for timestamps that leave the process."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards: for durations and deadlines."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; returns at once for zero or less."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Wall time, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since some fixed moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait on the event loop."""
        await asyncio.sleep(max(0.0, seconds))
