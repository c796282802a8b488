"""The detector of callbacks that hold the event loop."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import uvloop

from kuberay_op.testing.loop_guard import LIMIT, LoopGuard

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


def burn(seconds: float = 2 * LIMIT) -> None:
    """Use CPU without waiting for anything."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def hog() -> None:
    await asyncio.sleep(0)
    burn()
    await asyncio.sleep(0)


def run(loop_factory: Callable[[], asyncio.AbstractEventLoop], main: Callable[[], object]) -> LoopGuard:
    async def call() -> None:
        result = main()
        if asyncio.iscoroutine(result):
            await result
        await asyncio.sleep(0.01)

    with LoopGuard() as guard, asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(call())
    return guard


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_a_task_that_burns_cpu_is_named_with_its_place(
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    guard = run(loop_factory, lambda: asyncio.create_task(hog(), name="greedy"))
    (found,) = guard.hogs
    assert found.seconds > LIMIT
    assert found.callback.startswith("task greedy (hog, before ")
    assert __file__ in found.callback
    with pytest.raises(pytest.fail.Exception, match="ms in task greedy"):
        guard.check()


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_plain_callbacks_and_timers_are_measured(
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    guard = run(loop_factory, lambda: asyncio.get_running_loop().call_later(0.001, burn))
    assert [hog.callback for hog in guard.hogs] == ["burn"]


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_waiting_is_free(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    def wait() -> None:
        time.sleep(2 * LIMIT)

    guard = run(loop_factory, wait)
    assert guard.hogs == []
    assert guard.longest < LIMIT
    guard.check()


def test_a_worker_thread_does_not_count() -> None:
    guard = run(asyncio.new_event_loop, partial(asyncio.to_thread, burn))
    assert guard.hogs == []


def test_garbage_collection_does_not_count() -> None:
    def collect() -> None:
        end = time.thread_time() + 4 * LIMIT
        while time.thread_time() < end:
            gc.collect()

    assert run(asyncio.new_event_loop, collect).hogs == []


def test_everything_is_put_back() -> None:
    before = asyncio.Handle._run, dict(vars(uvloop.Loop)), list(gc.callbacks)
    with LoopGuard():
        assert asyncio.Handle._run is not before[0]
    after = asyncio.Handle._run, dict(vars(uvloop.Loop)), list(gc.callbacks)
    assert after == before


@pytest.mark.loop_guard(milliseconds=500)
async def test_a_marker_allows_more(loop_guard: LoopGuard) -> None:
    burn()
    await asyncio.sleep(0)
    assert loop_guard.limit == 0.5
    assert loop_guard.longest > LIMIT


GREEDY = """
import asyncio, time, pytest

async def greedy():
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        pass

def test_greedy(loop_guard):
    asyncio.run(greedy())

@pytest.mark.loop_guard(milliseconds=1000)
def test_allowed(loop_guard):
    asyncio.run(greedy())
"""


def test_the_fixture_fails_a_test(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(GREEDY)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "test_it.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert "2 passed, 1 error" in done.stdout
    assert "callbacks that held the event loop for more than 50 ms of CPU" in done.stdout
    assert "ERROR at teardown of test_greedy" in done.stdout
