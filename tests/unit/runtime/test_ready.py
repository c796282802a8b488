"""The order of ready keys: priority, turns between namespaces, and ageing that nothing can outrun."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuberay_op.kube.resource import Key
from kuberay_op.runtime.ready import Priority, Ready

NEVER = 10**9


def drain(ready: Ready) -> list[str]:
    return [str(ready.pop()) for _ in range(len(ready))]


def test_the_highest_priority_goes_first() -> None:
    ready = Ready(oldest_every=NEVER)
    ready.add(Key("a", "resync"), Priority.RESYNC)
    ready.add(Key("a", "change"), Priority.CHANGE)
    ready.add(Key("a", "edit"), Priority.EDIT)
    assert drain(ready) == ["a/edit", "a/change", "a/resync"]


def test_a_rise_in_priority_moves_a_key_and_a_fall_does_not() -> None:
    ready = Ready(oldest_every=NEVER)
    ready.add(Key("a", "one"), Priority.RESYNC)
    ready.add(Key("a", "two"), Priority.CHANGE)
    ready.add(Key("a", "one"), Priority.EDIT)
    ready.add(Key("a", "two"), Priority.RESYNC)
    assert (ready.depth(Priority.EDIT), ready.depth(Priority.CHANGE), ready.depth(Priority.RESYNC)) == (
        1,
        1,
        0,
    )
    assert drain(ready) == ["a/one", "a/two"]


def test_namespaces_take_turns() -> None:
    ready = Ready(oldest_every=NEVER)
    for number in range(3):
        ready.add(Key("big", str(number)), Priority.CHANGE)
    ready.add(Key("small", "0"), Priority.CHANGE)
    ready.add(Key("", "cluster-scoped"), Priority.CHANGE)
    assert drain(ready) == ["big/0", "small/0", "cluster-scoped", "big/1", "big/2"]


def test_popping_from_nothing_is_an_error() -> None:
    with pytest.raises(LookupError, match="no key is ready"):
        Ready().pop()


keys = st.builds(Key, st.sampled_from("abc"), st.sampled_from("1234"))
additions = st.tuples(keys, st.sampled_from(Priority))


@given(st.lists(st.one_of(additions, st.none()), max_size=200), st.integers(2, 6))
def test_no_key_waits_longer_than_its_age_allows(
    steps: list[tuple[Key, Priority] | None], every: int
) -> None:
    ready = Ready(oldest_every=every)
    pops = 0
    latest: dict[Key, int] = {}  # the pick by which each key must be out
    for step in steps:
        if step is not None:
            key, priority = step
            if key not in ready:
                latest[key] = pops + (len(ready) + 1) * every
            ready.add(key, priority)
        elif len(ready):
            pops += 1
            assert pops <= latest.pop(ready.pop())
    assert set(ready) == set(latest)
    assert sum(ready.depth(priority) for priority in Priority) == len(ready)


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 5), min_size=2))
def test_no_namespace_is_served_twice_before_another_that_waits(sizes: dict[str, int]) -> None:
    ready = Ready(oldest_every=NEVER)
    for namespace, size in sizes.items():
        for number in range(size):
            ready.add(Key(namespace, str(number)), Priority.CHANGE)
    served = [ready.pop().namespace for _ in range(len(ready))]
    for namespace, size in sizes.items():
        assert served.count(namespace) == size
    for start, namespace in enumerate(served):
        for other, size in sizes.items():
            before = served[:start].count(other)
            if before < size:  # the other namespace still had keys
                assert served[: start + 1].count(namespace) <= before + 1
