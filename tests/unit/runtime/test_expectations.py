"""Expectations: the cache must show our writes before we decide again, for as long as the limit."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.kube.resource import Key, key_of
from kuberay_op.runtime.expectations import Expectations, View, older
from kuberay_op.testing.clock import FakeClock

OWNER = Key("ns", "cluster")


class DictCache(dict[Key, dict[str, Any]]):
    def see(self, obj: dict[str, Any]) -> None:
        self[key_of(obj)] = obj


def pod(name: str = "p", uid: str = "u1", version: str = "10", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": version} | metadata}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def expectations(clock: FakeClock) -> Expectations:
    return Expectations(clock=clock)


def test_nothing_written_means_the_cache_is_current(expectations: Expectations) -> None:
    assert expectations.check(OWNER) is View.CURRENT
    assert expectations.satisfied(OWNER)


def test_a_created_object_must_appear(expectations: Expectations) -> None:
    cache = DictCache()
    expectations.created(OWNER, cache, pod())
    assert expectations.check(OWNER) is View.BEHIND
    assert [e.what for e in expectations.unmet(OWNER)] == ["created"]
    cache.see(pod())
    assert expectations.check(OWNER) is View.CURRENT
    assert len(expectations) == 0


def test_an_object_of_the_same_name_is_not_the_one_created(expectations: Expectations) -> None:
    cache = DictCache()
    cache.see(pod(uid="old", version="99"))
    expectations.created(OWNER, cache, pod(uid="new"))
    assert not expectations.satisfied(OWNER)


def test_a_change_must_be_seen_or_overtaken(expectations: Expectations) -> None:
    cache = DictCache()
    cache.see(pod(version="9"))
    expectations.changed(OWNER, cache, pod(version="10"))
    assert not expectations.satisfied(OWNER)
    cache.see(pod(version="100"))  # as a number, not as text
    assert expectations.satisfied(OWNER)
    expectations.changed(OWNER, cache, pod(version="101"))
    cache.clear()  # deleted by somebody else: that is later than our change
    assert expectations.satisfied(OWNER)


def test_a_deleted_object_must_be_marked_or_gone_or_replaced(expectations: Expectations) -> None:
    cache = DictCache()
    for after in (pod(deletionTimestamp="2030-01-01T00:00:00Z"), None, pod(uid="other")):
        cache.see(pod())
        expectations.deleted(OWNER, cache, pod())
        assert not expectations.satisfied(OWNER)
        cache.clear()
        if after:
            cache.see(after)
        assert expectations.satisfied(OWNER)


def test_a_change_to_an_object_the_cache_never_showed_still_waits_for_it(expectations: Expectations) -> None:
    cache = DictCache()
    expectations.created(OWNER, cache, pod(version="10"))
    expectations.changed(OWNER, cache, pod(version="11"))
    assert not expectations.satisfied(OWNER)
    cache.see(pod(version="10"))
    assert not expectations.satisfied(OWNER)
    cache.see(pod(version="11"))
    assert expectations.satisfied(OWNER)


async def test_a_lost_event_delays_and_never_freezes(expectations: Expectations, clock: FakeClock) -> None:
    cache = DictCache()
    expectations.created(OWNER, cache, pod())
    await clock.advance(expectations.limit - 0.1)
    assert expectations.check(OWNER) is View.BEHIND
    await clock.advance(0.1)
    assert expectations.check(OWNER) is View.OVERDUE
    assert not expectations.satisfied(OWNER), "an overdue view must never be taken for a current one"
    expectations.forget(OWNER)
    assert expectations.check(OWNER) is View.CURRENT


def test_owners_do_not_wait_for_each_other(expectations: Expectations) -> None:
    cache = DictCache()
    expectations.created(OWNER, cache, pod())
    assert expectations.satisfied(Key("ns", "other"))
    assert expectations.owners() == [OWNER]
    assert expectations.waiting_for(pod()) is None, "nobody's pass was put off"
    assert expectations.check(OWNER) is View.BEHIND
    assert expectations.waiting_for(pod()) == OWNER
    assert expectations.waiting_for(pod(uid="another")) is None
    expectations.clear()
    assert expectations.satisfied(OWNER)
    assert expectations.waiting_for(pod()) is None


@pytest.mark.parametrize(
    ("version", "other", "answer"),
    [
        ("9", "10", True),
        ("10", "10", False),
        ("11", "10", False),
        ("x", "x", False),
        ("x", "10", True),
        ("", "1", True),
    ],
)
def test_versions_compare_as_numbers(version: str, other: str, answer: bool) -> None:
    assert older(version, other) is answer
