"""When a Pod has to be replaced, and in which order Pods go."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.plan.podview import PodView, first_to_go, illness, views, workers
from kuberay_op.testing import make, pods

CLUSTER = make.raycluster("a", make.stored())


@pytest.mark.parametrize(
    ("phase", "policy", "status", "ill"),
    [
        ("Failed", "Always", {}, True),
        ("Succeeded", "Always", {}, True),
        ("Failed", "Never", pods.terminated(), True),
        ("Running", "Never", pods.terminated(), True),
        ("Running", "Always", pods.terminated(), False),
        ("Running", "OnFailure", pods.terminated(), False),
        ("Running", "", pods.terminated(), False),
        ("Running", "Never", {}, False),
        ("Running", "Never", pods.terminated(container="sidecar"), False),
        ("Running", "Never", pods.waiting("CrashLoopBackOff"), False),
        ("Pending", "Never", pods.terminated(), False),
        ("Unknown", "Never", pods.terminated(), False),
        ("Pending", "Always", pods.waiting("ImagePullBackOff"), False),
    ],
)
def test_a_pod_is_replaced_when_it_has_ended_for_good(
    phase: str, policy: str, status: dict[str, Any], ill: bool
) -> None:
    pod = pods.worker(CLUSTER, phase=phase, restart_policy=policy, status=status)
    assert bool(illness(pod)) == ill


def test_how_it_ended_is_told() -> None:
    evicted = pods.worker(CLUSTER, phase="Failed", status={"reason": "Evicted"})
    assert illness(evicted) == "phase Failed (Evicted), restart policy Always"
    ended = pods.worker(CLUSTER, restart_policy="Never", status=pods.terminated(exit_code=137))
    assert illness(ended) == (
        "Ray container terminated: Error, exit code 137, phase Running, restart policy Never"
    )
    both = pods.worker(CLUSTER, phase="Failed", status=pods.terminated(reason="", exit_code=1))
    assert illness(both) == (
        "phase Failed, restart policy Always, Ray container terminated: no reason given, exit code 1"
    )


def test_a_pod_without_anything_in_it_is_not_ill() -> None:
    assert PodView.of({}).ill == ""


def test_not_ready_ones_go_first_then_the_newest() -> None:
    seen = views(
        [
            pods.worker(CLUSTER, "old", age=100),
            pods.worker(CLUSTER, "new", age=1),
            pods.worker(CLUSTER, "unready", age=500, ready=False),
            pods.worker(CLUSTER, "pending", age=2, phase="Pending"),
            pods.worker(CLUSTER, "twin-b", age=1),
        ]
    )
    order = [pod.name for pod in sorted(seen, key=first_to_go, reverse=True)]
    assert order == ["pending", "unready", "twin-b", "new", "old"]


def test_the_head_is_no_worker_of_a_group_with_its_name() -> None:
    seen = views([pods.head(CLUSTER), pods.worker(CLUSTER, "w", "headgroup")])
    assert [pod.name for pod in workers(seen, "headgroup")] == ["w"]


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "²"])
def test_an_index_that_is_no_number_is_none(text: str) -> None:
    pod = pods.worker(CLUSTER, marks={"ray.io/worker-group-replica-index": text})
    assert PodView.of(pod).replica_index is None
