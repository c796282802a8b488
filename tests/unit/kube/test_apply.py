"""What the applier does when others are faster, against a fake server."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.errors import Retry
from kuberay_op.kube.apply import Action, Applier, NotOurs
from kuberay_op.kube.errors import Conflict, NotFound
from kuberay_op.kube.resource import PODS
from tests.unit.kube.fake_api import FakeApi, connected, failure, pod

CONFLICT = (409, failure(409, "Conflict"))
EXISTS = (409, failure(409, "AlreadyExists"))
MISSING = (404, failure(404, "NotFound"))


def ours(
    version: int = 1, *, controller: str = "owner", labels: dict[str, str] | None = None
) -> dict[str, Any]:
    obj = pod("a", version)
    owner = {"uid": controller, "controller": True, "kind": "RayCluster", "name": "c"}
    obj["metadata"] |= {"ownerReferences": [owner], "labels": labels or {}}
    return obj


def wanted(**labels: str) -> dict[str, Any]:
    obj = ours(labels=labels)
    for server_side in ("uid", "resourceVersion"):
        del obj["metadata"][server_side]
    return obj


async def test_what_is_missing_is_created_and_what_is_right_is_left() -> None:
    api = FakeApi((201, ours()))
    async with connected(api) as client:
        applier = Applier(client)
        assert (await applier.apply(PODS, wanted(), reason="test")).action is Action.CREATED
        done = await applier.apply(PODS, wanted(a="b"), ours(labels={"a": "b", "x": "y"}), reason="test")
        assert done.action is Action.UNCHANGED
    assert [r.method for r in api.requests] == ["POST"]


async def test_a_patch_is_for_the_version_it_was_made_from() -> None:
    api = FakeApi((200, ours(6)))
    async with connected(api) as client:
        done = await Applier(client).apply(PODS, wanted(a="b"), ours(5), reason="test")
    assert done.action is Action.PATCHED
    assert api.bodies == [{"metadata": {"labels": {"a": "b"}, "resourceVersion": "5"}}]


async def test_a_conflict_is_read_again_and_retried() -> None:
    api = FakeApi(CONFLICT, (200, ours(7, labels={"new": "x"})), (200, ours(8)))
    async with connected(api) as client:
        await Applier(client).apply(PODS, wanted(a="b"), ours(5), reason="test")
    assert [r.method for r in api.requests] == ["PATCH", "GET", "PATCH"]
    assert api.bodies[2] == {"metadata": {"labels": {"a": "b"}, "resourceVersion": "7"}}


async def test_a_conflict_that_has_settled_itself_needs_no_write() -> None:
    api = FakeApi(CONFLICT, (200, ours(7, labels={"a": "b"})))
    async with connected(api) as client:
        done = await Applier(client).apply(PODS, wanted(a="b"), ours(5), reason="test")
    assert done.action is Action.UNCHANGED


async def test_conflicts_without_end_are_given_up() -> None:
    api = FakeApi(*[CONFLICT, (200, ours(7))] * 10)
    async with connected(api) as client:
        with pytest.raises(Conflict, match="changed 5 times while we tried to write it: because"):
            await Applier(client).apply(PODS, wanted(a="b"), ours(5), reason="because")
    assert [r.method for r in api.requests].count("PATCH") == 5


async def test_an_object_of_ours_that_the_cache_has_not_seen_is_taken_on() -> None:
    api = FakeApi(EXISTS, (200, ours(7)), (200, ours(8)))
    async with connected(api) as client:
        done = await Applier(client).apply(PODS, wanted(a="b"), reason="test")
    assert done.action is Action.PATCHED


async def test_what_is_made_once_and_is_there_already_stays_as_it_is() -> None:
    api = FakeApi(EXISTS, (200, ours(7, labels={"mine": "x"})))
    async with connected(api) as client:
        done = await Applier(client).apply(PODS, wanted(a="b"), reason="test", once=True)
    assert (done.action, done.object["metadata"]["resourceVersion"]) == (Action.UNCHANGED, "7")
    assert [r.method for r in api.requests] == ["POST", "GET"]


@pytest.mark.parametrize("theirs", [ours(7, controller="other"), pod("a", 7)], ids=["another's", "nobody's"])
async def test_an_object_that_is_not_ours_is_left_alone(theirs: dict[str, Any]) -> None:
    api = FakeApi(EXISTS, (200, theirs))
    async with connected(api) as client:
        with pytest.raises(NotOurs, match=r"pods ns/a exists and is not ours"):
            await Applier(client).apply(PODS, wanted(a="b"), reason="test")
    assert [r.method for r in api.requests] == ["POST", "GET"]


async def test_an_object_that_was_made_for_our_owner_by_another_program_becomes_ours() -> None:
    theirs = ours(7)
    del theirs["metadata"]["ownerReferences"][0]["controller"]
    async with connected(FakeApi(EXISTS, (200, theirs), (200, ours(8)))) as client:
        done = await Applier(client).apply(PODS, wanted(a="b"), reason="test")
    assert done.action is Action.PATCHED


async def test_an_object_on_its_way_out_is_waited_for() -> None:
    leaving = ours(7)
    leaving["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    async with connected(FakeApi(EXISTS, (200, leaving))) as client:
        with pytest.raises(Retry, match="still being deleted"):
            await Applier(client).apply(PODS, wanted(a="b"), reason="test")


async def test_an_object_that_went_away_meanwhile_is_made_again() -> None:
    api = FakeApi(MISSING, (201, ours(9)))
    async with connected(api) as client:
        done = await Applier(client).apply(PODS, wanted(a="b"), ours(5), reason="test")
    assert done.action is Action.CREATED


async def test_a_missing_namespace_or_status_is_an_error() -> None:
    async with connected(FakeApi(MISSING)) as client:
        with pytest.raises(NotFound):
            await Applier(client).apply(PODS, wanted(), reason="test")
        with pytest.raises(NotFound):
            await Applier(client).apply(PODS, wanted(), subresource="status", reason="test")
        with pytest.raises(NotFound):
            await Applier(client).apply(PODS, wanted(a="b"), ours(), subresource="status", reason="test")


async def test_generated_names_are_always_new() -> None:
    api = FakeApi((201, ours()))
    async with connected(api) as client:
        obj = {"metadata": {"generateName": "a-", "namespace": "ns"}}
        assert (await Applier(client).apply(PODS, obj, reason="test")).action is Action.CREATED


@pytest.mark.parametrize("gone", [MISSING, CONFLICT], ids=["gone", "replaced"])
async def test_deleting_what_is_gone_is_no_error(gone: Any) -> None:
    api = FakeApi(gone)
    async with connected(api) as client:
        assert (await Applier(client).delete(PODS, ours(), reason="test")).action is Action.UNCHANGED
    assert api.bodies[0]["preconditions"] == {"uid": "uid-a"}
