"""A supervised task is started again whatever ends it, and only cancellation stops it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from kuberay_op.errors import Retry
from kuberay_op.runtime.backoff import Backoff
from kuberay_op.runtime.supervisor import Supervisor
from kuberay_op.testing.clock import FakeClock


async def test_a_task_is_started_again_with_growing_pauses(lines: Callable[[], list[dict[str, Any]]]) -> None:
    clock = FakeClock()
    starts: list[float] = []

    async def fragile() -> None:
        starts.append(clock.monotonic())
        match len(starts):
            case 1:
                raise ValueError("unforeseen")
            case 2:
                raise Retry("foreseen")
            case 3:
                await clock.sleep(100)  # well for a while, then it ends
            case _:
                await clock.sleep(1e6)

    supervisor = Supervisor(
        clock,
        Random(0),  # noqa: S311 (seeded on purpose)
        Backoff(base=1, cap=5, jitter=0),
    )
    task = asyncio.create_task(supervisor.keep("fragile", fragile))
    await clock.advance(200)
    assert starts == [0, 1, 3, 104]
    assert supervisor.restarts == {"fragile": 3}
    assert [(said["problem"], bool(said["exc_info"])) for said in lines()] == [
        ("ValueError: unforeseen", True),
        ("foreseen", False),
        ("it ended by itself", False),
    ]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
