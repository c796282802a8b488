"""The poller: what it asks, when, and whom it wakes. Time is the test's."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
import structlog
from hypothesis import given
from hypothesis import strategies as st

from kuberay_op.errors import OperatorError
from kuberay_op.logs import bind
from kuberay_op.ray import errors
from kuberay_op.ray.poller import JITTER, Pace, Poller, PollState, next_interval
from kuberay_op.testing.clock import FakeClock

PACE = Pace()


class Thing:
    """Something to ask: gives ``answer``, or raises it, and counts."""

    def __init__(self, answer: object = "RUNNING") -> None:
        self.answer = answer
        self.asked = 0

    async def __call__(self) -> object:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Stuck:
    """Something that never answers."""

    def __init__(self) -> None:
        self.asked = 0
        self.ended = 0

    async def __call__(self) -> object:
        self.asked += 1
        try:
            return await asyncio.Event().wait()
        finally:
            self.ended += 1


@pytest.fixture
def woken() -> list[str]:
    return []


def make(
    clock: FakeClock, on_change: Callable[[str], None], *, concurrency: int = 128, patience: float = 30
) -> Poller[str, object]:
    rng = random.Random(1)  # noqa: S311 - jitter, not a secret
    return Poller(on_change, clock=clock, rng=rng, concurrency=concurrency, patience=patience)


@pytest_asyncio.fixture
async def poller(clock: FakeClock, woken: list[str]) -> AsyncIterator[Poller[str, object]]:
    async with make(clock, woken.append) as poller:
        yield poller
    assert not polling()


def polling() -> list[str]:
    """Names of all polling tasks that live."""
    return sorted(task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("poll "))


async def test_the_first_answer_wakes_and_its_repetition_does_not(
    poller: Poller[str, object], clock: FakeClock, woken: list[str]
) -> None:
    thing = Thing()
    poller.watch("a", thing)
    assert poller.latest("a") is None

    await clock.advance(60)

    assert thing.asked > 10
    assert woken == ["a"]
    seen = poller.latest("a")
    assert seen is not None
    assert (seen.value, seen.error) == ("RUNNING", None)
    assert 0 <= seen.age(clock.monotonic()) <= PACE.slowest
    assert seen.changed_at == 0


async def test_a_change_wakes_once_and_is_noticed_soon(
    poller: Poller[str, object], clock: FakeClock, woken: list[str]
) -> None:
    thing = Thing()
    poller.watch("a", thing)
    await clock.advance(60)

    thing.answer = "SUCCEEDED"
    await clock.advance(60 * PACE.share * (1 + JITTER))

    assert woken == ["a", "a"]
    seen = poller.latest("a")
    assert seen is not None
    assert seen.value == "SUCCEEDED"


async def test_long_jobs_are_asked_seldom(poller: Poller[str, object], clock: FakeClock) -> None:
    thing = Thing()
    poller.watch("a", thing)
    await clock.advance(600)
    before = thing.asked

    await clock.advance(600)

    assert 600 / (PACE.slowest * 1.1) - 1 <= thing.asked - before <= 600 / (PACE.slowest * 0.9) + 1


async def test_trouble_wakes_once_keeps_the_last_value_and_is_asked_less_and_less(
    poller: Poller[str, object], clock: FakeClock, woken: list[str]
) -> None:
    thing = Thing()
    poller.watch("a", thing)
    await clock.advance(10)
    thing.answer = errors.TimedOut("no answer")
    await clock.advance(20)
    asked = thing.asked

    thing.answer = errors.Unreachable("no connection")
    await clock.advance(300)

    assert woken == ["a", "a"], "how exactly Ray is unavailable is no news"
    assert thing.asked - asked <= 300 / (PACE.slowest_failing * 0.9) + 5
    seen = poller.latest("a")
    assert seen is not None
    assert seen.value == "RUNNING"
    assert isinstance(seen.error, errors.Unreachable)
    assert 10 <= seen.changed_at <= 12, "since when it is unavailable"


async def test_recovery_wakes_even_with_the_old_value(
    poller: Poller[str, object], clock: FakeClock, woken: list[str]
) -> None:
    thing = Thing()
    poller.watch("a", thing)
    await clock.settle()
    thing.answer = errors.TimedOut("no answer")
    await clock.advance(2)
    thing.answer = "RUNNING"
    await clock.advance(PACE.slowest_failing)

    assert woken == ["a"] * 3
    seen = poller.latest("a")
    assert seen is not None
    assert seen.error is None


async def test_an_answer_like_not_found_is_asked_at_the_usual_pace(
    poller: Poller[str, object], clock: FakeClock, woken: list[str]
) -> None:
    thing = Thing(errors.JobNotFound("no such job"))
    poller.watch("a", thing)
    await clock.advance(10)

    assert thing.asked >= 9
    assert woken == ["a"]


async def test_what_was_held_back_is_no_news_and_does_not_look_fresh(
    poller: Poller[str, object], clock: FakeClock, woken: list[str]
) -> None:
    thing = Thing()
    poller.watch("a", thing)
    await clock.advance(10)
    before = poller.latest("a")
    thing.answer = errors.HeldBack("breaker", after=20)
    await clock.advance(15)

    assert poller.latest("a") == before
    assert woken == ["a"]

    thing.answer = errors.TimedOut("no answer")
    await clock.advance(30)
    assert woken == ["a", "a"], "the first real failure is news"


async def test_an_error_that_asks_for_time_gets_it(poller: Poller[str, object], clock: FakeClock) -> None:
    thing = Thing(errors.ServerError("busy", after=100))
    poller.watch("a", thing)

    await clock.advance(100 * (1 - JITTER) - 1)
    assert thing.asked == 1
    await clock.advance(100 * 2 * JITTER + 1)
    assert thing.asked == 2


async def test_forgetting_ends_the_task_even_in_the_middle_of_a_probe(
    poller: Poller[str, object], clock: FakeClock, woken: list[str]
) -> None:
    stuck, thing = Stuck(), Thing()
    poller.watch("stuck", stuck)
    poller.watch("a", thing)
    await clock.settle()

    for key in ("stuck", "a", "unknown"):
        poller.forget(key)
    await clock.settle()

    assert not polling()
    assert stuck.ended == 1
    assert poller.latest("a") is None
    assert len(poller) == 0
    asked = thing.asked
    await clock.advance(60)
    assert thing.asked == asked


async def test_watching_again_exchanges_the_probe_not_the_task(
    poller: Poller[str, object], clock: FakeClock, woken: list[str]
) -> None:
    old, new = Thing("old"), Thing("new")
    poller.watch("a", old)
    await clock.settle()
    poller.watch("a", new)
    poller.watch("a", new)

    assert polling() == ["poll a"]
    await clock.advance(3)
    assert old.asked == 1
    assert new.asked >= 2
    assert woken == ["a", "a"]


async def test_the_last_answer_ends_the_task_and_is_kept(
    poller: Poller[str, object], clock: FakeClock, woken: list[str]
) -> None:
    thing = Thing()
    poller.watch("a", thing, done=lambda value: value == "SUCCEEDED")
    await clock.advance(5)
    thing.answer = "SUCCEEDED"
    await clock.advance(5)
    asked = thing.asked

    poller.watch("a", thing, done=lambda value: value == "SUCCEEDED")  # the next reconcile says the same
    poller.hurry("a")
    await clock.advance(60)

    assert not polling()
    assert thing.asked == asked
    assert woken == ["a", "a"]
    seen = poller.latest("a")
    assert seen is not None
    assert seen.value == "SUCCEEDED"


async def test_hurrying_asks_at_once(poller: Poller[str, object], clock: FakeClock) -> None:
    thing = Thing()
    poller.watch("a", thing)
    await clock.advance(600)
    asked = thing.asked

    poller.hurry("a")
    poller.hurry("a")
    poller.hurry("unknown")
    await clock.settle()

    assert thing.asked - asked in {1, 2}
    assert polling() == ["poll a"]


async def test_hurrying_during_a_probe_asks_once_more(poller: Poller[str, object], clock: FakeClock) -> None:
    release = asyncio.Event()
    asked = 0

    async def slow() -> object:
        nonlocal asked
        asked += 1
        await release.wait()
        return asked

    poller.watch("a", slow)
    await clock.settle()
    poller.hurry("a")
    release.set()
    await clock.settle()

    assert asked == 2


async def test_a_successor_waits_until_the_predecessor_has_tidied_up(
    poller: Poller[str, object], clock: FakeClock
) -> None:
    tidy = asyncio.Event()
    under_way = 0
    most = 0

    async def careful() -> object:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        try:
            return await asyncio.Event().wait()
        finally:
            await tidy.wait()
            under_way -= 1

    for _ in range(3):
        poller.watch("a", careful)
        await clock.settle()
        poller.forget("a")
        await clock.settle()
    poller.watch("a", careful)
    await clock.settle()
    assert under_way == 1

    tidy.set()
    await clock.settle()
    assert most == 1
    assert under_way == 1


async def test_hanging_probes_delay_no_other(clock: FakeClock, woken: list[str]) -> None:
    """Failing keys keep to a lane of their own, however many there are."""
    async with make(clock, woken.append, concurrency=8) as poller:
        things = {f"good-{n}": Thing() for n in range(20)}
        for n in range(200):
            poller.watch(f"bad-{n}", Thing(errors.TimedOut("no answer")))
        await clock.settle()
        stuck = Stuck()
        for n in range(200):
            poller.watch(f"bad-{n}", stuck)  # from now on they hang
        await clock.advance(PACE.slowest_failing)
        assert stuck.asked == 2

        for key, thing in things.items():
            poller.watch(key, thing)
        await clock.advance(3)

        assert all(thing.asked >= 3 for thing in things.values())


async def test_a_probe_that_takes_for_ever_is_given_up(clock: FakeClock, woken: list[str]) -> None:
    async with make(clock, woken.append, patience=0.05) as poller:
        stuck = Stuck()
        poller.watch("a", stuck)
        await asyncio.sleep(0.2)  # the patience is real time

        seen = poller.latest("a")
        assert seen is not None
        assert isinstance(seen.error, errors.TimedOut)
        assert stuck.ended == 1


async def test_a_mistake_in_a_probe_is_logged_and_does_not_end_the_polling(
    poller: Poller[str, object], clock: FakeClock, woken: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    thing = Thing(ZeroDivisionError())
    poller.watch("a", thing)
    await clock.advance(2)
    thing.answer = "RUNNING"
    await clock.advance(10)

    assert "probe failed" in caplog.text
    assert woken == ["a", "a"]
    seen = poller.latest("a")
    assert seen is not None
    assert seen.value == "RUNNING"


async def test_our_own_errors_are_no_mistakes(
    poller: Poller[str, object], clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    thing = Thing(OperatorError("get secrets ns/a: 404"))
    poller.watch("a", thing)
    await clock.advance(100)

    assert thing.asked < 10, "it backs off"
    assert "probe failed" not in caplog.text


async def test_a_mistake_in_the_listener_does_not_end_the_polling(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    def listener(key: str) -> None:
        raise ZeroDivisionError(key)

    thing = Thing()
    async with make(clock, listener) as poller:
        poller.watch("a", thing)
        await clock.advance(5)

    assert thing.asked > 3
    assert "on_change failed" in caplog.text


async def test_a_listener_may_forget_the_key_it_is_told_about(clock: FakeClock) -> None:
    def listener(key: str) -> None:
        asker.forget(key)

    thing = Thing()
    async with make(clock, listener) as asker:
        asker.watch("a", thing)
        await clock.advance(5)

        assert thing.asked == 1
        assert not polling()


async def test_a_probe_may_forget_its_own_key(
    poller: Poller[str, object], clock: FakeClock, woken: list[str]
) -> None:
    async def last() -> object:
        poller.forget("a")
        return "RUNNING"

    poller.watch("a", last)
    await clock.settle()

    assert not polling()
    assert woken == []


async def test_a_reconciles_log_fields_do_not_stick_to_the_polling(
    poller: Poller[str, object], clock: FakeClock
) -> None:
    seen: list[dict[str, object]] = []

    async def look() -> object:
        seen.append(structlog.contextvars.get_contextvars())
        return None

    with bind(reconcile_id="1234"):
        poller.watch("a", look)
        await clock.settle()

    assert seen == [{}]


async def test_closing_leaves_no_task(clock: FakeClock, woken: list[str]) -> None:
    poller = make(clock, woken.append, concurrency=2)
    for n in range(10):
        poller.watch(f"stuck-{n}", Stuck())
        poller.watch(f"a-{n}", Thing())
    await clock.settle()

    await poller.close()

    assert not polling()
    assert "a-1" not in poller
    with pytest.raises(RuntimeError, match="the poller is closed"):
        poller.watch("a", Thing())


# --- the interval


@given(st.floats(0, 1e9), st.integers(0, 10**6), st.floats(0, 600))
def test_intervals_stay_in_bounds(unchanged: float, failures: int, after: float) -> None:
    seconds = next_interval(PollState(unchanged, failures, after), PACE)

    assert PACE.fastest <= seconds
    assert seconds <= (max(PACE.slowest_failing, after) if failures else PACE.slowest)


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_the_longer_nothing_happens_the_longer_the_interval(one: float, other: float) -> None:
    early, late = sorted([one, other])

    assert next_interval(PollState(early), PACE) <= next_interval(PollState(late), PACE)


def test_intervals_that_users_feel() -> None:
    """A job is noticed at once when it is young, and within a twentieth of its age later on."""
    unchanged = {0: 1.0, 20: 1.0, 60: 3.0, 200: 10.0, 3600: 15.0}
    failing = {1: 1.0, 2: 2.0, 3: 4.0, 5: 16.0, 6: 30.0, 100: 30.0}

    assert {age: next_interval(PollState(age), PACE) for age in unchanged} == unchanged
    assert {count: next_interval(PollState(0, count), PACE) for count in failing} == failing
