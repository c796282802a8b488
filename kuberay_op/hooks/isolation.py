"""Runs plugins' plain functions where they can do no harm: in threads that can be given up.

The event loop must go on whatever a plugin does. A coroutine can be cancelled; a plain function cannot, so it
runs in a worker thread and the loop waits for it with a limit. When the limit passes:

* the caller gets :class:`Late`, at once;
* the thread is told to stop (an exception is raised in it, which ends a busy loop but not a system call) and
  is never used again;
* when too many threads of one plugin are stuck, further calls are refused until some come back: a plugin can
  leak a handful of threads, not thousands.

One hop per *pass*, not per hook: ``run`` takes a function that calls any number of hooks, each of which notes
in the :class:`Call` what it is doing, so that the loop knows whom to blame.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Final, TypeVar

T = TypeVar("T")

#: Seconds that one call of a hook may take.
LIMIT: Final = 1.0

#: Threads of one plugin that may be stuck before it is refused.
STUCK: Final = 4


class Late(Exception):
    """A plugin did not answer in time."""

    def __init__(self, plugin: str, hook: str, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s")
        self.plugin = plugin
        self.hook = hook


class Quarantined(Exception):
    """A plugin has too many calls that never came back."""

    def __init__(self, plugin: str, stuck: int) -> None:
        super().__init__(f"{stuck} earlier calls never came back; refused until they do")
        self.plugin = plugin


class _Stop(BaseException):
    """Raised inside a thread that was given up."""


@dataclass(slots=True)
class Call:
    """What a worker thread is doing; written by the thread, read by the loop."""

    plugin: str = ""
    hook: str = ""
    began: float = 0.0


#: The call that this code runs in, if it runs in a worker thread.
current: contextvars.ContextVar[Call | None] = contextvars.ContextVar("call", default=None)


class Workshop:
    """A pool of worker threads for plugins' code, with give-up. Belongs to one event loop."""

    def __init__(self, *, limit: float = LIMIT, stuck: int = STUCK) -> None:
        self.limit = limit
        self._allowed = stuck
        self._idle: list[_Worker] = []
        self._given_up: defaultdict[str, list[_Worker]] = defaultdict(list)

    def check(self, plugin: str) -> None:
        """Raise :class:`Quarantined` if too many of the plugin's calls are stuck. Any thread may ask."""
        given_up = self._given_up.get(plugin)
        if given_up:
            alive = [worker for worker in given_up if worker.alive]
            self._given_up[plugin] = alive
            if len(alive) >= self._allowed:
                raise Quarantined(plugin, len(alive))

    async def run(self, function: Callable[[], T]) -> T:
        """Run ``function`` in a worker thread; raise :class:`Late` when a hook in it exceeds the limit."""
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
                if call.began and time.monotonic() - call.began >= self.limit:
                    raise Late(call.plugin, call.hook, self.limit)
        finally:
            if returned:
                self._idle.append(worker)
            else:
                future.cancel()
                worker.stop()
                self._given_up[call.plugin].append(worker)

    def close(self) -> None:
        """Let the idle threads end."""
        while self._idle:
            self._idle.pop().end()

    def _patience(self, call: Call) -> float:
        if not call.began:
            return self.limit
        return max(0.001, call.began + self.limit - time.monotonic())


class _Worker:
    """One daemon thread that takes jobs until it is ended or told to stop."""

    def __init__(self) -> None:
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
        self.end()
        if self._thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread.ident), ctypes.py_object(_Stop)
            )

    def end(self) -> None:
        """Let the thread end after the job it has."""
        self._jobs.put(None)

    def _work(self) -> None:
        try:
            while (job := self._jobs.get()) is not None:
                job()
        except (_Stop, RuntimeError):
            pass  # given up, or the loop it would report to is closed
