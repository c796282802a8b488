from __future__ import annotations

import asyncio

import pytest

from kuberay_op.kube.ratelimit import URGENT, RateLimiter, TokenBucket
from kuberay_op.testing.clock import FakeClock


async def test_nobody_waits_while_there_are_tokens() -> None:
    limiter = RateLimiter(1.0, 3, FakeClock())
    assert [await limiter.acquire("a") for _ in range(3)] == [0.0, 0.0, 0.0]
    await limiter.close()


async def test_waiters_are_served_in_turn_by_owner() -> None:
    clock = FakeClock()
    limiter = RateLimiter(1.0, 1, clock)
    served: list[str] = []

    async def call(owner: str) -> None:
        await limiter.acquire(owner)
        served.append(owner)

    await limiter.acquire("first")
    async with asyncio.TaskGroup() as tasks:
        for owner in ("big", "big", "big", "big", "small", "tiny", "small"):
            tasks.create_task(call(owner))
        await clock.settle()
        assert limiter.waiting == 7
        assert served == []
        for _ in range(7):
            await clock.advance(1.0)
    assert served == ["big", "small", "tiny", "big", "small", "big", "big"]
    await limiter.close()


async def test_a_second_gives_as_many_tokens_as_configured() -> None:
    clock = FakeClock()
    limiter = RateLimiter(10.0, 5, clock)
    served = 0

    async def call(owner: int) -> None:
        nonlocal served
        await limiter.acquire(owner)
        served += 1

    calls = [asyncio.create_task(call(n)) for n in range(40)]
    await clock.settle()
    assert served == 5
    await clock.advance(1.0)
    assert served == 15
    await clock.advance(2.5)
    assert served == 40
    await asyncio.gather(*calls)
    await limiter.close()


async def test_a_waiter_that_gives_up_costs_no_token() -> None:
    clock = FakeClock()
    limiter = RateLimiter(1.0, 1, clock)
    await limiter.acquire()
    impatient = asyncio.create_task(limiter.acquire("impatient"))
    patient = asyncio.create_task(limiter.acquire("patient"))
    await clock.settle()
    impatient.cancel()
    await clock.advance(1.0)
    assert patient.done()
    assert impatient.cancelled()
    await limiter.close()


async def test_urgent_calls_do_not_wait() -> None:
    limiter = RateLimiter(0.001, 1, FakeClock())
    await limiter.acquire("a")
    assert await limiter.acquire(URGENT) == 0.0
    await limiter.close()


async def test_no_rate_means_no_limit() -> None:
    limiter = RateLimiter(0.0, 1, FakeClock())
    for _ in range(1000):
        assert await limiter.acquire() == 0.0
    await limiter.close()


async def test_closing_sends_waiters_away() -> None:
    limiter = RateLimiter(0.001, 1, FakeClock())
    await limiter.acquire()
    waiter = asyncio.create_task(limiter.acquire())
    await asyncio.sleep(0)
    await limiter.close()
    with pytest.raises(asyncio.CancelledError):
        await waiter


async def test_a_bucket_fills_up_to_its_size() -> None:
    clock = FakeClock()
    bucket = TokenBucket(0.1, 2, clock)
    assert [bucket.take(), bucket.take(), bucket.take()] == [True, True, False]
    assert bucket.wait() == pytest.approx(10.0)
    await clock.leap(10.0)
    assert [bucket.take(), bucket.take()] == [True, False]
    await clock.leap(1000.0)
    assert [bucket.take(), bucket.take(), bucket.take()] == [True, True, False]
