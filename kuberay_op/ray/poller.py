"""Asks Ray again and again, outside the reconcile loop.

A reconcile says what it wants to know (``watch``) and reads what is known (``latest``); it never waits for
Ray. Each watched key has one task, which probes, remembers, and calls ``on_change`` when there is news; that
puts the key into the controller's queue. Probes that only confirm what is known wake nobody.

A dashboard that hangs costs the others nothing: probes of keys that fail or dawdle share a lane of their
own, a quarter of all slots, and whoever waits for a slot gets it in order of arrival.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextvars import Context
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Generic, Self, TypeVar
from weakref import WeakValueDictionary

from kuberay_op.clock import Clock
from kuberay_op.errors import OperatorError, Retry
from kuberay_op.logs import get_logger
from kuberay_op.ray.errors import HeldBack, RayError, RayUnavailable, TimedOut

_log = get_logger("poller")

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
Probe = Callable[[], Awaitable[T]]

#: Probes under way at once, over all clusters.
CONCURRENCY: Final = 128
#: Seconds a probe may take before it is given up: more than any of its requests may take.
PATIENCE: Final = 30.0
#: A probe that took longer than this many seconds goes to the slow lane next time.
DAWDLING: Final = 1.0
#: Share by which intervals vary, so that keys watched together do not stay together.
JITTER: Final = 0.1


@dataclass(frozen=True, slots=True)
class Pace:
    """How often to ask (seconds). A job that has run for a minute may be noticed seconds late; ``share`` is
    how late, compared with the time nothing happened.
    """

    fastest: float = 1.0
    slowest: float = 15.0
    share: float = 0.05
    slowest_failing: float = 30.0


@dataclass(frozen=True, slots=True)
class Observation(Generic[T]):
    """What is known about a key.

    ``value`` is the last good answer, None before there was one; ``error`` says why the latest probe got
    none. Times are those of the poller's clock: ``checked_at`` of the latest probe, ``changed_at`` of the
    last news.
    """

    value: T | None
    error: Exception | None
    checked_at: float
    changed_at: float

    def age(self, now: float) -> float:
        """Seconds since the latest probe."""
        return now - self.checked_at


@dataclass(frozen=True, slots=True)
class PollState:
    """What the next interval depends on: seconds since the last news, failures in a row, and the seconds for
    which the last failure asks to be left alone.
    """

    unchanged: float = 0.0
    failures: int = 0
    after: float = 0.0


def next_interval(state: PollState, pace: Pace) -> float:
    """Seconds until the next probe: soon after a change, later and later while nothing happens.

    After failures the time doubles with each, and is never shorter than the failure asks for.
    """
    if state.failures:
        doubled = pace.fastest * 2.0 ** min(state.failures - 1, 32)
        return max(state.after, min(pace.slowest_failing, doubled))
    return min(pace.slowest, max(pace.fastest, pace.share * state.unchanged))


def news(error: Exception | None, value: object) -> object:
    """What must differ for a result to be news. How exactly Ray is unavailable is none."""
    if error is None:
        return value
    return RayUnavailable if isinstance(error, RayUnavailable) else type(error)


@dataclass(frozen=True, slots=True)
class _Result(Generic[T]):
    """What one probe brought: a value (and whether it is the last), or an error."""

    value: T | None = None
    error: Exception | None = None
    last: bool = False


class _Watch(Generic[T]):
    """A key's state: what to ask, how often, and what is known."""

    def __init__(self, probe: Probe[T], done: Callable[[T], bool] | None, pace: Pace) -> None:
        self.probe = probe
        self.done = done
        self.pace = pace
        self.seen: Observation[T] | None = None
        self.task: asyncio.Task[None] | None = None
        self.failures = 0
        self.after = 0.0
        self.slow = False
        self.asleep = False
        self.hurry = False


