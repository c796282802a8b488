"""FakeClock: sleepers wake in order and only when a test moves time."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from kuberay_op.clock import Clock
from kuberay_op.testing.clock import FakeClock


async def test_sleepers_wake_at_their_own_moment_and_may_sleep_again() -> None:
    clock = FakeClock()
    seen: list[tuple[str, float]] = []

    async def tick(name: str, every: float) -> None:
        while True:
            await clock.sleep(every)
            seen.append((name, clock.monotonic()))

    tasks = [asyncio.create_task(tick("a", 2)), asyncio.create_task(tick("b", 3))]
    await clock.advance(6)
    for task in tasks:
        task.cancel()
    assert seen == [("a", 2), ("b", 3), ("a", 4), ("b", 6), ("a", 6)]


async def test_a_leap_wakes_everyone_late() -> None:
    clock: FakeClock = FakeClock()
    seen: list[float] = []

    async def once(seconds: float) -> None:
        await clock.sleep(seconds)
        seen.append(clock.monotonic())

    async with asyncio.TaskGroup() as group:
        group.create_task(once(1))
        group.create_task(once(5))
        await clock.settle()
        assert clock.sleepers == 2
        await clock.leap(60)
    assert seen == [60, 60]


async def test_nothing_happens_while_time_stands_still() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(0.001))
    await clock.settle()
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert clock.sleepers == 0
    await clock.advance(1)  # a cancelled sleeper is passed over


async def test_wall_time_follows_and_can_be_shifted() -> None:
    clock = FakeClock()
    protocol: Clock = clock  # the fake satisfies the protocol
    start = protocol.now()
    await clock.advance(90)
    assert clock.now() - start == timedelta(seconds=90)
    clock.shift_wall(-3600)
    assert clock.now() < start
    assert clock.monotonic() == 90


async def test_sleeping_for_nothing_returns_without_time_passing() -> None:
    clock = FakeClock()
    await clock.sleep(0)
    await clock.sleep(-1)
    assert clock.monotonic() == 0
