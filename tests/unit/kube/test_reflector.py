"""What the wire can do to a reflector, played by a fake server. The real one: ``tests/apiserver/kube``."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from kuberay_op.clock import SystemClock
from kuberay_op.kube.reflector import Reflector
from kuberay_op.kube.resource import PODS, Key
from tests.unit.kube.fake_api import Answer, FakeApi, bookmark, connected, failure, line, pod, streams, until


async def stay(request: web.Request) -> None:
    await asyncio.sleep(3600)


async def cut(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.abort()


QUIET = streams(then=stay)


class Seen:
    """A handler that remembers what it was told."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str, str]] = []

    def __call__(self, kind: str, old: Any, new: Any) -> None:
        versions = [obj["metadata"]["resourceVersion"] if obj else "-" for obj in (old, new)]
        self.changes.append((kind, (new or old)["metadata"]["name"], ">".join(versions)))


@asynccontextmanager
async def reflecting(api: FakeApi, **options: Any) -> AsyncIterator[tuple[Reflector, Seen]]:
    rng = random.Random(1)  # noqa: S311 (seeded on purpose)
    async with connected(api) as client:
        reflector, seen = Reflector(client, PODS, clock=SystemClock(), rng=rng, **options), Seen()
        reflector.add_handler(seen)
        task = asyncio.create_task(reflector.run())
        yield reflector, seen
        assert not task.done(), "a reflector never ends on its own"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def listed(*objects: dict[str, Any], version: int, then: Any = None) -> Answer:
    added = b"".join(line("ADDED", obj) for obj in objects)
    return streams(added + bookmark(version, end=True), then=then)


async def test_a_streamed_list_then_a_watch() -> None:
    more = line("MODIFIED", pod("a", 11)) + line("ADDED", pod("c", 12)) + line("DELETED", pod("b", 13))
    api = FakeApi(
        streams(
            line("ADDED", pod("a", 5)) + line("ADDED", pod("b", 3)), bookmark(10, end=True), more, then=stay
        )
    )
    async with reflecting(api) as (reflector, seen):
        await reflector.synced.wait()
        await until(lambda: len(seen.changes) == 5)
        assert reflector.store.keys() == [Key("ns", "a"), Key("ns", "c")]
    assert seen.changes == [
        ("ADDED", "a", "->5"),
        ("ADDED", "b", "->3"),
        ("MODIFIED", "a", "5>11"),
        ("ADDED", "c", "->12"),
        ("DELETED", "b", "13>-"),
    ]
    query = api.requests[0].query
    assert query["sendInitialEvents"] == "true"
    assert query["resourceVersionMatch"] == "NotOlderThan"
    assert query["allowWatchBookmarks"] == "true"
    assert 300 <= int(query["timeoutSeconds"]) <= 600


@pytest.mark.parametrize("code", [400, 422])
async def test_a_server_that_cannot_stream_lists_is_read_in_pages(code: int) -> None:
    page = {"metadata": {"resourceVersion": "10", "continue": "x"}, "items": [pod("a", 5)]}
    last = {"metadata": {"resourceVersion": "10"}, "items": [pod("b", 6)]}
    api = FakeApi((code, failure(code, "Invalid")), (200, page), (200, last), QUIET)
    async with reflecting(api, page=1) as (reflector, seen):
        await reflector.synced.wait()
        await until(lambda: len(api.requests) == 4)
    assert [change[:2] for change in seen.changes] == [("ADDED", "a"), ("ADDED", "b")]
    assert api.requests[3].query["resourceVersion"] == "10"
    assert "sendInitialEvents" not in api.requests[3].query


async def test_pages_that_take_too_long_are_read_in_one_piece() -> None:
    page = {"metadata": {"resourceVersion": "10", "continue": "x"}, "items": [pod("old", 5)]}
    whole = {"metadata": {"resourceVersion": "20"}, "items": [pod("new", 15)]}
    api = FakeApi((200, page), (410, failure(410, "Expired")), (200, whole), QUIET)
    async with reflecting(api, streaming=False) as (reflector, seen):
        await reflector.synced.wait()
    assert "limit" not in api.requests[2].query
    assert sorted(seen.changes) == [
        ("ADDED", "new", "->15"),
        ("ADDED", "old", "->5"),
        ("DELETED", "old", "5>-"),
    ]


