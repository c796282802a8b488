"""A circuit breaker: a dashboard that keeps failing is left alone for a while.

Closed, requests pass. After some faults in a row it opens and requests are held back. When the open time is
over, one request may try (half-open): its success closes the breaker, its failure opens it for twice as
long. There is one per Ray cluster; it never waits and makes no requests itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from kuberay_op.clock import Clock


class State(StrEnum):
    """What happens to the next request."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """When to open, and for how long (seconds). ``jitter`` is the share by which open times vary."""

    faults: int = 5
    shortest: float = 1.0
    longest: float = 30.0
    jitter: float = 0.2


def open_seconds(settings: BreakerSettings, trips: int, chance: float) -> float:
    """How long the breaker stays open after ``trips`` times in a row; ``chance`` is in [0, 1)."""
    doublings = min(trips - 1, 32)  # beyond this any sensible longest is long reached
    seconds = min(settings.longest, settings.shortest * 2.0**doublings)
    return seconds * (1 - settings.jitter * chance)


class Breaker:
    """One cluster's breaker.

    Whoever sends asks ``wait()``, takes a ticket with ``enter()`` and hands it back with ``leave()``. The
    ticket tells late answers from current ones: a request sent before the breaker opened may prove that the
    dashboard lives, but its failure is no news.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        rng: random.Random,
        settings: BreakerSettings | None = None,
        on_change: Callable[[State], None] | None = None,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._settings = settings or BreakerSettings()
        self._on_change = on_change
        self._state = State.CLOSED
        self._faults = 0
        self._trips = 0
        self._until = 0.0
        self._epoch = 0

    @property
    def state(self) -> State:
        """The current state; an open breaker stays open until somebody tries."""
        return self._state

    def wait(self) -> float:
        """Seconds to hold back; 0 when a request may be sent now."""
        if self._state is State.CLOSED:
            return 0.0
        if self._state is State.HALF_OPEN:
            return self._settings.shortest  # somebody is trying; ask again soon
        return max(0.0, self._until - self._clock.monotonic())

    def enter(self) -> int:
        """A ticket for a request that is about to be sent; call only while ``wait()`` is 0."""
        if self._state is State.OPEN:
            self._move(State.HALF_OPEN)
        return self._epoch

    def leave(self, ticket: int, *, healthy: bool | None) -> None:
        """The request is over: the dashboard is healthy, at fault, or (None, cancelled) nobody knows."""
        if healthy:
            self._faults = self._trips = 0
            if self._state is not State.CLOSED:
                self._move(State.CLOSED)
        elif ticket != self._epoch:
            return
        elif healthy is None:
            if self._state is State.HALF_OPEN:
                self._move(State.OPEN)  # the open time is over already, so the next request may try
        else:
            self._faults += 1
            if self._state is State.HALF_OPEN or self._faults >= self._settings.faults:
                self._trip()

    def _trip(self) -> None:
        self._trips += 1
        self._faults = 0
        self._until = self._clock.monotonic() + open_seconds(self._settings, self._trips, self._rng.random())
        self._move(State.OPEN)

    def _move(self, state: State) -> None:
        self._state = state
        self._epoch += 1
        if self._on_change is not None:
            self._on_change(state)
