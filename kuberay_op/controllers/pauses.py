"""Lanes that rest after a refusal: what the API server refuses is not tried again at every event.

A cluster whose quota is used up goes on having events, and each of them starts a pass. Without a rest every
pass would try the same Pods again. A lane whose creations were refused rests for a second, then two, then
four, up to a minute, and its last failure counts as that of the passes in between. It wakes at once when the
owner was edited or has fewer Pods than it had: then things may go another way.

Also kept here is what a refusal has left half done: parts of something that is no use without the others.

Kept in memory only: after a restart everything is simply tried again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from kuberay_op.clock import Clock
from kuberay_op.kube.errors import AlreadyExists, BadRequest, Conflict, Forbidden, InvalidObject, NotFound
from kuberay_op.kube.resource import Key
from kuberay_op.plan.actions import OBJECTS, Action, Create, Outcome
from kuberay_op.runtime.backoff import Backoff

#: Answers that will be the same the next time. What says that the server is busy or away is no refusal.
REFUSALS: Final = (AlreadyExists, BadRequest, Conflict, Forbidden, InvalidObject, NotFound)

BACKOFF: Final = Backoff(base=1.0, cap=60.0)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Under which a lane was refused."""

    generation: int
    pods: int

    def better_than(self, before: Circumstances) -> bool:
        """Whether it may go another way now."""
        return self.generation != before.generation or self.pods < before.pods


@dataclass(frozen=True, slots=True)
class Pause:
    """A lane at rest."""

    error: Exception
    until: float
    failures: int
    under: Circumstances
    #: Wholes of which some parts were made and others refused.
    begun: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Split:
    """A plan without the lanes that rest."""

    plan: list[Action]
    #: The remembered failure of each lane that rests.
    resting: list[Outcome]
    #: Seconds until the first of them may be tried again; 0 when none rests.
    seconds: float


class Pauses:
    """The lanes at rest of every object of a controller."""

    def __init__(self, *, clock: Clock, rng: Random) -> None:
        self._clock = clock
        self._rng = rng
        self._pauses: dict[Key, dict[str, Pause]] = {}

    def split(self, key: Key, plan: Sequence[Action], now: Circumstances) -> Split:
        """Take out of a plan what is not to be tried yet."""
        lanes = self._pauses.get(key)
        if not lanes:
            return Split(list(plan), [], 0.0)
        moment = self._clock.monotonic()
        asleep = {
            lane: pause
            for lane, pause in lanes.items()
            if pause.until > moment and not now.better_than(pause.under)
        }
        resting: dict[str, Action] = {}
        for action in plan:
            if _makes(action) and action.lane in asleep:
                resting.setdefault(action.lane, action)
        kept = [
            action
            for action in plan
            if not (_makes(action) and action.lane in resting) and resting.keys().isdisjoint(action.after)
        ]
        return Split(
            kept,
            [Outcome(action, error=asleep[lane].error) for lane, action in resting.items()],
            min((asleep[lane].until - moment for lane in resting), default=0.0),
        )

    def learn(
        self, key: Key, plan: Sequence[Action], outcomes: Sequence[Outcome], under: Circumstances
    ) -> None:
        """Note which lanes of a plan were refused and which went well."""
        lanes = self._pauses.setdefault(key, {})
        made = [outcome for outcome in outcomes if _makes(outcome.action)]
        tried = {outcome.action.lane for outcome in made}
        for lane in [lane for lane, pause in lanes.items() if lane not in tried and self._is_stale(pause)]:
            del lanes[lane]
        refused = {o.action.lane: o.error for o in reversed(made) if isinstance(o.error, REFUSALS)}
        for lane in tried:
            if lane in refused:
                before = lanes.get(lane)
                failures = before.failures + 1 if before else 1
                until = self._clock.monotonic() + BACKOFF.delay(failures, self._rng)
                begun = _begun(plan, lane, outcomes, before.begun if before else frozenset())
                lanes[lane] = Pause(refused[lane], until, failures, under, begun)
            else:
                lanes.pop(lane, None)
        if not lanes:
            del self._pauses[key]

    def begun(self, key: Key) -> frozenset[str]:
        """What was begun for an object and could not be finished yet."""
        lanes = self._pauses.get(key) or {}
        return frozenset().union(*(pause.begun for pause in lanes.values()))

    def _is_stale(self, pause: Pause) -> bool:
        """Whether nobody has tried the lane again although they could: its group is gone or complete."""
        return pause.until + BACKOFF.cap < self._clock.monotonic()

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._pauses.pop(key, None)

    def __len__(self) -> int:
        """Objects with a lane at rest."""
        return len(self._pauses)


def _makes(action: Action) -> bool:
    return isinstance(action, Create) and action.lane != OBJECTS


def _begun(
    plan: Sequence[Action], lane: str, outcomes: Sequence[Outcome], before: frozenset[str]
) -> frozenset[str]:
    """The wholes of a lane of which some parts were made, now or before, and others were not."""
    made = {id(outcome.action) for outcome in outcomes if outcome.error is None}
    parts = [action for action in plan if isinstance(action, Create) and action.lane == lane and action.whole]
    done = {action.whole for action in parts if id(action) in made}
    left = {action.whole for action in parts if id(action) not in made}
    return (before | done) & left