class Poller(Generic[K, T]):
    """Watches keys; use it with ``async with``, or ``close`` it, and no task is left.

    ``on_change(key)`` is called when a key's result changed; it must not wait.
    """

    def __init__(
        self,
        on_change: Callable[[K], None],
        *,
        clock: Clock,
        rng: random.Random,
        pace: Pace | None = None,
        concurrency: int = CONCURRENCY,
        patience: float = PATIENCE,
    ) -> None:
        self._on_change = on_change
        self._clock = clock
        self._rng = rng
        self._pace = pace or Pace()
        self._patience = patience
        slow = max(1, concurrency // 4)
        self._quick = asyncio.Semaphore(max(1, concurrency - slow))
        self._slow = asyncio.Semaphore(slow)
        self._watches: dict[K, _Watch[T]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        #: Held by a key's task while it lives; a successor waits until the predecessor has tidied up.
        self._turns: WeakValueDictionary[K, asyncio.Lock] = WeakValueDictionary()
        self._closed = False

    def watch(
        self,
        key: K,
        probe: Probe[T],
        *,
        done: Callable[[T], bool] | None = None,
        pace: Pace | None = None,
    ) -> None:
        """Keep asking ``probe`` about ``key``, until ``forget`` or until ``done`` says of an answer that it
        is the last. For a key that is watched already only the probe is exchanged, for the next time.

        Whatever makes a different question belongs into the key: a job's id as much as its object's name.
        """
        if self._closed:
            raise RuntimeError("the poller is closed")
        watch = self._watches.get(key)
        if watch is not None:
            watch.probe, watch.done, watch.pace = probe, done, pace or self._pace
            return
        watch = self._watches[key] = _Watch(probe, done, pace or self._pace)
        self._start(key, watch)

    def forget(self, key: K) -> None:
        """Stop asking about ``key`` and drop what is known; nothing happens for an unknown key."""
        watch = self._watches.pop(key, None)
        if watch is not None and watch.task is not None:
            watch.task.cancel()

    def latest(self, key: K) -> Observation[T] | None:
        """What is known; None before the first answer, and for keys that nobody watches."""
        watch = self._watches.get(key)
        return watch.seen if watch is not None else None

    def hurry(self, key: K) -> None:
        """Ask now: something happened that Ray has probably noticed too. After the last answer: no effect."""
        watch = self._watches.get(key)
        if watch is None or watch.task is None:
            return
        if watch.asleep:
            watch.asleep = False
            watch.task.cancel()
            self._start(key, watch)
        else:
            watch.hurry = True

    def __contains__(self, key: object) -> bool:
        return key in self._watches

    def __iter__(self) -> Iterator[K]:
        return iter(tuple(self._watches))

    def __len__(self) -> int:
        return len(self._watches)

    async def close(self) -> None:
        """Forget all keys and wait until their tasks have ended."""
        self._closed = True
        for key in self:
            self.forget(key)
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def _start(self, key: K, watch: _Watch[T]) -> None:
        turn = self._turns.get(key)
        if turn is None:
            turn = self._turns[key] = asyncio.Lock()
        # In a context of its own: what the reconcile that called us bound to its log lines is not ours.
        run = self._run(key, watch, turn)
        watch.task = asyncio.create_task(run, name=f"poll {key}", context=Context())
        self._tasks.add(watch.task)
        watch.task.add_done_callback(self._tasks.discard)

    async def _run(self, key: K, watch: _Watch[T], turn: asyncio.Lock) -> None:
        async with turn:
            while self._watches.get(key) is watch:
                watch.hurry = False
                async with self._slow if watch.slow else self._quick:
                    result = await self._ask(key, watch)
                if self._watches.get(key) is not watch:
                    return  # forgotten by the probe itself
                changed = self._remember(watch, result)
                if result.last:
                    watch.task = None
                if changed:
                    self._tell(key)
                if result.last:
                    return
                await self._sleep(watch)

    async def _ask(self, key: K, watch: _Watch[T]) -> _Result[T]:
        started = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._patience):
                value = await watch.probe()
            result = _Result(value, last=watch.done is not None and watch.done(value))
        except TimeoutError:
            result = _Result(error=TimedOut(f"the probe of {key} took longer than {self._patience:g} s"))
        except OperatorError as error:
            result = _Result(error=error)
        except Exception as error:  # noqa: BLE001 - a probe's mistake must not end the polling of its key
            _log.warning("probe failed", key=str(key), exc_info=error)
            result = _Result(error=error)
        watch.slow = isinstance(result.error, Retry) or self._clock.monotonic() - started > DAWDLING
        return result

    def _remember(self, watch: _Watch[T], result: _Result[T]) -> bool:
        """Keep a result; is it news?"""
        error, before, now = result.error, watch.seen, self._clock.monotonic()
        # "No such job" and its like are answers: they are asked again at the usual pace.
        failed = error is not None and (isinstance(error, Retry) or not isinstance(error, RayError))
        watch.failures = watch.failures + 1 if failed else 0
        watch.after = (error.after or 0.0) if isinstance(error, Retry) else 0.0
        if before is not None and isinstance(error, HeldBack):
            return False  # Ray was not asked, so nothing was learnt
        changed = before is None or news(before.error, before.value) != news(error, result.value)
        watch.seen = Observation(
            value=result.value if error is None else before.value if before is not None else None,
            error=error,
            checked_at=now,
            changed_at=now if changed or before is None else before.changed_at,
        )
        return changed

    def _tell(self, key: K) -> None:
        try:
            self._on_change(key)
        except Exception:  # noqa: BLE001 - nor may a mistake of the listener
            _log.exception("on_change failed", key=str(key))

    async def _sleep(self, watch: _Watch[T]) -> None:
        if watch.hurry or watch.seen is None:
            return
        unchanged = self._clock.monotonic() - watch.seen.changed_at
        seconds = next_interval(PollState(unchanged, watch.failures, watch.after), watch.pace)
        watch.asleep = True
        await self._clock.sleep(seconds * (1 + JITTER * (2 * self._rng.random() - 1)))
        watch.asleep = False