async def test_a_list_that_is_refused_is_tried_again() -> None:
    refused = (400, failure(400, "BadRequest"))
    page = {"metadata": {"resourceVersion": "10"}, "items": []}
    api = FakeApi(
        refused, refused, (410, failure(410, "Expired")), (410, failure(410, "Expired")), (200, page), QUIET
    )
    async with reflecting(api) as (reflector, _):
        await reflector.synced.wait()
        assert reflector.errors == 2


@pytest.mark.parametrize("then", [None, stay], ids=["ended", "silent"])
async def test_a_server_that_does_not_end_its_list_is_read_in_pages(then: Any) -> None:
    """It knows the parameter as little as it minds it."""
    page = {"metadata": {"resourceVersion": "10"}, "items": [pod("a", 5)]}
    api = FakeApi(streams(line("ADDED", pod("a", 5)), then=then), (200, page), QUIET)
    async with reflecting(api, silence=0.1) as (reflector, _):
        await reflector.synced.wait()
        await until(lambda: len(api.requests) >= 3)
    assert "watch" not in api.requests[1].query
    assert api.requests[2].query["resourceVersion"] == "10"


@pytest.mark.parametrize("how", [None, cut], ids=["ended", "broken"])
async def test_a_watch_goes_on_where_it_stopped(how: Any) -> None:
    api = FakeApi(
        listed(pod("a", 5), version=10),
        streams(line("MODIFIED", pod("a", 11)), bookmark(20), then=how),
        QUIET,
    )
    async with reflecting(api) as (_, seen):
        await until(lambda: len(api.requests) == 3)
    assert [r.query.get("resourceVersion") for r in api.requests] == [None, "10", "20"]
    assert seen.changes == [("ADDED", "a", "->5"), ("MODIFIED", "a", "5>11")]


@pytest.mark.parametrize(
    "gone",
    [streams(line("ERROR", failure(410, "Expired"))), (410, failure(410, "Expired"))],
    ids=["event", "status"],
)
async def test_gone_becomes_exact_differences(gone: Any) -> None:
    api = FakeApi(
        listed(pod("same", 1), pod("new", 2), pod("deleted", 3), pod("reborn", 4, uid="old"), version=10),
        gone,
        listed(
            pod("same", 1),
            pod("new", 12),
            pod("reborn", 13, uid="new"),
            pod("added", 14),
            version=20,
            then=stay,
        ),
    )
    async with reflecting(api) as (reflector, seen):
        await until(lambda: len(seen.changes) == 9)
        assert sorted(key.name for key in reflector.store) == ["added", "new", "reborn", "same"]
    assert seen.changes[4:] == [
        ("MODIFIED", "new", "2>12"),
        ("DELETED", "reborn", "4>-"),
        ("ADDED", "reborn", "->13"),
        ("ADDED", "added", "->14"),
        ("DELETED", "deleted", "3>-"),
    ]


async def test_half_a_list_deletes_nothing_and_syncs_nothing() -> None:
    api = FakeApi(
        listed(pod("a", 1), pod("b", 2), version=10),
        (410, failure(410, "Expired")),
        streams(line("ADDED", pod("b", 2)), then=cut),
        listed(pod("b", 2), version=20, then=stay),
    )
    async with reflecting(api) as (reflector, seen):
        await until(lambda: len(api.requests) >= 3)
        assert Key("ns", "a") in reflector.store
        await until(lambda: len(api.requests) >= 4 and len(seen.changes) == 3)
    assert seen.changes[2] == ("DELETED", "a", "1>-")


async def test_lines_that_make_no_sense_are_asked_for_again() -> None:
    api = FakeApi(
        listed(pod("a", 5), version=10),
        streams(line("MODIFIED", pod("a", 11)), b'{"type": "MODIF\n'),
        streams(line("MODIFIED", pod("a", 12)), then=stay),
    )
    async with reflecting(api) as (_, seen):
        await until(lambda: len(seen.changes) == 3)
    assert api.requests[2].query["resourceVersion"] == "11"


async def test_silence_makes_it_connect_anew() -> None:
    api = FakeApi(listed(pod("a", 5), version=10, then=stay), QUIET)
    async with reflecting(api, silence=0.05) as (reflector, _):
        await until(lambda: len(api.requests) >= 3)
        assert reflector.failing_since is None
    assert api.requests[2].query["resourceVersion"] == "10"


