"""The work queue: keys of objects that need a look, never the events that made them need it.

A key is in at most one of three places, and may be *in work* besides::

    add ──► waiting (not due yet) ──► ready ──► in work ──► done
                     ▲                             │
                     └──── added again meanwhile ──┘

* A key is held once. Adding it again can only make it due earlier and more urgent.
* A key in work is not handed out a second time. If it is added meanwhile, it waits until ``done``.
* An event makes its key due a short window later, counted from the first event, so that a burst of events
  is one pass, and a steady stream cannot postpone the pass for ever.
* ``retry`` makes a key due after a delay that doubles with each failure; ``forget`` resets it. An event
  still brings the key back at once: what failed may succeed now.

Which of the ready keys runs next is decided in ``ready.py``. The queue belongs to one event loop and starts
no task of its own: ``run`` moves keys that have become due, and its owner keeps it running.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Final

from kuberay_op.clock import Clock
from kuberay_op.kube.resource import Key
from kuberay_op.metrics import QueueMetrics
from kuberay_op.runtime.backoff import Backoff
from kuberay_op.runtime.ready import Priority, Ready
from kuberay_op.runtime.waiting import happens

#: Seconds for which the events of one key are gathered into one pass.
COALESCE: Final = 0.05

#: Outdated notes in the heap of waiting keys that are tolerated before it is rebuilt.
_SLACK: Final = 64


class QueueClosed(Exception):
    """The queue gives out no more keys."""


@dataclass(slots=True)
class _Queued:
    due: float
    wanted: float  # since when somebody waits for this pass
    priority: Priority


@dataclass(slots=True)
class _InWork:
    started: float
    priority: Priority


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """One key as ``/debug`` shows it; ``seconds`` is time to go when waiting, else time since."""

    key: Key
    state: str
    priority: str
    seconds: float
    failures: int


class Queue:
    """See the module. ``add`` and its kin may be called from anywhere on the loop."""

    def __init__(
        self,
        *,
        clock: Clock,
        rng: Random,
        coalesce: float = COALESCE,
        backoff: Backoff = Backoff(),  # noqa: B008 (frozen, so sharing one is safe)
        metrics: QueueMetrics | None = None,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._coalesce = coalesce
        self._backoff = backoff
        self._metrics = metrics
        self._queued: dict[Key, _Queued] = {}  # waiting, ready, or added again while in work
        self._in_work: dict[Key, _InWork] = {}
        self._failures: dict[Key, int] = {}
        self._ready = Ready()
        self._tokens = asyncio.Semaphore(0)  # one per ready key, so that one worker wakes per key
        self._waiting: list[
            tuple[float, int, Key]
        ] = []  # heap; a note counts only if its due time is current
        self._order = count()
        self._earlier = asyncio.Event()
        self._closed = False
        if metrics:
            metrics.unfinished(self.unfinished)

    def __len__(self) -> int:
        """Keys waiting or ready; a key in work counts only if it was added again."""
        return len(self._queued)

    @property
    def in_work(self) -> int:
        """How many keys are in work."""
        return len(self._in_work)

    def add(self, key: Key, *, priority: Priority = Priority.CHANGE) -> None:
        """An event: look at this key soon, together with whatever happens to it in the next moment."""
        now = self._clock.monotonic()
        self._put(key, priority, due=now + self._coalesce, wanted=now)

    def add_after(self, key: Key, seconds: float, *, priority: Priority = Priority.CHANGE) -> None:
        """A timer: look at this key after ``seconds``. The earliest of several wins."""
        due = self._clock.monotonic() + max(0.0, seconds)
        self._put(key, priority, due=due, wanted=due)

    def retry(self, key: Key, *, cap: float | None = None) -> float:
        """The pass failed: come back after the back-off (at most ``cap`` seconds); returns the delay."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = self._backoff.delay(failures, self._rng)
        if cap is not None and delay > cap:
            delay = cap * (1.0 - self._backoff.jitter * self._rng.random())
        work = self._in_work.get(key)
        self.add_after(key, delay, priority=work.priority if work else Priority.CHANGE)
        if self._metrics:
            self._metrics.retried()
        return delay

    def forget(self, key: Key) -> None:
        """The pass succeeded or cannot: the next failure starts again with the shortest delay."""
        self._failures.pop(key, None)

    def failures(self, key: Key) -> int:
        """Failures of this key in a row."""
        return self._failures.get(key, 0)

    async def get(self) -> Key:
        """The next key, now in work until ``done``; raises ``QueueClosed`` after ``close``."""
        await self._tokens.acquire()
        if self._closed:
            self._tokens.release()  # hand the news on to the next worker
            raise QueueClosed
        key = self._ready.pop()
        entry = self._queued.pop(key)
        now = self._clock.monotonic()
        self._in_work[key] = _InWork(now, entry.priority)
        if self._metrics:
            self._metrics.started(now - entry.wanted)
            self._metrics.depth(self._ready.depth(entry.priority), entry.priority)
        return key

    def done(self, key: Key) -> None:
        """The pass is over; if the key was added meanwhile, it takes its place in the queue now."""
        work = self._in_work.pop(key)
        if self._metrics:
            self._metrics.finished(self._clock.monotonic() - work.started)
        if key in self._queued:
            self._place(key, self._queued[key])

    async def run(self) -> None:
        """Move keys that have become due, for ever."""
        while True:
            self._earlier.clear()
            wait = self._promote_due()
            await happens(self._earlier, wait, self._clock)

    def close(self) -> None:
        """Give out no more keys; what is in work goes on."""
        if not self._closed:
            self._closed = True
            self._tokens.release()

    def reopen(self) -> None:
        """Start afresh, empty: for a new term as leader. No worker may be running."""
        if self._in_work:
            raise RuntimeError(f"{len(self._in_work)} keys are still in work")
        self._queued.clear()
        self._failures.clear()
        self._waiting.clear()
        self._ready = Ready()
        self._tokens = asyncio.Semaphore(0)
        self._closed = False
        self._report_depth()

    def unfinished(self) -> list[float]:
        """How many seconds each key in work has been there; safe to call from another thread."""
        now = self._clock.monotonic()
        return [now - work.started for work in list(self._in_work.values())]

    def entries(self) -> Iterator[QueueEntry]:
        """Everything in the queue, for people."""
        now = self._clock.monotonic()
        for key, work in self._in_work.items():
            yield QueueEntry(
                key, "in work", work.priority.name, round(now - work.started, 3), self.failures(key)
            )
        for key, queued in self._queued.items():
            ready = key in self._ready
            state = "again" if key in self._in_work else "ready" if ready else "waiting"
            seconds = now - queued.wanted if ready else queued.due - now
            yield QueueEntry(key, state, queued.priority.name, round(seconds, 3), self.failures(key))

    def _put(self, key: Key, priority: Priority, *, due: float, wanted: float) -> None:
        if self._closed:
            return
        entry = self._queued.get(key)
        if entry is None:
            entry = self._queued[key] = _Queued(due, wanted, priority)
            if self._metrics:
                self._metrics.added()
        else:
            entry.priority = max(entry.priority, priority)
            entry.wanted = min(entry.wanted, wanted)
            if due >= entry.due and key not in self._ready:
                return
            entry.due = min(entry.due, due)
        if key not in self._in_work:
            self._place(key, entry)

    def _place(self, key: Key, entry: _Queued) -> None:
        if key in self._ready or entry.due <= self._clock.monotonic():
            self._make_ready(key, entry)
            return
        if not self._waiting or entry.due < self._waiting[0][0]:
            self._earlier.set()
        heapq.heappush(self._waiting, (entry.due, next(self._order), key))
        if len(self._waiting) > 2 * len(self._queued) + _SLACK:
            self._waiting = [note for note in self._waiting if self._current(note)]
            heapq.heapify(self._waiting)

    def _make_ready(self, key: Key, entry: _Queued) -> None:
        if key not in self._ready:
            self._tokens.release()
        self._ready.add(key, entry.priority)
        self._report_depth()

    def _promote_due(self) -> float | None:
        """Make due keys ready; returns the seconds until the next one is, None when none waits."""
        now = self._clock.monotonic()
        while self._waiting:
            note = self._waiting[0]
            if self._current(note):
                if note[0] > now:
                    return note[0] - now
                self._make_ready(note[2], self._queued[note[2]])
            heapq.heappop(self._waiting)
        return None

    def _current(self, note: tuple[float, int, Key]) -> bool:
        due, _, key = note
        entry = self._queued.get(key)
        return entry is not None and entry.due == due and key not in self._in_work and key not in self._ready

    def _report_depth(self) -> None:
        if self._metrics:
            for priority in Priority:
                self._metrics.depth(self._ready.depth(priority), priority)
