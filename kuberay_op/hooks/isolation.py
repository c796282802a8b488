"""Keeps plugins from doing harm: a time limit on every call, and threads and tasks that can be given up.

The event loop must go on whatever a plugin does. An ``async def`` runs as a task, which is cancelled when it
is late; a plain function cannot be cancelled, so it runs in a worker thread. When the limit passes:

* the caller gets :class:`Late`, at once;
* the thread is told to stop (an exception is raised in it, which ends a busy loop but not a system call) and
  is never used again; a task is cancelled and, should it not care, left alone;
* while such a call has not come back, the plugin is not asked about the same object again, and when there are
  very many, not at all: a plugin can leak a handful of threads, not thousands.

Waiting costs a worker of the controller, so a plugin has a credit of seconds in which it may be late. Once
that is used up its calls get a shorter limit until it has grown again, and it is not asked about objects for
which it was late: those for which it answers are as well off as before, and the others hold nobody up.

One hop per *pass*, not per hook: ``run`` takes a function that calls any number of hooks, each of which notes
in the :class:`Call` what it is doing, so that the loop knows whom to blame.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Final, TypeVar

T = TypeVar("T")

#: Seconds that one call of a hook may take.
LIMIT: Final = 1.0

#: Seconds that it may take once its plugin has used up its credit.
SHORT: Final = 0.2

#: Seconds that a plugin may be late before its limit is shortened, and how many it regains in a second.
CREDIT: Final = 5.0
REGAINED: Final = 0.1

#: Calls of one plugin that may be stuck before it is not asked at all.
STUCK: Final = 100

#: Objects for which a plugin was late that are remembered.
REMEMBERED: Final = 1000

#: Seconds after which Python takes turns between threads that compute; its own choice is ten times as long,
#: and with several plugins at it the loop would get its turn too seldom.
TURN: Final = 0.0005


class Late(Exception):
    """A plugin did not answer in time."""

    def __init__(self, plugin: str, hook: str, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s")
        self.plugin = plugin
        self.hook = hook
        self.seconds = seconds


class Quarantined(Exception):
    """A plugin has calls that never came back, for this object or far too many."""


class Stop(BaseException):
    """Raised inside a thread that was given up."""


@dataclass(frozen=True, slots=True)
class Doing:
    """One call of a plugin that is under way."""

    plugin: str
    hook: str
    began: float
    limit: float


class Call:
    """What a worker thread is doing; written by the thread, read by the loop, in one step each."""

    __slots__ = ("doing",)

    def __init__(self) -> None:
        self.doing: Doing | None = None


#: The call that this code runs in, if it runs in a worker thread.
current: contextvars.ContextVar[Call | None] = contextvars.ContextVar("call", default=None)

#: The object that plugins are being asked about.
_subject: contextvars.ContextVar[str] = contextvars.ContextVar("subject", default="")


@contextmanager
def about(subject: str) -> Iterator[None]:
    """Say which object plugins are asked about in here: a call that hangs is held against it alone."""
    token = _subject.set(subject)
    try:
        yield
    finally:
        _subject.reset(token)


@dataclass(frozen=True, slots=True)
class _GivenUp:
    subject: str
    alive: Callable[[], bool]


class Workshop:
    """Runs plugins' code within limits. Belongs to one event loop, but for what says otherwise."""

    def __init__(self, *, limit: float = LIMIT, stuck: int = STUCK, credit: float = CREDIT) -> None:
        self.limit = limit
        self._short = min(limit, SHORT)
        self._stuck = stuck
        self._full = credit
        self._credit: dict[str, tuple[float, float]] = {}  # by plugin: seconds left, and when that was so
        self._idle: list[_Worker] = []
        self._given_up: defaultdict[str, list[_GivenUp]] = defaultdict(list)
        #: By plugin: hooks and objects for which it was late, oldest first.
        self._late_for: defaultdict[str, dict[tuple[str, str], None]] = defaultdict(dict)

    def check(self, plugin: str, hook: str) -> None:
        """Raise :class:`Quarantined` if the plugin may not be asked now. Any thread may ask."""
        subject = _subject.get()
        if (hook, subject) in self._late_for.get(plugin, ()) and self._credit_of(plugin) < self._short:
            raise Quarantined("it was late for this object; not asked again for a while")
        stuck = [call for call in self._given_up.get(plugin, ()) if call.alive()]
        if any(call.subject == subject for call in stuck):
            raise Quarantined("an earlier call for this object never came back; not asked until it does")
        if len(stuck) >= self._stuck:
            raise Quarantined(f"{len(stuck)} earlier calls never came back; not asked until some do")

    def answered(self, plugin: str, hook: str) -> None:
        """The plugin has answered for the object it was asked about. Any thread may say so."""
        if late_for := self._late_for.get(plugin):
            late_for.pop((hook, _subject.get()), None)

    def limit_of(self, plugin: str) -> float:
        """Seconds that a call of the plugin may take now. Any thread may ask."""
        return self.limit if self._credit_of(plugin) >= self.limit else self._short

    async def run(self, function: Callable[[], T]) -> T:
        """Run ``function`` in a worker thread; raise :class:`Late` when a hook in it exceeds its limit."""
        worker = self._idle.pop() if self._idle else _Worker()
        call = Call()
        future = worker.start(function, call, asyncio.get_running_loop())
        returned = False
        try:
            while True:
                done, _ = await asyncio.wait({future}, timeout=self._patience(call))
                if done:
                    returned = True
                    return future.result()
                doing = call.doing
                if doing is not None and time.monotonic() - doing.began >= doing.limit:
                    raise Late(doing.plugin, doing.hook, doing.limit)
        except Late as late:
            self._spend(late)
            raise
        finally:
            if returned:
                self._idle.append(worker)
            else:
                future.cancel()
                worker.stop()
                if call.doing is not None:
                    self._give_up(call.doing.plugin, lambda: worker.alive)

    async def wait_for(self, task: asyncio.Task[T], plugin: str, hook: str) -> T:
        """The result of a plugin's task; raise :class:`Late` when it exceeds its limit."""
        limit = self.limit_of(plugin)
        try:
            done, _ = await asyncio.wait({task}, timeout=limit)
            if not done:
                late = Late(plugin, hook, limit)
                self._spend(late)
                raise late
        finally:
            if not task.done():
                task.cancel()
                task.add_done_callback(_forget)
                self._give_up(plugin, lambda: not task.done())
        return task.result()

    def close(self) -> None:
        """Let the idle threads end."""
        while self._idle:
            self._idle.pop().end()

    def _patience(self, call: Call) -> float:
        doing = call.doing
        if doing is None:
            return self._short
        return max(0.001, doing.began + doing.limit - time.monotonic())

    def _credit_of(self, plugin: str) -> float:
        left, at = self._credit.get(plugin, (self._full, 0.0))
        return min(self._full, left + (time.monotonic() - at) * REGAINED)

    def _spend(self, late: Late) -> None:
        left = max(0.0, self._credit_of(late.plugin) - late.seconds)
        self._credit[late.plugin] = left, time.monotonic()
        late_for = self._late_for[late.plugin]
        late_for[late.hook, _subject.get()] = None
        if len(late_for) > REMEMBERED:
            late_for.pop(next(iter(late_for)))

    def _give_up(self, plugin: str, alive: Callable[[], bool]) -> None:
        stuck = [call for call in self._given_up[plugin] if call.alive()]
        self._given_up[plugin] = [*stuck, _GivenUp(_subject.get(), alive)]