async def test_a_server_that_fails_on_a_version_is_asked_for_a_list() -> None:
    """After etcd was restored from a backup the server waits for a version that never comes."""
    too_large = (504, failure(504, "Timeout", "Too large resource version"))
    api = FakeApi(
        listed(pod("a", 900), version=1000), too_large, too_large, too_large,
        listed(pod("a", 5), version=10, then=stay),
    )  # fmt: skip
    async with reflecting(api) as (reflector, seen):
        await until(lambda: len(seen.changes) == 2)
        assert reflector.errors == 3
    assert seen.changes[1] == ("MODIFIED", "a", "900>5")


def health(reflector: Reflector) -> dict[str, bool]:
    return {
        "contact": reflector.last_contact is not None,
        "failing": reflector.failing_since is not None,
        "synced": reflector.synced.is_set(),
    }


async def test_trouble_is_seen_in_its_health() -> None:
    api = FakeApi((503, failure(503, "ServiceUnavailable")))
    async with reflecting(api) as (reflector, _):
        await until(lambda: reflector.errors >= 2)
        assert health(reflector) == {"contact": False, "failing": True, "synced": False}
        api.answers = [listed(version=10, then=stay)]
        await reflector.synced.wait()
        assert health(reflector) == {"contact": True, "failing": False, "synced": True}


async def test_a_server_that_ends_every_watch_at_once_is_not_hammered() -> None:
    api = FakeApi(listed(version=10), streams())
    async with reflecting(api) as (reflector, _):
        await until(lambda: reflector.errors >= 3)
        assert len(api.requests) < 10


async def test_a_handler_that_fails_stops_nobody() -> None:
    def bad(kind: str, old: Any, new: Any) -> None:
        raise RuntimeError("a bug")

    api = FakeApi(listed(pod("a", 5), pod("b", 6), version=10, then=stay))
    async with reflecting(api) as (reflector, seen):
        reflector.add_handler(bad)
        reflector.add_handler(late := Seen())
        await reflector.synced.wait()
        assert len(seen.changes) == len(late.changes) == 2
        assert reflector.errors == 2


async def test_objects_that_make_no_sense_do_not_end_it() -> None:
    broken = line("ADDED", {"kind": "Pod"})
    api = FakeApi(streams(broken), listed(pod("a", 5), version=10, then=stay))
    async with reflecting(api) as (reflector, _):
        await reflector.synced.wait()
        assert len(reflector.store) == 1
        assert reflector.errors == 1


async def test_a_handler_that_comes_late_is_told_what_there_is() -> None:
    api = FakeApi(listed(pod("a", 5), version=10, then=stay))
    async with reflecting(api) as (reflector, _):
        await reflector.synced.wait()
        reflector.add_handler(late := Seen())
        assert late.changes == [("ADDED", "a", "->5")]


async def test_namespaces_are_streams_of_their_own() -> None:
    async def by_namespace(request: web.Request) -> web.StreamResponse:
        namespace = request.path.split("/")[4]
        obj = pod("a", 5)
        obj["metadata"]["namespace"] = namespace
        if namespace == "slow" and len(api.requests) < 5:
            return web.Response(status=503)
        if namespace == "b" and request.query.get("resourceVersion"):
            return web.Response(status=410)
        objects = [] if namespace == "b" and len(api.requests) > 4 else [obj]
        return await listed(*objects, version=10, then=None if namespace == "b" else stay)(request)

    api = FakeApi(by_namespace)
    async with reflecting(api, namespaces=["a", "b", "slow"]) as (reflector, _):
        await until(lambda: Key("a", "a") in reflector.store)
        assert not reflector.synced.is_set()
        await reflector.synced.wait()
        await until(lambda: Key("b", "a") not in reflector.store)
        assert Key("a", "a") in reflector.store, "a fresh list of one namespace says nothing of another"


async def test_a_thousand_events_at_once_do_not_hold_the_loop() -> None:
    """The loop guard of this folder fails the test if one callback takes 50 ms of CPU."""
    flood = b"".join(line("ADDED", pod(f"p{n}", n + 1, spec={"x": [n] * 50})) for n in range(2000))
    api = FakeApi(streams(flood, bookmark(9999, end=True), then=stay))
    async with reflecting(api) as (reflector, _):
        await reflector.synced.wait()
        assert len(reflector.store) == 2000


def test_a_trim_belongs_to_the_store() -> None:
    from kuberay_op.kube.cache import Store
    from kuberay_op.kube.trim import EVERYTHING

    rng: Any = None
    with pytest.raises(ValueError, match="give the trim to the Store"):
        Reflector(rng, PODS, Store(PODS), clock=SystemClock(), rng=rng, trim=EVERYTHING)
