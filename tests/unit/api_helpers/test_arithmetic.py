"""Replica counts and resource sums of a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.api import replicas
from kuberay_op.api.raycluster import RayClusterSpec, WorkerGroupSpec
from kuberay_op.api.resources import desired_resources, min_resources, pod_resources, totals

Json = dict[str, Any]
MAX = 2**31 - 1


@pytest.mark.parametrize(
    ("group", "desired"),
    [
        ({}, 0),
        ({"replicas": 3}, 3),
        ({"replicas": 3, "minReplicas": 5}, 5),
        ({"minReplicas": 5}, 5),
        ({"replicas": 9, "maxReplicas": 5}, 5),
        ({"replicas": 3, "numOfHosts": 4}, 12),
        ({"replicas": 3, "suspend": True, "minReplicas": 5}, 0),
        ({"replicas": 3, "numOfHosts": 0}, 3),
        ({"replicas": -3}, 0),
        ({"replicas": MAX, "numOfHosts": MAX}, MAX),
        ({"replicas": 1, "minReplicas": -4, "maxReplicas": -2}, 0),
    ],
)
def test_group_desired_pods(group: Json, desired: int) -> None:
    assert replicas.group_desired_pods(WorkerGroupSpec(group)) == desired


def test_cluster_counts_are_of_pods_and_never_overflow() -> None:
    groups = [
        {"replicas": 2, "minReplicas": 1, "maxReplicas": 4, "numOfHosts": 3},
        {"replicas": 1, "minReplicas": 2, "numOfHosts": 2},
        {"replicas": 5, "minReplicas": 5, "maxReplicas": 5, "suspend": True},
    ]
    spec = RayClusterSpec({"workerGroupSpecs": groups})
    assert replicas.desired_pods(spec) == 6 + 4
    assert replicas.min_pods(spec) == 3 + 4
    assert replicas.max_pods(spec) == MAX
    assert replicas.max_pods(RayClusterSpec({"workerGroupSpecs": groups[:1]})) == 12


def template(*resources: Json) -> Json:
    return {"spec": {"containers": [{"resources": amounts} for amounts in resources], "initContainers": [{}]}}


def test_requests_win_and_limits_fill_in() -> None:
    found = pod_resources(
        template(
            {"limits": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": 1}, "requests": {"cpu": "500m"}},
            {"requests": {"cpu": "250m"}},
            {},
        )
    )
    assert {name: str(amount) for name, amount in found.items()} == {
        "cpu": "750m",
        "memory": "1Gi",
        "nvidia.com/gpu": "1",
    }


def test_totals_of_a_cluster() -> None:
    head = {"template": template({"limits": {"cpu": "1", "memory": "2Gi"}})}
    gpu = template(
        {"limits": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2", "nvidia.com/mig-1g.5gb": "1"}}
    )
    tpu = template({"limits": {"google.com/tpu": "4", "amd.com/gpu": "1"}})
    spec = RayClusterSpec(
        {
            "headGroupSpec": head,
            "workerGroupSpecs": [
                {"template": gpu, "replicas": 3, "maxReplicas": 1},  # not brought into range here
                {"template": tpu, "replicas": 2, "minReplicas": 1, "numOfHosts": 2},
                {"template": gpu, "replicas": 5, "suspend": True},
                {"template": gpu},
            ],
        }
    )
    desired = totals(desired_resources(spec))
    assert (desired.cpu, desired.memory, desired.gpu, desired.tpu) == ("13", "26Gi", "13", "16")
    least = totals(min_resources(spec))
    assert (least.cpu, least.memory, least.gpu, least.tpu) == ("1", "2Gi", "2", "8")


def test_nothing_is_zero_and_nonsense_is_nothing() -> None:
    empty = totals(desired_resources(RayClusterSpec({})))
    assert (empty.cpu, empty.memory, empty.gpu, empty.tpu) == ("0", "0", "0", "0")
    odd = template({"limits": {"cpu": "many", "memory": True, "x": None}}, {"limits": 1, "requests": []})
    assert pod_resources(odd) == {}
    assert pod_resources({"spec": {"containers": [None, {"resources": 1}]}}) == {}
    assert totals(pod_resources(template({"limits": {"nvidia.com/mig-1g.5gb.extra": 1}}))).gpu == "0"
