"""The work queue, on a clock that stands still."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from kuberay_op.kube.resource import Key
from kuberay_op.metrics import Metrics
from kuberay_op.runtime.backoff import Backoff
from kuberay_op.runtime.queue import Queue, QueueClosed
from kuberay_op.runtime.ready import Priority
from kuberay_op.testing.clock import FakeClock

RNG = Random(1)  # noqa: S311 (seeded on purpose)
A, B, C = (Key("ns", name) for name in "abc")


@asynccontextmanager
async def running(queue: Queue) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def new_queue(clock: FakeClock, **options: object) -> Queue:
    return Queue(clock=clock, rng=RNG, **options)  # type: ignore[arg-type]  # forwarded keyword options


async def take(queue: Queue, clock: FakeClock) -> Key | None:
    """The next key if there is one now."""
    task = asyncio.create_task(queue.get())
    await clock.settle()
    if task.done():
        return task.result()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return None


async def test_a_burst_of_events_is_one_pass_counted_from_the_first() -> None:
    clock = FakeClock()
    queue = new_queue(clock)
    async with running(queue):
        for _ in range(4):
            queue.add(A)
            await clock.advance(0.012)
        assert await take(queue, clock) is None
        await clock.advance(0.002)
        assert await take(queue, clock) == A
        assert await take(queue, clock) is None


async def test_a_steady_stream_cannot_postpone_the_pass() -> None:
    clock = FakeClock()
    queue = new_queue(clock, coalesce=0.5)
    async with running(queue):
        passes = 0
        for _ in range(100):
            queue.add(A)
            await clock.advance(0.125)
            if await take(queue, clock):
                passes += 1
                queue.done(A)
        assert passes == 25


async def test_a_key_in_work_runs_again_afterwards_and_never_beside_itself() -> None:
    clock = FakeClock()
    queue = new_queue(clock)
    async with running(queue):
        queue.add(A)
        await clock.advance(1)
        assert await take(queue, clock) == A
        queue.add(A)
        await clock.advance(1)
        assert await take(queue, clock) is None
        assert [(e.state, e.seconds) for e in queue.entries()] == [("in work", 1), ("again", -0.95)]
        queue.done(A)
        assert await take(queue, clock) == A


async def test_the_earliest_of_several_timers_wins() -> None:
    clock = FakeClock()
    queue = new_queue(clock)
    async with running(queue):
        queue.add_after(A, 300)
        queue.add_after(A, 10)
        queue.add_after(A, 20)
        queue.add_after(B, 5)
        await clock.advance(9.9)
        assert await take(queue, clock) == B
        assert await take(queue, clock) is None
        await clock.advance(0.1)
        assert await take(queue, clock) == A
        queue.done(A)
        await clock.advance(1000)
        assert await take(queue, clock) is None  # the later timers of A are void


async def test_back_off_doubles_until_forgotten_and_an_event_cuts_it_short() -> None:
    clock = FakeClock()
    queue = new_queue(clock, backoff=Backoff(base=1, cap=60, jitter=0))
    assert [queue.retry(A) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert queue.failures(A) == 8
    assert queue.retry(A, cap=5) == 5
    queue.forget(A)
    assert queue.retry(A) == 1
    async with running(queue):
        await clock.advance(1)
        assert await take(queue, clock) == A
        queue.retry(A)
        queue.add(A)
        queue.done(A)
        await clock.advance(0.05)
        assert await take(queue, clock) == A


def test_jitter_shortens_never_lengthens() -> None:
    backoff = Backoff(base=1, cap=1000, jitter=0.2)
    delays = [backoff.delay(1_000_000, RNG) for _ in range(200)]
    assert all(800 <= delay <= 1000 for delay in delays)
    assert len(set(delays)) == 200


async def test_a_retry_keeps_the_urgency_of_its_pass() -> None:
    clock = FakeClock()
    queue = new_queue(clock)
    async with running(queue):
        queue.add(A, priority=Priority.EDIT)
        await clock.advance(1)
        assert await take(queue, clock) == A
        queue.retry(A)
        queue.done(A)
        assert [entry.priority for entry in queue.entries()] == ["EDIT"]
        assert queue.failures(A) == 1


async def test_one_worker_wakes_per_key() -> None:
    clock = FakeClock()
    queue = new_queue(clock)
    got: list[Key] = []

    async def worker() -> None:
        while True:
            got.append(await queue.get())

    async with running(queue):
        workers = [asyncio.create_task(worker()) for _ in range(3)]
        queue.add(A)
        queue.add(B)
        await clock.advance(1)
        assert sorted(got) == [A, B]
        assert queue.in_work == 2
        queue.close()
        results = await asyncio.gather(*workers, return_exceptions=True)
        assert all(isinstance(result, QueueClosed) for result in results)


async def test_closing_keeps_what_is_ready_from_going_out() -> None:
    clock = FakeClock()
    queue = new_queue(clock)
    async with running(queue):
        queue.add(A)
        queue.add_after(B, 60)
        await clock.advance(1)
        queue.close()
        queue.close()
        queue.add(C)
        with pytest.raises(QueueClosed):
            await queue.get()
        assert len(queue) == 2
        queue.reopen()
        assert len(queue) == 0
        queue.add(C)
        await clock.advance(1)
        assert await take(queue, clock) == C
        with pytest.raises(RuntimeError, match="1 keys are still in work"):
            queue.reopen()


async def test_a_cancelled_worker_loses_no_key() -> None:
    clock = FakeClock()
    queue = new_queue(clock)
    async with running(queue):
        waiting = asyncio.create_task(queue.get())
        await clock.settle()
        queue.add_after(A, 0)
        waiting.cancel()  # woken for A, and cancelled in the same turn
        await asyncio.gather(waiting, return_exceptions=True)
        assert await take(queue, clock) == A


async def test_outdated_timers_do_not_pile_up() -> None:
    clock = FakeClock()
    queue = new_queue(clock)
    for number in range(1_000):
        queue.add_after(A, 1_000 - number)
    assert len(queue._waiting) < 100  # the heap is private, its size is the point of this test


async def test_the_queue_reports_what_it_does() -> None:
    clock = FakeClock()
    metrics = Metrics(process=False)
    queue = new_queue(clock, metrics=metrics.queue("c"))

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, {"name": "c", "controller": "c"} | labels)

    async with running(queue):
        queue.add(A)
        queue.add(A)
        queue.add(B, priority=Priority.RESYNC)
        await clock.advance(2)
        assert value("workqueue_adds_total") == 2
        assert value("workqueue_depth", priority="0") == 1
        assert value("workqueue_depth", priority="-100") == 1
        assert await take(queue, clock) == A
        assert value("workqueue_depth", priority="0") == 0
        assert (
            value("workqueue_queue_duration_seconds_sum") == 2
        )  # from the event, not from the end of the window
        await clock.advance(3)
        assert value("workqueue_unfinished_work_seconds") == 3
        assert value("workqueue_longest_running_processor_seconds") == 3
        queue.retry(A)
        queue.done(A)
        assert value("workqueue_retries_total") == 1
        assert value("workqueue_work_duration_seconds_sum") == 3
        assert value("workqueue_unfinished_work_seconds") == 0
