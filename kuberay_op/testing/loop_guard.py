"""Fails a test in which one callback holds the event loop for more than 50 ms of CPU.

Ask for the fixture ``loop_guard``, or for a whole folder in its ``conftest.py``. A test that must do heavy
work on the loop says so: ``@pytest.mark.loop_guard(milliseconds=200)``.

CPU time of the thread is measured, not wall time, so a busy machine fails nothing. Time spent in garbage
collection is left out: how much there is to collect depends on what else the test process holds.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from asyncio import Handle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import pytest

try:
    import uvloop
except ImportError:  # not to be had on Windows
    uvloop = None

#: Seconds of CPU one callback may use.
LIMIT: Final = 0.05

#: How uvloop is asked to run something. Its handles are out of reach, so callbacks are wrapped on their way
#: in; what its own transports call (``data_received``) is not seen there.
_UVLOOP_DOORS: Final = {"call_soon": 0, "call_soon_threadsafe": 0, "call_later": 1, "call_at": 1}


@dataclass(frozen=True, slots=True)
class Hog:
    """A callback that used too much CPU in one go."""

    callback: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.seconds * 1000:.0f} ms in {self.callback}"


class LoopGuard:
    """Measures every callback of every event loop of this process while it is entered."""

    def __init__(self, limit: float = LIMIT) -> None:
        self.limit = limit
        self.hogs: list[Hog] = []
        self.longest = 0.0
        self._collecting: dict[int, float] = {}
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> Self:
        gc.callbacks.append(self._on_gc)
        self._undo.append(lambda: gc.callbacks.remove(self._on_gc))
        run = Handle._run  # the only place all callbacks pass through

        def measured_run(handle: Any) -> None:
            self._measure(handle._callback, run, handle)

        self._replace(Handle, "_run", measured_run)
        if uvloop is not None:
            for name, position in _UVLOOP_DOORS.items():
                self._replace(uvloop.Loop, name, self._measured_door(getattr(uvloop.Loop, name), position))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._undo:
            self._undo.pop()()

    def check(self) -> None:
        """Fail the test if there was a hog."""
        if self.hogs:
            found = "\n".join(f"  {hog}" for hog in self.hogs)
            limit = f"{self.limit * 1000:.0f} ms"
            pytest.fail(f"callbacks that held the event loop for more than {limit} of CPU:\n{found}", False)

    def _replace(self, owner: type, name: str, value: Any) -> None:
        inherited = name not in vars(owner)
        original = getattr(owner, name)
        setattr(owner, name, value)
        self._undo.append(lambda: delattr(owner, name) if inherited else setattr(owner, name, original))

    def _measured_door(self, door: Callable[..., Any], position: int) -> Callable[..., Any]:
        def measured(loop: Any, *args: Any, **kwargs: Any) -> Any:
            callback = args[position]

            def run(*inner: Any) -> None:
                self._measure(callback, callback, *inner)

            return door(loop, *args[:position], run, *args[position + 1 :], **kwargs)

        return measured

    def _measure(self, callback: Any, run: Callable[..., Any], *args: Any) -> None:
        thread = threading.get_ident()
        collected = self._collecting.get(thread, 0.0)
        started = time.thread_time()
        try:
            run(*args)
        finally:
            used = time.thread_time() - started - (self._collecting.get(thread, 0.0) - collected)
            self.longest = max(self.longest, used)
            if used > self.limit:
                self.hogs.append(Hog(describe(callback), used))

    def _on_gc(self, phase: str, info: dict[str, int]) -> None:
        # Start is subtracted and stop is added, so that between collections the sum is what they took.
        sign = -1 if phase == "start" else 1
        thread = threading.get_ident()
        self._collecting[thread] = self._collecting.get(thread, 0.0) + sign * time.thread_time()


def describe(callback: Any) -> str:
    """Name a callback; for a step of a task, the coroutine and the line where it waits now."""
    owner = getattr(callback, "__self__", None)
    if not isinstance(owner, asyncio.Task):
        return getattr(callback, "__qualname__", repr(callback))
    coroutine = getattr(owner.get_coro(), "__qualname__", repr(owner.get_coro()))
    stack = owner.get_stack(limit=1)
    where = f", before {stack[-1].f_code.co_filename}:{stack[-1].f_lineno}" if stack else ", its last step"
    return f"task {owner.get_name()} ({coroutine}{where})"


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line(
        "markers", "loop_guard(milliseconds=50): CPU that one callback of the event loop may use in this test"
    )


@pytest.fixture
def loop_guard(request: pytest.FixtureRequest) -> Iterator[LoopGuard]:
    """Fail the test if one callback of the event loop uses more than 50 ms of CPU."""
    marker = request.node.get_closest_marker("loop_guard")
    milliseconds = marker.kwargs.get("milliseconds") if marker else None
    with LoopGuard(LIMIT if milliseconds is None else milliseconds / 1000) as guard:
        yield guard
    guard.check()
