"""The queue against a model: any order of calls, no key lost, none early, none in two hands."""

from __future__ import annotations

import asyncio
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kuberay_op.kube.resource import Key
from kuberay_op.runtime.backoff import Backoff
from kuberay_op.runtime.queue import COALESCE, Queue
from kuberay_op.runtime.ready import Priority
from kuberay_op.testing.clock import FakeClock

keys = st.builds(Key, st.sampled_from("ab"), st.sampled_from("123"))
seconds = st.sampled_from([0.0, 0.01, 0.05, 1.0, 2.0, 30.0])
EPSILON = 1e-6


class QueueMachine(RuleBasedStateMachine):
    """Models each key by the moment it is due; that alone decides when it may and must come out."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = FakeClock(turns=12)
        self.loop.run_until_complete(self.start())
        self.due: dict[Key, float] = {}
        self.working: set[Key] = set()

    async def start(self) -> None:
        rng = Random(0)  # noqa: S311 (seeded on purpose)
        self.queue = Queue(clock=self.clock, rng=rng, backoff=Backoff(base=1, cap=8, jitter=0.5))
        self.pump = asyncio.create_task(self.queue.run())

    def expect_by(self, key: Key, moment: float) -> None:
        self.due[key] = min(moment, self.due.get(key, moment))

    @rule(key=keys, priority=st.sampled_from(Priority))
    def event(self, key: Key, priority: Priority) -> None:
        self.queue.add(key, priority=priority)
        self.expect_by(key, self.clock.monotonic() + COALESCE)

    @rule(key=keys, after=seconds)
    def timer(self, key: Key, after: float) -> None:
        self.queue.add_after(key, after)
        self.expect_by(key, self.clock.monotonic() + after)

    @rule(after=seconds)
    def time_passes(self, after: float) -> None:
        self.loop.run_until_complete(self.clock.advance(after))

    @rule()
    def a_worker_asks(self) -> None:
        got = self.loop.run_until_complete(self.take())
        now = self.clock.monotonic()
        may = {key for key, due in self.due.items() if due <= now + EPSILON and key not in self.working}
        if got is None:
            assert not may
            return
        assert got in may
        del self.due[got]
        self.working.add(got)

    @precondition(lambda self: self.working)
    @rule(data=st.data(), fails=st.booleans())
    def a_worker_finishes(self, data: st.DataObject, fails: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.working)))
        if fails:
            before = self.queue.failures(key)
            delay = self.queue.retry(key)
            assert min(8, 2**before) * 0.5 <= delay <= 8
            self.expect_by(key, self.clock.monotonic() + delay)
        else:
            self.queue.forget(key)
        self.queue.done(key)
        self.working.discard(key)

    @invariant()
    def holds_exactly_what_is_wanted(self) -> None:
        assert len(self.queue) == len(self.due)
        assert {entry.key for entry in self.queue.entries() if entry.state != "in work"} == set(self.due)
        assert {entry.key for entry in self.queue.entries() if entry.state == "in work"} == self.working

    async def take(self) -> Key | None:
        await self.clock.settle()
        task = asyncio.create_task(self.queue.get())
        await self.clock.settle()
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return None

    def teardown(self) -> None:
        for key in sorted(self.working):
            self.queue.done(key)
        self.working.clear()
        self.loop.run_until_complete(self.clock.advance(60))
        left = set(self.due)
        while (got := self.loop.run_until_complete(self.take())) is not None:
            left.discard(got)
            self.queue.done(got)
        assert not left, f"keys were lost: {left}"
        self.pump.cancel()
        self.loop.run_until_complete(asyncio.gather(self.pump, return_exceptions=True))
        self.loop.close()


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
