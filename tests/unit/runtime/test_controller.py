"""One pass after another: what each ending of a pass leads to, and that no pass harms another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from kuberay_op.errors import Invalid, Retry
from kuberay_op.kube.errors import Conflict, TooManyRequests, Unreachable
from kuberay_op.kube.fence import NotLeader
from kuberay_op.kube.resource import Key
from kuberay_op.metrics import Metrics
from kuberay_op.runtime.backoff import Backoff
from kuberay_op.runtime.controller import Controller
from kuberay_op.runtime.queue import Queue
from kuberay_op.runtime.result import Result
from kuberay_op.testing.clock import FakeClock

A, B = Key("ns", "a"), Key("ns", "b")
Lines = Callable[[], list[dict[str, Any]]]


class Setup:
    """A controller on a fake clock, with its metrics."""

    def __init__(self, reconcile: Callable[[Key], Awaitable[Result]], **options: Any) -> None:
        rng = Random(1)  # noqa: S311 (seeded on purpose)
        self.clock = FakeClock()
        self.metrics = Metrics(process=False)
        self.queue = Queue(clock=self.clock, rng=rng, backoff=Backoff(base=8, cap=1000, jitter=0))
        self.controller = Controller(
            "things",
            reconcile,
            queue=self.queue,
            clock=self.clock,
            rng=rng,
            kind="Thing",
            metrics=self.metrics.controller("things"),
            **options,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[FakeClock]:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.controller.run())
            await self.clock.settle()
            yield self.clock
            self.queue.close()

    def count(self, name: str, **labels: str) -> float | None:
        labels["controller"] = "things"
        return self.metrics.registry.get_sample_value(f"controller_runtime_{name}", labels)

    def again_in(self, key: Key) -> float | None:
        return next((entry.seconds for entry in self.queue.entries() if entry.key == key), None)


def raising(error: Exception) -> Callable[[Key], Awaitable[Result]]:
    async def reconcile(_: Key) -> Result:
        raise error

    return reconcile


@pytest.mark.parametrize(
    ("error", "again_in", "outcome", "failures"),
    [
        (Retry("wait for the head", after=3), 3, "requeue_after", 0),
        (Retry("wait for the head"), 8, "requeue", 1),
        (Invalid("spec.replicas is -1; 0 or more is allowed"), None, "error", 0),
        (Unreachable("no answer"), 5, "error", 1),
        (TooManyRequests("busy", retry_after=30.0), 30, "error", 0),
        (NotLeader("the lease is not ours"), 5, "requeue", 1),
        (Conflict("changed meanwhile"), 8, "error", 1),
        (ValueError("a bug"), 8, "error", 1),
        (TimeoutError("of somebody else"), 8, "error", 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
async def test_what_follows_an_exception(
    error: Exception, again_in: float | None, outcome: str, failures: int, lines: Lines
) -> None:
    setup = Setup(raising(error))
    async with setup.running() as clock:
        setup.queue.add_after(A, 0)
        await clock.settle()
        assert setup.again_in(A) == again_in
        assert setup.queue.failures(A) == failures
        assert setup.count("reconcile_total", result=outcome) == 1
        assert setup.count("reconcile_errors_total") == (1 if outcome == "error" else 0)
        assert setup.count("terminal_reconcile_errors_total") == (1 if isinstance(error, Invalid) else 0)
        unexpected = isinstance(error, ValueError | TimeoutError)
        assert setup.count("reconcile_panics_total") == (1 if unexpected else 0)
        [line] = lines()
        assert str(error) in str(line.get("error") or line.get("waiting"))
        assert (line.get("exc_info") is error) is unexpected
        assert line["Thing"] == {"name": "a", "namespace": "ns"}
        assert line["reconcileID"]
        assert str(error) in setup.controller.last[A].problem


async def test_a_good_pass_resets_the_back_off_and_leaves_one_line(lines: Lines) -> None:
    results: Iterator[Result | Exception] = iter(
        [ValueError("once"), Result.after(300).saying(created=2, event="even this name"), Result.forget()]
    )

    async def reconcile(_: Key) -> Result:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    setup = Setup(reconcile)
    async with setup.running() as clock:
        setup.queue.add_after(A, 0)
        await clock.advance(8)
        assert setup.queue.failures(A) == 0
        assert setup.again_in(A) == 300
        assert [line["event"] for line in lines()] == ["pass failed", "reconciled"]
        assert lines()[1]["created"] == 2
        assert setup.controller.last[A].summary["created"] == 2
        await clock.advance(300)
        assert setup.again_in(A) is None
        assert A not in setup.controller.last, "nothing is remembered of an object that is gone"


async def test_a_failing_key_does_not_hold_up_others() -> None:
    seen: list[Key] = []

    async def reconcile(key: Key) -> Result:
        seen.append(key)
        if key == A:
            raise ValueError("always")
        return Result.done()

    setup = Setup(reconcile, concurrency=1)
    async with setup.running() as clock:
        setup.queue.add(A)
        setup.queue.add(B)
        await clock.advance(1)
        setup.queue.add(B)
        await clock.advance(1)
        assert seen == [A, B, B]


async def test_no_key_is_ever_in_two_workers_and_workers_are_counted() -> None:
    running: list[Key] = []
    most = 0

    async def reconcile(key: Key) -> Result:
        nonlocal most
        assert key not in running
        running.append(key)
        most = max(most, len(running))
        await setup.clock.sleep(0.2)
        running.remove(key)
        return Result.done()

    setup = Setup(reconcile, concurrency=3)
    async with setup.running() as clock:
        assert setup.count("max_concurrent_reconciles") == 3
        for _ in range(20):
            for name in "abcde":
                setup.queue.add(Key("ns", name))
            await clock.advance(0.1)
        assert most == 3
        assert setup.count("active_workers") == 3
        await clock.advance(10)
        assert setup.count("active_workers") == 0


async def test_a_pass_that_hangs_is_stopped() -> None:
    stopped = asyncio.Event()

    async def reconcile(_: Key) -> Result:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return Result.done()

    setup = Setup(reconcile, timeout=0.01)
    async with setup.running() as clock:
        setup.queue.add_after(A, 0)
        await stopped.wait()  # the limit follows the real clock
        await clock.settle()
        assert setup.controller.last[A].problem == "the pass took longer than 0.01 s and was stopped"
        assert setup.again_in(A) == 8


async def test_a_cancelled_helper_of_a_pass_does_not_end_the_worker() -> None:
    async def reconcile(_: Key) -> Result:
        helper = asyncio.create_task(asyncio.sleep(60))
        helper.cancel()
        await helper
        return Result.done()

    setup = Setup(reconcile, concurrency=1)
    async with setup.running() as clock:
        setup.queue.add_after(A, 0)
        await clock.settle()
        assert "was cancelled" in setup.controller.last[A].problem
        setup.queue.add_after(B, 0)
        await clock.settle()
        assert B in setup.controller.last


async def test_closing_the_queue_lets_the_running_pass_finish() -> None:
    finished: list[Key] = []

    async def reconcile(key: Key) -> Result:
        await setup.clock.sleep(5)
        finished.append(key)
        return Result.done()

    setup = Setup(reconcile)
    run = asyncio.create_task(setup.controller.run())
    setup.queue.add_after(A, 0)
    await setup.clock.settle()
    setup.queue.add_after(B, 1)
    setup.queue.close()
    await setup.clock.advance(4)
    assert not run.done()
    await setup.clock.advance(1)
    await run
    assert finished == [A]


async def test_cancelling_the_controller_ends_all_passes() -> None:
    async def reconcile(_: Key) -> Result:
        await asyncio.Event().wait()
        return Result.done()

    setup = Setup(reconcile)
    run = asyncio.create_task(setup.controller.run())
    setup.queue.add_after(A, 0)
    await setup.clock.settle()
    assert setup.queue.in_work == 1
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert setup.queue.in_work == 0


async def test_only_so_many_passes_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kuberay_op.runtime.controller.REMEMBERED", 2)

    async def reconcile(_: Key) -> Result:
        return Result.done()

    setup = Setup(reconcile)
    async with setup.running() as clock:
        for name in "abc":
            setup.queue.add_after(Key("ns", name), 0)
            await clock.settle()
        assert [key.name for key in setup.controller.last] == ["b", "c"]
