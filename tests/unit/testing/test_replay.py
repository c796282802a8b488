"""The replay server speaks LIST and WATCH well enough for a real client."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from kuberay_op.clock import SystemClock
from kuberay_op.kube.cache import Store, label
from kuberay_op.kube.client import Client
from kuberay_op.kube.reflector import Reflector
from kuberay_op.kube.resource import PODS
from kuberay_op.testing.faults import plain_kubeconfig
from kuberay_op.testing.replay import Recording, ReplayServer

PATH = "/api/v1/pods"
OBJECTS = [{"metadata": {"name": f"pod-{n}", "labels": {"a": "b"}}} for n in range(250)]
EVENTS = [("MODIFIED", {"metadata": {"name": f"pod-{n}"}, "n": n}) for n in range(40)]


@pytest.fixture
def recording() -> Recording:
    return Recording.of(PATH, "v1", "Pod", OBJECTS, EVENTS)


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session:
        yield session


async def watched(
    session: aiohttp.ClientSession, server: ReplayServer, **params: str
) -> list[dict[str, Any]]:
    query = {"watch": "1", "timeoutSeconds": "1", **params}
    async with session.get(server.url + PATH, params=query) as answer:
        return [orjson.loads(line) for line in (await answer.read()).splitlines()]


async def test_pages_add_up_to_the_whole_list(recording: Recording, session: aiohttp.ClientSession) -> None:
    names: list[str] = []
    token = ""
    async with ReplayServer(recording, rate=1) as server:
        for _ in range(3):
            query = {"limit": "100", "continue": token}
            async with session.get(server.url + PATH, params=query) as answer:
                page = await answer.json()
            names += [item["metadata"]["name"] for item in page["items"]]
            token = page["metadata"].get("continue", "")
        async with session.get(server.url + PATH) as answer:
            whole = await answer.json()
    assert (page["kind"], page["metadata"]["resourceVersion"]) == ("PodList", "250")
    assert names == [obj["metadata"]["name"] for obj in OBJECTS]
    assert token == ""
    assert [item["metadata"]["name"] for item in whole["items"]] == names


async def test_a_watch_continues_after_the_version_it_names(
    recording: Recording, session: aiohttp.ClientSession
) -> None:
    async with ReplayServer(recording, rate=2000) as server:
        events = await watched(session, server, resourceVersion="250")
        later = await watched(session, server, resourceVersion="280")
    assert [event["object"]["n"] for event in events] == list(range(40))
    assert events[0]["object"]["metadata"]["resourceVersion"] == "251"
    assert [event["object"]["n"] for event in later] == list(range(30, 40))


async def test_a_streaming_list_ends_with_its_bookmark(
    recording: Recording, session: aiohttp.ClientSession
) -> None:
    async with ReplayServer(recording, rate=1, started=False) as server:
        events = await watched(session, server, sendInitialEvents="true")
    assert [event["type"] for event in events] == ["ADDED"] * 250 + ["BOOKMARK"]
    assert events[-1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_events_wait_for_the_start(recording: Recording, session: aiohttp.ClientSession) -> None:
    async with ReplayServer(recording, rate=2000, started=False) as server:
        assert await watched(session, server, resourceVersion="250") == []
        watching = asyncio.create_task(watched(session, server, resourceVersion="250"))
        async with session.post(server.url + "/-/start") as answer:
            assert answer.status == 200
        assert len(await watching) == 40
        async with session.get(server.url + "/-/sent") as answer:
            assert await answer.text() == "40"


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_reflector_fills_the_store_it_was_given(
    recording: Recording, tmp_path: Path, streaming: bool
) -> None:
    store = Store(PODS, indexers={"a": label("a")})
    done = asyncio.Event()

    def on_change(kind: str, old: Any, new: Any) -> None:
        if new and new.get("n") == 39:
            done.set()

    async with (
        ReplayServer(recording, rate=2000) as server,
        await Client.connect(plain_kubeconfig(server.url, tmp_path / "kubeconfig")) as client,
    ):
        rng = random.Random(1)  # noqa: S311 - jitter
        reflector = Reflector(
            client, PODS, store, clock=SystemClock(), rng=rng, streaming=streaming, page=100
        )
        reflector.add_handler(on_change)
        reflecting = asyncio.create_task(reflector.run())
        await asyncio.wait_for(done.wait(), 20)
        reflecting.cancel()
    assert reflector.store is store
    assert len(store) == 250
    assert len(store.by_index("a", "b")) == 210  # forty have lost their labels
