"""Waiting for an event or for time to pass, on a clock that tests can drive."""

from __future__ import annotations

import asyncio

from kuberay_op.clock import Clock


async def happens(event: asyncio.Event, within: float | None, clock: Clock) -> bool:
    """Wait until ``event`` is set, at most ``within`` seconds (None: for ever); tell whether it is set."""
    if within is None:
        return await event.wait()
    if event.is_set():
        return True
    tasks = (asyncio.ensure_future(event.wait()), asyncio.ensure_future(clock.sleep(within)))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return event.is_set()
