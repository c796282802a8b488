"""Which change wakes which key, and how urgently."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, cast

import pytest

from kuberay_op.frozen import FrozenDict, freeze
from kuberay_op.kube.client import Client
from kuberay_op.kube.reflector import Handler
from kuberay_op.kube.resource import CONFIG_MAPS, NAMESPACES, PODS, SECRETS, Key, Resource
from kuberay_op.metrics import Metrics
from kuberay_op.runtime.manager import CATCH_UP, Manager
from kuberay_op.runtime.result import Result
from kuberay_op.runtime.wiring import Wiring, edited, owner_key
from kuberay_op.testing.clock import FakeClock

THINGS = Resource("example.com", "v1", "things", "Thing")


def obj(name: str, **metadata: Any) -> FrozenDict:
    uid = metadata.pop("uid", f"uid-{name}")
    return cast(FrozenDict, freeze({"metadata": {"namespace": "ns", "name": name, "uid": uid, **metadata}}))


def owned(name: str, owner: str, **reference: Any) -> FrozenDict:
    owner_ref = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "name": owner,
        "uid": "u",
        "controller": True,
    }
    return obj(name, ownerReferences=[owner_ref | reference])


class Plug(Manager):
    """A manager whose caches are the test's hands."""

    def __init__(self) -> None:
        rng = Random(1)  # noqa: S311 (seeded on purpose)
        super().__init__(cast(Client, None), clock=FakeClock(), rng=rng, metrics=Metrics(process=False))
        self.handlers: dict[Resource, list[Handler]] = {}

    def on_change(self, resource: Resource, handler: Handler) -> None:
        self.handlers.setdefault(resource, []).append(handler)

    def change(self, resource: Resource, old: FrozenDict | None, new: FrozenDict | None) -> None:
        kind = "ADDED" if old is None else "DELETED" if new is None else "MODIFIED"
        for handler in self.handlers[resource]:
            handler(kind, old, new)


async def never(_: Key) -> Result:
    raise AssertionError("no worker runs in these tests")


def woken(wiring: Wiring) -> dict[str, str]:
    return {entry.key.name: entry.priority for entry in wiring.controller.queue.entries()}


@pytest.fixture
def manager() -> Plug:
    return Plug()


async def test_the_object_itself_is_urgent_when_edited_and_not_when_only_its_status_changes(
    manager: Plug,
) -> None:
    wiring = manager.controller("things", THINGS, never)
    wiring.wake_up([])
    manager.change(THINGS, None, obj("new"))
    manager.change(THINGS, obj("gone"), None)
    manager.change(THINGS, obj("edited", generation=1), obj("edited", generation=2))
    manager.change(THINGS, obj("status", resourceVersion="1"), obj("status", resourceVersion="2"))
    assert woken(wiring) == {"new": "EDIT", "gone": "EDIT", "edited": "EDIT", "status": "CHANGE"}


async def test_a_predicate_keeps_changes_away_but_never_arrivals_and_departures(manager: Plug) -> None:
    wiring = manager.controller("things", THINGS, never, when=edited)
    wiring.wake_up([])
    manager.change(THINGS, obj("status", resourceVersion="1"), obj("status", resourceVersion="2"))
    manager.change(THINGS, None, obj("new"))
    assert woken(wiring) == {"new": "EDIT"}


@pytest.mark.parametrize("field", ["generation", "labels", "annotations"])
def test_an_edit_is_a_change_of_spec_labels_or_annotations(field: str) -> None:
    assert edited(obj("a", **{field: {"x": "1"}}), obj("a", **{field: {"x": "2"}}))
    assert not edited(obj("a", resourceVersion="1"), obj("a", resourceVersion="2"))


