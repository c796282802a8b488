"""The recorder against a fake server. That Kubernetes accepts what it writes: ``tests/apiserver/kube``."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from kuberay_op.kube.events import NOTE_LIMIT, QUEUE, Events, truncated
from kuberay_op.testing.clock import FakeClock
from tests.unit.kube.fake_api import FakeApi, connected, failure, pod, until

CREATED = (201, {"kind": "Event"})
POD = pod("a")


@asynccontextmanager
async def recording(api: FakeApi, clock: FakeClock) -> AsyncIterator[Events]:
    rng = random.Random(1)  # noqa: S311 (seeded on purpose)
    async with connected(api, clock=clock) as client:
        events = Events(client, clock=clock, rng=rng, hostname="host")
        task = asyncio.create_task(events.run())
        yield events
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def quiet(events: Events) -> None:
    """Wait until the queue is written out."""
    await until(lambda: not events._queue and not events._writing.locked())


async def test_an_event_says_who_what_and_why() -> None:
    api, clock = FakeApi(CREATED), FakeClock()
    async with recording(api, clock) as events:
        events.recorder("raycluster-controller").normal(POD, "CreatedHeadPod", "Create", "made it")
        await quiet(events)
    [request] = api.requests
    assert (request.method, request.path) == ("POST", "/apis/events.k8s.io/v1/namespaces/ns/events")
    body = api.bodies[0]
    assert body["metadata"]["name"].startswith("a.")
    del body["metadata"]
    assert body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2030-01-01T00:00:00.000000Z",
        "type": "Normal",
        "reason": "CreatedHeadPod",
        "action": "Create",
        "note": "made it",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "a", "uid": "uid-a"},
        "reportingController": "raycluster-controller",
        "reportingInstance": "raycluster-controller-host",
    }


async def test_what_is_said_again_becomes_a_series() -> None:
    api, clock = FakeApi(CREATED), FakeClock()
    async with recording(api, clock) as events:
        recorder = events.recorder("c")

        async def say(times: int = 1) -> None:
            for _ in range(times):
                recorder.warning(POD, "Bad", "Create", "it fails")
            await quiet(events)

        await say()
        await say()
        assert [r.method for r in api.requests] == ["POST", "PATCH"]
        await say(50)
        assert len(api.requests) == 2, "the count can wait"
        await clock.advance(31.0)
        await until(lambda: len(api.requests) == 3)
        assert api.bodies[2]["series"]["count"] == 52
        assert api.requests[2].path.endswith(api.bodies[0]["metadata"]["name"])
        recorder.warning(POD, "Bad", "Create", "it fails otherwise")
        await quiet(events)
        assert api.requests[-1].method == "POST"
        await clock.advance(400.0)
        await say()
        assert api.requests[-1].method == "POST", "after a while it is news again"
        assert events.dropped == 0


async def test_a_series_whose_event_is_gone_begins_anew() -> None:
    api, clock = FakeApi(CREATED, (404, failure(404, "NotFound")), CREATED), FakeClock()
    async with recording(api, clock) as events:
        for _ in range(2):
            events.recorder("c").normal(POD, "R", "Create", "x")
            await quiet(events)
    assert [r.method for r in api.requests] == ["POST", "PATCH", "POST"]
    assert events.dropped == 0


async def test_an_object_that_says_too_much_is_cut_off_and_others_are_not() -> None:
    api, clock = FakeApi(CREATED), FakeClock()
    async with recording(api, clock) as events:
        recorder = events.recorder("c")
        for n in range(40):
            recorder.normal(POD, "R", "Create", f"different {n}")
        recorder.normal(pod("b"), "R", "Create", "x")
        await quiet(events)
        assert len(api.requests) == 26
        assert events.dropped == 15
        await clock.advance(300.0)
        recorder.normal(POD, "R", "Create", "later")
        await quiet(events)
        assert len(api.requests) == 27


async def test_the_queue_is_bounded_and_recording_never_waits() -> None:
    async with connected(FakeApi(CREATED)) as client:
        rng = random.Random(1)  # noqa: S311 (seeded on purpose)
        events = Events(client, clock=FakeClock(), rng=rng)
        for n in range(QUEUE + 5):
            events.recorder("c").normal(pod(f"p{n}"), "R", "Create", "x")
        assert events.dropped == 5


async def test_a_server_in_trouble_is_tried_again_under_the_same_name() -> None:
    api, clock = FakeApi((503, failure(503, "ServiceUnavailable")), CREATED), FakeClock()
    async with recording(api, clock) as events:
        events.recorder("c").normal(POD, "R", "Create", "x")
        await until(lambda: len(api.requests) == 1 and clock.sleepers == 2)
        await clock.advance(1.0)
        await quiet(events)
    assert len(api.requests) == 2
    assert api.bodies[0] == api.bodies[1]
    assert events.dropped == 0


@pytest.mark.parametrize("code", [403, 404, 422])
async def test_what_cannot_be_written_is_dropped_at_once(code: int) -> None:
    api, clock = FakeApi((code, failure(code, "No"))), FakeClock()
    async with recording(api, clock) as events:
        events.recorder("c").normal(POD, "R", "Create", "x")
        await quiet(events)
        await until(lambda: events.dropped == 1)
    assert len(api.requests) == 1


async def test_flushing_writes_what_is_left_and_takes_no_longer_than_it_may() -> None:
    api, clock = FakeApi(CREATED), FakeClock()
    async with connected(api, clock=clock) as client:
        rng = random.Random(1)  # noqa: S311 (seeded on purpose)
        events = Events(client, clock=clock, rng=rng)
        for _ in range(7):
            events.recorder("c").normal(POD, "R", "Create", "x")
        await events.flush(grace=10.0)
        assert [r.method for r in api.requests] == ["POST", "PATCH", "PATCH"]
        assert api.bodies[-1]["series"]["count"] == 7

        async def hang(request: web.Request) -> web.StreamResponse:
            await asyncio.sleep(3600)
            raise AssertionError("the client should have gone")

        api.answers = [hang]
        for n in range(3):
            events.recorder("c").normal(pod(f"p{n}"), "R", "Create", "x")
        await events.flush(grace=0.05)
        assert events.dropped == 3


@pytest.mark.parametrize("text", ["x" * 3000, "é" * 700, "🎉" * 300, "a" + "🎉" * 300, "x" * 1024, "short"])
def test_notes_are_cut_between_characters(text: str) -> None:
    cut = truncated(text)
    assert len(cut.encode()) <= NOTE_LIMIT
    assert (
        cut == text if len(text.encode()) <= NOTE_LIMIT else cut.endswith("…") and text.startswith(cut[:-1])
    )


async def test_no_credentials_get_into_a_note() -> None:
    api, clock = FakeApi(CREATED), FakeClock()
    async with recording(api, clock) as events:
        events.recorder("c").warning(POD, "R", "Create", "cannot reach redis://:hunter2@host:6379")
        await quiet(events)
    assert "hunter2" not in api.bodies[0]["note"]


async def test_the_events_of_cluster_scoped_objects_are_in_the_default_namespace() -> None:
    api, clock = FakeApi(CREATED), FakeClock()
    node: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n" * 253, "uid": "u"}}
    async with recording(api, clock) as events:
        events.recorder("c").normal(node, "R", "Create", "x")
        await quiet(events)
    assert api.requests[0].path == "/apis/events.k8s.io/v1/namespaces/default/events"
    assert len(api.bodies[0]["metadata"]["name"]) == 253
    assert "namespace" not in api.bodies[0]["regarding"]
