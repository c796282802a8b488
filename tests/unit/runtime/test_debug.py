"""``/debug`` over a real socket: names and numbers, never the content of objects."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, cast

import aiohttp
import pytest

from kuberay_op.kube.client import Client
from kuberay_op.kube.resource import SECRETS, Key
from kuberay_op.metrics import Metrics
from kuberay_op.runtime.debug import SAMPLE, Debug
from kuberay_op.runtime.manager import Manager
from kuberay_op.runtime.result import Result
from kuberay_op.runtime.server import serving
from kuberay_op.testing.clock import FakeClock

SECRET_TEXT = "hunter2"


async def test_every_view_answers_and_none_shows_content() -> None:
    clock = FakeClock()
    rng = Random(1)  # noqa: S311 (seeded on purpose)
    manager = Manager(cast(Client, None), clock=clock, rng=rng, metrics=Metrics(process=False))
    store = manager.cache(SECRETS)
    for number in range(3 * SAMPLE):
        metadata = {"namespace": "ns", "name": f"s{number}", "uid": f"u{number}", "resourceVersion": "1"}
        store.put({"metadata": metadata, "data": {"password": SECRET_TEXT}})

    async def reconcile(key: Key) -> Result:
        if key.name == "bad":
            raise ValueError("a bug")
        return Result.after(60).saying(created=2)

    wiring = manager.controller("secrets", SECRETS, reconcile)
    wiring.wake_up([Key("ns", "good"), Key("ns", "bad")])
    wiring.expectations.created(
        Key("ns", "good"), store, {"metadata": {"namespace": "ns", "name": "x", "uid": "not there yet"}}
    )
    worker = asyncio.create_task(wiring.controller.run(), name="the worker pool")
    await clock.advance(1)
    wiring.controller.queue.add_after(Key("ns", "later"), 30)

    answers: dict[str, Any] = {}
    async with (
        serving(("127.0.0.1", 0), Debug(manager, clock=clock).routes(), option="--health") as (host, port),
        aiohttp.ClientSession() as session,
    ):
        for path in ("", "/queues", "/passes", "/passes?key=ns/good", "/tasks", "/memory", "/state"):
            async with session.get(f"http://{host}:{port}/debug{path}") as answer:
                assert answer.status == 200
                assert SECRET_TEXT not in await answer.text()
                answers[path] = await answer.json()
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker

    assert set(answers[""]) == {f"/debug/{name}" for name in ("queues", "passes", "tasks", "memory", "state")}
    queued = {entry["key"]: entry for entry in answers["/queues"]["secrets"]}
    assert queued["ns/later"] == {
        "key": "ns/later",
        "state": "waiting",
        "priority": "CHANGE",
        "seconds": 30.0,
        "failures": 0,
    }
    passes = {done["key"]: done for done in answers["/passes"]["secrets"]}
    assert passes["ns/good"]["summary"] == {"created": 2}
    assert passes["ns/bad"]["problem"] == "ValueError: a bug"
    assert [done["key"] for done in answers["/passes?key=ns/good"]["secrets"]] == ["ns/good"]
    tasks = {task["task"]: task["at"] for task in answers["/tasks"]}
    assert "Controller.run" in tasks["the worker pool"][0]
    memory = answers["/memory"]["caches"]["secrets"]
    assert memory["objects"] == 3 * SAMPLE
    assert 100 * memory["objects"] < memory["bytes"] < 200 * memory["objects"]
    state = answers["/state"]
    assert state["leader"] is None
    assert state["watches"]["secrets"]["synced"] is False
    assert state["behind"] == {"secrets": ["ns/good"]}
