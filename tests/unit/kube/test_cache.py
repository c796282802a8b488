from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.frozen import thaw
from kuberay_op.kube.cache import OWNER, TOMBSTONES, Change, Store, label
from kuberay_op.kube.resource import PODS, Key
from kuberay_op.kube.trim import Trim
from tests.unit.kube.fake_api import pod

A = Key("ns", "a")


def kinds(changes: tuple[Change, ...]) -> list[str]:
    return [change.type for change in changes]


def owned(name: str, version: int, *uids: str, **labels: str) -> dict[str, Any]:
    obj = pod(name, version)
    obj["metadata"] |= {"ownerReferences": [{"uid": uid} for uid in uids], "labels": labels}
    return obj


def test_changes_carry_the_old_and_the_new_object() -> None:
    store = Store(PODS)
    [added] = store.put(pod("a", 1))
    assert (added.type, added.old, added.new) == ("ADDED", None, store.get(A))
    [changed] = store.put(pod("a", 2))
    assert changed == ("MODIFIED", added.new, store.get(A))
    [deleted] = store.remove(pod("a", 3, status={"phase": "Failed"}))
    assert deleted.type == "DELETED"
    assert deleted.new is None
    assert deleted.old is not None
    assert deleted.old["status"] == {"phase": "Failed"}, "the last state is what the server says it is"
    assert (len(store), store.get(A), store.keys()) == (0, None, [])


def test_events_that_come_twice_or_late_change_nothing() -> None:
    store = Store(PODS)
    store.put(pod("a", 5))
    assert store.put(pod("a", 5)) == ()
    assert store.put(pod("a", 4)) == ()
    assert store.remove(pod("a", 4)) == ()
    assert kinds(store.remove(pod("a", 6))) == ["DELETED"]
    assert store.remove(pod("a", 6)) == ()
    assert store.put(pod("a", 5)) == (), "a deleted object does not come back"
    assert kinds(store.put(pod("a", 7, uid="other"))) == ["ADDED"]
    assert store.remove(pod("a", 6)) == (), "the deletion of its predecessor"


def test_an_object_of_the_same_name_is_another_object() -> None:
    store = Store(PODS)
    store.put(pod("a", 1, uid="one"))
    assert kinds(store.put(pod("a", 9, uid="two"))) == ["DELETED", "ADDED"]
    assert store.put(pod("a", 5, uid="one")) == ()


def test_a_list_is_right_even_about_older_versions() -> None:
    """After etcd was restored from a backup the server goes back in time, and the cache must follow."""
    store = Store(PODS)
    store.put(pod("a", 900))
    store.put(pod("b", 901))
    store.remove(pod("b", 902))
    assert kinds(store.put(pod("a", 5), listed=True)) == ["MODIFIED"]
    assert kinds(store.put(pod("b", 6), listed=True)) == ["ADDED"]


def test_versions_that_are_no_numbers_are_taken_as_they_come() -> None:
    store = Store(PODS)
    first, second = pod("a"), pod("a")
    first["metadata"]["resourceVersion"], second["metadata"]["resourceVersion"] = "x9", "x1"
    store.put(first)
    assert kinds(store.put(second)) == ["MODIFIED"]
    assert kinds(store.remove(second)) == ["DELETED"]
    assert kinds(store.put(first)) == ["ADDED"]


def test_what_a_list_does_not_have_is_gone() -> None:
    store = Store(PODS)
    for name in ("a", "b", "c"):
        store.put(pod(name))
    elsewhere = pod("d")
    elsewhere["metadata"]["namespace"] = "other"
    store.put(elsewhere)
    gone = store.retain("ns", [Key("ns", "b")])
    assert [change.old["metadata"]["name"] for change in gone if change.old] == ["a", "c"]
    assert store.keys() == [Key("ns", "b"), Key("other", "d")]
    assert kinds(store.retain("", [])) == ["DELETED", "DELETED"]
    assert len(store) == 0


def test_indexes_follow_changes() -> None:
    store = Store(PODS, indexers={"cluster": label("cluster")})
    store.put(owned("a", 1, "u1", cluster="x"))
    store.put(owned("b", 2, "u1", "u2", cluster="y"))
    store.put(owned("c", 3))

    def names(index: str, value: str) -> list[str]:
        return [obj["metadata"]["name"] for obj in store.by_index(index, value)]

    assert (names(OWNER, "u1"), names(OWNER, "u2"), names("cluster", "x")) == (["a", "b"], ["b"], ["a"])
    store.put(owned("a", 4, "u2", cluster="y"))
    assert (names(OWNER, "u1"), names("cluster", "x"), names("cluster", "y")) == (["b"], [], ["b", "a"])
    store.remove(owned("b", 5, "u1"))
    assert (names(OWNER, "u1"), names(OWNER, "u2")) == ([], ["a"])
    store.add_index("first", lambda obj: [obj["metadata"]["name"][0]])
    assert names("first", "c") == ["c"]
    assert [obj["metadata"]["name"] for obj in store.list("ns")] == ["c", "a"]
    assert store.list("elsewhere") == []


def test_an_index_cannot_be_redefined() -> None:
    store = Store(PODS)
    with pytest.raises(ValueError, match="another index named 'owner'"):
        store.add_index(OWNER, lambda obj: ())


def test_an_indexer_that_fails_finds_nothing() -> None:
    store = Store(PODS, indexers={"bad": lambda obj: [obj["spec"]["nodeName"]]})
    store.put(pod("a", 1))
    store.put(pod("b", 2, spec={"nodeName": "n"}))
    assert [obj["metadata"]["name"] for obj in store.by_index("bad", "n")] == ["b"]
    assert len(store.list()) == 2


def test_emptied_indexes_keep_no_memory() -> None:
    store = Store(PODS)
    for n in range(100):
        store.put(owned(f"p{n}", n + 1, f"u{n}"))
    for n in range(100):
        store.remove(owned(f"p{n}", n + 1000, f"u{n}"))
    assert store._indexes[OWNER] == {}


def test_tombstones_are_bounded() -> None:
    store = Store(PODS)
    for n in range(TOMBSTONES + 10):
        store.remove(pod(f"p{n}", n + 1))
    assert len(store._buried) == TOMBSTONES


def test_cached_objects_are_trimmed_and_cannot_be_changed() -> None:
    store = Store(PODS, trim=Trim.only("status.phase"))
    store.put(pod("a", 1, spec={"nodeName": "n"}, status={"phase": "Running"}))
    obj = store.get(A)
    assert obj is not None
    assert "spec" not in obj
    with pytest.raises(TypeError, match="cannot be changed"):
        obj["metadata"]["labels"] = {}
    mine = thaw(obj)
    mine["metadata"]["labels"] = {}
    assert A in store
