"""Whatever is watched, forgotten and hurried in whatever order: one probe per key, none for the forgotten."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Iterator
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuberay_op.ray.errors import HeldBack, JobNotFound, TimedOut
from kuberay_op.ray.poller import Poller
from kuberay_op.testing.clock import FakeClock

KEYS = ["a", "b", "c"]
CONCURRENCY = 2

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("watch"), st.sampled_from(KEYS)),
        st.tuples(st.just("forget"), st.sampled_from(KEYS)),
        st.tuples(st.just("hurry"), st.sampled_from(KEYS)),
        st.tuples(st.just("turn"), st.integers(0, 5)),
        st.tuples(st.just("time"), st.floats(0, 40)),
    ),
    max_size=40,
)
ANSWERS = st.lists(
    st.sampled_from(
        [1, 2, "done", TimedOut("x"), JobNotFound("x"), HeldBack("x", after=3.0), ValueError("x")]
    ),
    min_size=1,
    max_size=8,
)
#: How long probes take, and how long they tidy up when cancelled.
DELAYS = st.lists(st.sampled_from([0.0, 0.0, 0.5, 10.0, 1000.0]), min_size=1, max_size=8)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Some answers are mistakes on purpose; pytest would keep the log of every one."""
    logger = logging.getLogger("poller")
    logger.disabled = True
    yield
    logger.disabled = False


class World:
    """Probes that watch themselves."""

    def __init__(self, clock: FakeClock, answers: list[object], delays: list[float]) -> None:
        self.clock = clock
        self.answers = answers
        self.delays = delays
        self.asked: Counter[str] = Counter()
        self.under_way: Counter[str] = Counter()
        self.turn = 0

    async def probe(self, key: str) -> object:
        self.turn += 1
        turn = self.turn
        self.asked[key] += 1
        self.under_way[key] += 1
        assert self.under_way[key] == 1, f"two probes of {key} at once"
        assert self.under_way.total() <= CONCURRENCY, "more probes than slots"
        try:
            await self.clock.sleep(self.delays[turn % len(self.delays)])
            answer = self.answers[turn % len(self.answers)]
            if isinstance(answer, Exception):
                raise answer
            return answer
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # tidying up takes a turn
            raise
        finally:
            self.under_way[key] -= 1


async def run(steps: list[tuple[str, object]], answers: list[object], delays: list[float], seed: int) -> None:
    clock = FakeClock(turns=30)
    world = World(clock, answers, delays)
    told: Counter[str] = Counter()
    rng = random.Random(seed)  # noqa: S311 - jitter, not a secret

    def on_change(key: str) -> None:
        assert key in poller, "told about a key that nobody watches"
        told[key] += 1

    poller: Poller[str, object] = Poller(on_change, clock=clock, rng=rng, concurrency=CONCURRENCY)
    watched: set[str] = set()
    async with poller:
        for step, value in steps:
            match step, value:
                case "watch", str(key):
                    poller.watch(key, partial(world.probe, key), done=lambda answer: answer == "done")
                    watched.add(key)
                case "forget", str(key):
                    poller.forget(key)
                    watched.discard(key)
                    assert poller.latest(key) is None
                case "hurry", str(key):
                    poller.hurry(key)
                case "turn", int(turns):
                    for _ in range(turns):
                        await asyncio.sleep(0)
                case "time", float(seconds):
                    await clock.advance(seconds)
            assert set(poller) == watched
        await clock.settle()
        names = Counter(
            task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("poll ")
        )
        assert set(names) <= {f"poll {key}" for key in watched}
        assert all(count == 1 for count in names.values())
        asked = world.asked.copy()
        await clock.advance(100)
        assert {key for key in KEYS if world.asked[key] > asked[key]} <= watched
    assert world.under_way.total() == 0
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("poll ")]


INTERLEAVING = given(steps=STEPS, answers=ANSWERS, delays=DELAYS, seed=st.integers(0, 9))


@settings(max_examples=100, deadline=None)
@INTERLEAVING
def test_any_interleaving(
    steps: list[tuple[str, object]], answers: list[object], delays: list[float], seed: int
) -> None:
    asyncio.run(run(steps, answers, delays, seed))


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@INTERLEAVING
def test_very_many_interleavings(
    steps: list[tuple[str, object]], answers: list[object], delays: list[float], seed: int
) -> None:
    asyncio.run(run(steps, answers, delays, seed))