async def test_what_an_object_owns_wakes_it(manager: Plug) -> None:
    wiring = manager.controller("things", THINGS, never).owns(PODS, SECRETS)
    wiring.wake_up([])
    manager.change(PODS, None, owned("p", "a"))
    manager.change(SECRETS, owned("s", "b"), None)
    manager.change(PODS, owned("q", "c"), owned("q", "d"))
    manager.change(PODS, None, obj("foreign"))
    assert woken(wiring) == dict.fromkeys("abcd", "CHANGE")


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ({}, True),
        ({"apiVersion": "example.com/v1beta1"}, True),  # an older object of ours
        ({"apiVersion": "other.com/v1"}, False),
        ({"apiVersion": "v1"}, False),
        ({"kind": "Other"}, False),
        ({"controller": False}, False),
    ],
)
def test_only_the_controller_of_the_right_kind_owns(reference: dict[str, Any], found: bool) -> None:
    assert owner_key(owned("p", "a", **reference), THINGS) == (Key("ns", "a") if found else None)


async def test_watching_something_else_asks_for_the_keys(manager: Plug) -> None:
    wiring = manager.controller("things", THINGS, never).watches(
        NAMESPACES, lambda space: [Key(space["metadata"]["name"], name) for name in "ab"]
    )
    wiring.wake_up([])
    manager.change(NAMESPACES, None, obj("team"))
    assert {str(entry.key) for entry in wiring.controller.queue.entries()} == {"team/a", "team/b"}


async def test_asleep_nothing_is_queued_and_waking_looks_at_everything_once(manager: Plug) -> None:
    wiring = manager.controller("things", THINGS, never).owns(PODS)
    manager.change(THINGS, None, obj("early"))
    assert woken(wiring) == {}
    wiring.wake_up([Key("ns", "a"), Key("ns", "b")])
    assert woken(wiring) == {"a": "RESYNC", "b": "RESYNC"}
    wiring.go_to_sleep()
    manager.change(PODS, None, owned("p", "c"))
    wiring.wake(Key("ns", "d"))
    assert set(woken(wiring)) == {"a", "b"}


async def test_news_of_an_awaited_object_wakes_its_owner_whatever_the_predicate_says(manager: Plug) -> None:
    wiring = manager.controller("things", THINGS, never, when=edited)
    wiring.wake_up([])
    key, old, written = Key("ns", "a"), obj("a", resourceVersion="1"), obj("a", resourceVersion="2")
    wiring.expectations.changed(key, cast(Any, {key: old}), written)
    manager.change(THINGS, old, written)
    assert woken(wiring) == {}, "nobody has asked yet"
    assert not wiring.expectations.satisfied(key)
    manager.change(THINGS, old, written)
    assert woken(wiring) == {"a": "CHANGE"}


async def test_a_cache_is_declared_once(manager: Plug) -> None:
    pods = manager.cache(PODS, label_selector="a=b")
    assert manager.cache(PODS) is pods
    assert manager.cache(PODS, label_selector="a=b") is pods
    with pytest.raises(ValueError, match="the cache of pods exists already, with the selector 'a=b'"):
        manager.cache(PODS, label_selector="c=d")
    with pytest.raises(ValueError, match="declare its options first"):
        manager.cache(PODS, indexers={"x": lambda _: ()})
    manager.controller("things", THINGS, never)
    with pytest.raises(ValueError, match="there is a controller named 'things' already"):
        manager.controller("things", CONFIG_MAPS, never)


async def test_a_new_leader_waits_for_watches_that_fail_but_not_for_ever(manager: Plug) -> None:
    clock = manager.heartbeat.clock
    assert isinstance(clock, FakeClock)
    manager.cache(PODS)
    [stream] = manager.reflectors["pods"]._streams
    stream.failing_since = 0.0
    waiting = asyncio.create_task(manager._hearing_again())
    await clock.advance(5)
    assert not waiting.done()
    stream.failing_since = None
    await clock.advance(1)
    assert waiting.done()
    stream.failing_since = 5.0
    waiting = asyncio.create_task(manager._hearing_again())
    await clock.advance(CATCH_UP + 1)
    assert waiting.done()
