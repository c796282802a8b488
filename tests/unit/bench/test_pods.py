"""The made-up Pods are like real ones where it matters."""

from __future__ import annotations

import orjson

from kuberay_op_bench import pods


def test_a_pod_has_the_size_and_the_weight_of_a_real_one() -> None:
    pod = pods.stored(7)
    assert 4_000 < len(orjson.dumps(pod)) < 10_000
    assert pod["metadata"]["managedFields"][1]["subresource"] == "status"
    assert pod["metadata"]["ownerReferences"][0]["name"] == pod["metadata"]["labels"]["ray.io/cluster"]


def test_names_and_uids_are_unique_and_stable() -> None:
    made = [pods.stored(number)["metadata"] for number in range(100)]
    assert len({meta["name"] for meta in made}) == len({meta["uid"] for meta in made}) == 100
    assert made[5] == pods.stored(5)["metadata"]
    assert len({meta["ownerReferences"][0]["uid"] for meta in made}) == 100 // pods.WORKERS_PER_CLUSTER


def test_changes_are_a_legal_history() -> None:
    alive = {pods.name_of(number) for number in range(50)}
    kinds = set()
    for kind, pod in pods.changes(50, 2_000, seed=1):
        kinds.add(kind)
        name = pod["metadata"]["name"]
        assert (name in alive) == (kind != "ADDED")
        (alive.discard if kind == "DELETED" else alive.add)(name)
    assert kinds == {"ADDED", "MODIFIED", "DELETED"}
