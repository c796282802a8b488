"""Carries out the actions of a plan in their lanes; see ``kuberay_op.plan.actions``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from kuberay_op.plan.actions import OBJECTS, Action, Create, Outcome

#: Writes of one lane at the same time: few at first, since what is refused once will be refused again (a
#: quota is used up, a webhook says no), then twice as many each time.
FEWEST: Final = 4
MOST: Final = 16

Do = Callable[[Action], Awaitable[Outcome]]


async def carry_out(plan: Sequence[Action], do: Do) -> list[Outcome]:
    """Do what can be done. What is left out after a failure has no outcome; the next pass plans it anew."""
    outcomes: list[Outcome] = []
    failed: set[str] = set()
    for lane in dict.fromkeys(action.lane for action in plan):
        actions = [action for action in plan if action.lane == lane]
        if any(needed in failed for action in actions for needed in action.after):
            failed.add(lane)
            continue
        done = [await do(each) for each in actions] if lane == OBJECTS else await _at_once(actions, do)
        if any(outcome.error is not None for outcome in done):
            failed.add(lane)
        outcomes += done
    return outcomes


async def _at_once(actions: Sequence[Action], do: Do) -> list[Outcome]:
    """Wave by wave; making ends with the first failure, deleting does not."""
    outcomes: list[Outcome] = []
    size = FEWEST
    while len(outcomes) < len(actions):
        async with asyncio.TaskGroup() as group:
            wave = actions[len(outcomes) : len(outcomes) + size]
            tasks = [group.create_task(_awaited(do, action)) for action in wave]
        outcomes += [task.result() for task in tasks]
        if any(each.error is not None and isinstance(each.action, Create) for each in outcomes):
            break
        size = min(2 * size, MOST)
    return outcomes


async def _awaited(do: Do, action: Action) -> Outcome:
    return await do(action)
