"""The first signal asks, the second insists."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from kuberay_op.runtime.shutdown import stop_on_signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_first_signal_asks_to_stop_and_the_second_ends_the_process(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    exits: asyncio.Queue[int] = asyncio.Queue()
    monkeypatch.setattr(os, "_exit", exits.put_nowait)
    stop = asyncio.Event()
    with stop_on_signals(stop):
        assert not stop.is_set()
        os.kill(os.getpid(), number)
        await asyncio.wait_for(stop.wait(), 10)
        assert exits.empty()
        os.kill(os.getpid(), number)
        assert await asyncio.wait_for(exits.get(), 10) == 128 + number


async def test_afterwards_signals_do_what_they_did_before() -> None:
    stop = asyncio.Event()
    before = signal.getsignal(signal.SIGINT)
    with stop_on_signals(stop):
        pass
    assert signal.getsignal(signal.SIGINT) in (before, signal.default_int_handler)
    assert not stop.is_set()