def _forget(task: asyncio.Task[Any]) -> None:
    """Look at how a task ended that nobody waits for, or Python complains."""
    if not task.cancelled():
        task.exception()


class _Worker:
    """One daemon thread that takes jobs until it is ended or told to stop."""

    def __init__(self) -> None:
        sys.setswitchinterval(min(TURN, sys.getswitchinterval()))
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="plugin-worker", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def start(
        self, function: Callable[[], T], call: Call, loop: asyncio.AbstractEventLoop
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def settle(result: T | None, error: BaseException | None) -> None:
            if future.cancelled():
                return
            if error is None:
                future.set_result(result)  # type: ignore[arg-type]  # None only together with an error
            else:
                future.set_exception(error)

        def job() -> None:
            result: T | None = None
            error: BaseException | None = None
            current.set(call)
            try:
                result = function()
            except Exception as raised:  # noqa: BLE001 (handed to the caller, whatever it is)
                error = raised
            loop.call_soon_threadsafe(settle, result, error)

        self._jobs.put(lambda: context.run(job))
        return future

    def stop(self) -> None:
        """Raise in the thread, which ends a busy loop at once and a system call when it returns."""
        # Before it is let go: a thread that waits for a job must meet the exception where it is expected.
        if self._thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread.ident), ctypes.py_object(Stop)
            )
        self.end()

    def end(self) -> None:
        """Let the thread end after the job it has."""
        self._jobs.put(None)

    def _work(self) -> None:
        try:
            while (job := self._jobs.get()) is not None:
                job()
        except (Stop, RuntimeError):
            pass  # given up, or the loop it would report to is closed
