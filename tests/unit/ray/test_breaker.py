from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kuberay_op.clock import Clock, SystemClock
from kuberay_op.ray.breaker import Breaker, BreakerSettings, State, open_seconds
from kuberay_op.testing.clock import FakeClock

SETTINGS = BreakerSettings(faults=3, shortest=1.0, longest=8.0, jitter=0.0)


def make(clock: Clock, settings: BreakerSettings = SETTINGS) -> tuple[Breaker, list[State]]:
    changes: list[State] = []
    rng = random.Random(1)  # noqa: S311 - jitter, not a secret
    return Breaker(clock=clock, rng=rng, settings=settings, on_change=changes.append), changes


def fail(breaker: Breaker, times: int = 1) -> None:
    for _ in range(times):
        assert breaker.wait() == 0
        breaker.leave(breaker.enter(), healthy=False)


async def test_it_opens_after_faults_in_a_row() -> None:
    breaker, changes = make(FakeClock())

    fail(breaker, 2)
    breaker.leave(breaker.enter(), healthy=True)
    fail(breaker, 2)
    assert changes == []

    fail(breaker)
    assert breaker.wait() == 1.0
    assert changes == [State.OPEN]


async def test_one_request_tries_and_its_success_closes() -> None:
    clock = FakeClock()
    breaker, changes = make(clock)
    fail(breaker, 3)
    await clock.advance(1)

    trial = breaker.enter()
    assert breaker.wait() > 0, "a second request must not pass while the first tries"
    breaker.leave(trial, healthy=True)

    assert breaker.wait() == 0
    assert changes == [State.OPEN, State.HALF_OPEN, State.CLOSED]


async def test_each_failed_trial_doubles_the_time_up_to_the_longest() -> None:
    clock = FakeClock()
    breaker, _ = make(clock)
    fail(breaker, 3)

    waits = []
    for _ in range(5):
        waits.append(breaker.wait())
        await clock.advance(breaker.wait())
        fail(breaker)

    assert waits == [1, 2, 4, 8, 8]


async def test_success_makes_the_next_open_time_short_again() -> None:
    clock = FakeClock()
    breaker, _ = make(clock)
    for _ in range(2):
        fail(breaker, 3 if breaker.state is State.CLOSED else 1)
        await clock.advance(breaker.wait())
    breaker.leave(breaker.enter(), healthy=True)

    fail(breaker, 3)

    assert breaker.wait() == 1.0


async def test_late_failures_are_no_news_but_a_late_success_is() -> None:
    clock = FakeClock()
    breaker, _ = make(clock)
    early = [breaker.enter(), breaker.enter()]
    fail(breaker, 3)

    breaker.leave(early[0], healthy=False)
    assert breaker.wait() == 1.0, "a late failure must not lengthen the time"
    breaker.leave(early[1], healthy=True)
    assert breaker.state is State.CLOSED


async def test_a_cancelled_trial_lets_the_next_one_try() -> None:
    clock = FakeClock()
    breaker, _ = make(clock)
    fail(breaker, 3)
    await clock.advance(1)

    breaker.leave(breaker.enter(), healthy=None)

    assert breaker.wait() == 0
    assert breaker.state is State.OPEN


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_open_times_stay_in_bounds(trips: int, chance: float) -> None:
    settings = BreakerSettings()
    seconds = open_seconds(settings, trips, chance)

    assert settings.shortest * (1 - settings.jitter) <= seconds <= settings.longest


class Hands(SystemClock):
    """A clock whose hands are moved without an event loop."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


class AnyInterleaving(RuleBasedStateMachine):
    """Requests start and end in any order: it is never stuck, and never lets two try at once."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Hands()
        self.breaker, _ = make(self.clock)
        self.under_way: list[int] = []

    @precondition(lambda self: self.breaker.wait() == 0)
    @rule()
    def enter(self) -> None:
        was = self.breaker.state
        ticket = self.breaker.enter()
        self.under_way.append(ticket)
        if was is State.OPEN:
            assert self.breaker.state is State.HALF_OPEN

    @precondition(lambda self: self.under_way)
    @rule(data=st.data(), healthy=st.sampled_from([True, False, None]))
    def leave(self, data: st.DataObject, healthy: bool | None) -> None:
        ticket = self.under_way.pop(data.draw(st.integers(0, len(self.under_way) - 1)))
        self.breaker.leave(ticket, healthy=healthy)
        if healthy:
            assert self.breaker.state is State.CLOSED

    @rule(seconds=st.floats(0, 20))
    def time_passes(self, seconds: float) -> None:
        self.clock.seconds += seconds

    @invariant()
    def waits_are_bounded(self) -> None:
        assert 0 <= self.breaker.wait() <= SETTINGS.longest

    @invariant()
    def half_open_means_that_somebody_tries(self) -> None:
        if self.breaker.state is State.HALF_OPEN:
            assert self.under_way


TestAnyInterleaving = AnyInterleaving.TestCase
