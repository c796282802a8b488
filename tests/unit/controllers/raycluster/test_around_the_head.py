"""What is made beside Pods, when, and what is left alone."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.build.gcs_ft import storage_claim
from kuberay_op.build.service import head_service
from kuberay_op.config import Config
from kuberay_op.controllers.raycluster.claim import claim_notes
from kuberay_op.controllers.raycluster.desired import RayClusterKind, random_token
from kuberay_op.features import Gates
from kuberay_op.hooks.scope import Scope
from kuberay_op.plan.actions import Create, Desired, Manifest, Update
from kuberay_op.plan.diff import diff
from kuberay_op.testing import make
from kuberay_op.testing.operator import make_hooks

Json = dict[str, Any]


def cluster(*parts: make.Part) -> Json:
    return make.raycluster("c", make.namespace("ns"), make.stored(), *parts)


def wanted(owner: Json, children: Sequence[Manifest] = (), **options: Any) -> list[Desired]:
    """What there should be besides Pods."""
    by_kind: dict[str, tuple[Manifest, ...]] = {}
    for child in children:
        by_kind[child["kind"]] = (*by_kind.get(child["kind"], ()), child)
    kind = RayClusterKind(Config(), rng=Random(1), **options)  # noqa: S311 (names of replicas)
    scope = Scope(owner, datetime(2026, 1, 1, tzinfo=UTC), Gates.default().enabled, by_kind)
    return list(kind.wanted(scope, make_hooks({})).objects)


def kinds(found: Sequence[Desired]) -> list[str]:
    return [f"{item.obj['kind']} {item.obj['metadata']['name']}" for item in found]


def test_a_plain_cluster_gets_a_head_service() -> None:
    assert kinds(wanted(cluster())) == ["Service c-head-svc"]


def test_everything_in_the_order_it_is_made() -> None:
    owner = cluster(
        make.head(enableIngress=True),
        make.cluster(authOptions={"mode": "token"}),
        make.workers(1, numOfHosts=2),
        make.annotations({"ray.io/enable-serve-service": "true"}),
        rocksdb(),
    )
    assert kinds(wanted(owner)) == [
        "Ingress c-head-ingress",
        "Secret c",
        "Service c-head-svc",
        "Service c-headless",
        "Service c-serve-svc",
        "PersistentVolumeClaim c-gcs-pvc",
    ]
    assert [item.once for item in wanted(owner)] == [False, True, True, True, True, True]


def test_a_head_service_of_another_name_is_enough() -> None:
    """The user has named another one since it was made (contract 02 §8.2)."""
    there = head_service(RayCluster(cluster()), Config())
    renamed = cluster(make.head(headService={"metadata": {"name": "mine"}}))
    assert kinds(wanted(renamed, [there])) == []


def test_a_route_on_openshift_once() -> None:
    owner = cluster(make.head(enableIngress=True))
    assert kinds(wanted(owner, routes=True))[0] == "Route c-head-route"
    other = {"kind": "Route", "metadata": {"name": "another"}}
    assert kinds(wanted(owner, [other], routes=True)) == ["Service c-head-svc"]


def test_the_token_is_in_no_plan_and_comes_with_the_making() -> None:
    owner = cluster(make.cluster(authOptions={"mode": "token"}))
    found = wanted(owner, new_token=lambda: "t0ken")
    [made] = [action for action in diff(found, []) if action.obj["kind"] == "Secret"]
    assert isinstance(made, Create)
    assert "t0ken" not in str(made.obj)
    assert made.seal is not None
    assert made.seal(made.obj)["stringData"] == {"auth_token": "t0ken"}
    there = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}}
    assert [action.obj["kind"] for action in diff(found, [there])] == ["Service"], "what is there stays"


def test_tokens_are_long_and_never_the_same() -> None:
    tokens = {random_token() for _ in range(100)}
    assert len(tokens) == 100
    assert {len(base64.b64decode(token, validate=True)) for token in tokens} == {32}


# --- the volume claim (contract 02 §4)


def rocksdb(**storage: Any) -> make.Part:
    return make.cluster(gcsFaultToleranceOptions={"backend": "rocksdb", "storage": storage})


def claim(owner: Json, **metadata: Any) -> Json:
    """The claim as it was made for a cluster, with other metadata."""
    made = storage_claim(RayCluster(owner))
    assert made is not None
    return {**made, "metadata": {**made["metadata"], **metadata}}


def claim_actions(owner: Json, there: Json) -> list[Any]:
    found = [item for item in wanted(owner, [there]) if item.obj["kind"] == there["kind"]]
    return diff(found, [there])


def test_a_claim_that_is_there_is_left_alone() -> None:
    owner = cluster(rocksdb())
    assert claim_actions(owner, claim(owner)) == []
    assert claim_actions(cluster(rocksdb(size="9Gi")), claim(owner)) == []


def test_a_claim_left_over_is_adopted() -> None:
    owner = cluster(rocksdb())
    left = claim(owner)
    del left["metadata"]["ownerReferences"]
    [update] = claim_actions(owner, left)
    assert isinstance(update, Update)
    assert update.patch == {"metadata": {"ownerReferences": claim(owner)["metadata"]["ownerReferences"]}}
    retained = cluster(rocksdb(deletionPolicy="Retain"))
    assert claim_actions(retained, left) == []


def test_a_claim_that_shall_stay_is_let_go() -> None:
    there = claim(cluster(rocksdb()))
    [update] = claim_actions(cluster(rocksdb(deletionPolicy="Retain")), there)
    assert isinstance(update, Update)
    assert update.patch == {"metadata": {"ownerReferences": None}}


def test_a_claim_of_another_is_not_touched() -> None:
    owner = cluster(rocksdb())
    other = {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "o", "controller": True}
    assert claim_actions(owner, claim(owner, ownerReferences=[other])) == []


@pytest.mark.parametrize(
    ("storage", "said"),
    [
        ({}, []),
        ({"size": "1024Mi"}, []),  # the same amount
        ({"size": "2Gi"}, ["its size is 1Gi, not 2Gi"]),
        ({"storageClassName": "fast"}, ["its class is None, not 'fast'"]),
        ({"accessModes": ["ReadWriteMany"]}, ["its access modes are ReadWriteOnce, not ReadWriteMany"]),
    ],
)
def test_a_claim_that_is_not_what_the_spec_asks_for(storage: Json, said: list[str]) -> None:
    found = list(claim_notes(RayCluster(cluster(rocksdb(**storage))), [claim(cluster(rocksdb()))]))
    prefix = "PVC ns/c-gcs-pvc stays as it is: "
    assert [note.text for note in found] == [prefix + text for text in said]
    assert {(note.reason, note.action) for note in found} <= {("FailedToCreatePVC", "Update")}


def test_a_claim_of_the_user_that_is_missing() -> None:
    owner = RayCluster(cluster(rocksdb(claimName="mine")))
    [note] = claim_notes(owner, [])
    assert (note.type, note.reason, note.action) == ("Warning", "FailedToCreatePVC", "Validate")
    assert note.text == "PVC ns/mine does not exist; the head cannot start without it"
    assert list(claim_notes(owner, [{"metadata": {"name": "mine"}}])) == []
