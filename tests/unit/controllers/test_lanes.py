"""In which order, how many at once, and what is left out after a failure."""

from __future__ import annotations

import asyncio
from typing import Any

from kuberay_op.controllers.lanes import FEWEST, MOST, carry_out
from kuberay_op.errors import OperatorError
from kuberay_op.plan.actions import Action, Create, Delete, Outcome


def make(name: str, lane: str = "objects", *after: str) -> Create:
    return Create({"metadata": {"name": name}}, "a test", lane=lane, after=after)


def drop(name: str, lane: str = "objects", *after: str) -> Delete:
    return Delete({"metadata": {"name": name}}, "a test", lane=lane, after=after)


class Recording:
    """Does nothing but note what it was asked, and fails where it should."""

    def __init__(self, *failing: str) -> None:
        self.failing = failing
        self.begun: list[str] = []
        self.running = 0
        self.most = 0

    async def __call__(self, action: Action) -> Outcome:
        name = str(action.obj["metadata"]["name"])
        self.begun.append(name)
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        error = OperatorError("no") if name in self.failing else None
        return Outcome(action, error=error)


async def run(plan: list[Any], *failing: str) -> Recording:
    recording = Recording(*failing)
    outcomes = await carry_out(plan, recording)
    assert [outcome.action.obj["metadata"]["name"] for outcome in outcomes] == recording.begun
    return recording


async def test_objects_come_one_after_the_other_and_none_stops_the_next() -> None:
    done = await run([make("a"), make("b"), drop("c")], "a")
    assert done.begun == ["a", "b", "c"]
    assert done.most == 1


async def test_other_lanes_grow_wave_by_wave_up_to_a_limit() -> None:
    names = [f"p{number}" for number in range(100)]
    done = await run([make(name, "pods") for name in names])
    assert done.begun == names
    assert done.most == MOST
    assert (await run([make(name, "pods") for name in names[:FEWEST]])).most == FEWEST


async def test_making_stops_after_the_wave_that_fails() -> None:
    done = await run([make(f"p{number}", "pods") for number in range(50)], "p1")
    assert len(done.begun) == FEWEST


async def test_deleting_goes_on_after_a_failure() -> None:
    done = await run([drop(f"p{number}", "pods") for number in range(50)], "p1")
    assert len(done.begun) == 50


async def test_a_lane_waits_for_those_it_needs_and_is_left_out_if_they_fail() -> None:
    plan = [
        make("service"),
        make("head", "head", "objects"),
        make("worker", "workers", "objects", "head"),
        make("other", "others"),
    ]
    assert (await run(plan)).begun == ["service", "head", "worker", "other"]
    assert (await run(plan, "service")).begun == ["service", "other"], (
        "what needs what failed is left out, too"
    )
    assert (await run(plan, "head")).begun == ["service", "head", "other"]
    assert (await run(plan[1:])).begun == ["head", "worker", "other"], "a lane that is not there cannot fail"


async def test_nothing_to_do_is_done_at_once() -> None:
    assert (await run([])).begun == []
