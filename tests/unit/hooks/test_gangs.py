"""Who belongs to a gang: by the owner's spec and, for jobs, by how far they are."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.rayjob import RayJob
from kuberay_op.hooks.gangs import cluster_gang, job_gang

POD = {"spec": {"containers": [{"name": "ray", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}}


def spec(*groups: dict[str, Any], **more: Any) -> dict[str, Any]:
    workers = [{"groupName": f"g{index}", "template": POD, **group} for index, group in enumerate(groups)]
    return {"headGroupSpec": {"template": POD}, "workerGroupSpecs": workers, **more}


def cluster(*groups: dict[str, Any], **more: Any) -> RayCluster:
    return RayCluster({"metadata": {"name": "a"}, "spec": spec(*groups, **more)})


def job(status: str = "", **more: Any) -> RayJob:
    described = {"rayClusterSpec": spec({"replicas": 2}), "submissionMode": "K8sJobMode", **more}
    return RayJob({"metadata": {"name": "j"}, "spec": described, "status": {"jobDeploymentStatus": status}})


@pytest.mark.parametrize(
    ("groups", "more", "counts"),
    [
        ([{"replicas": 2}], {}, [1, 2]),
        ([{"replicas": 2, "numOfHosts": 2}], {}, [1, 4]),
        ([{"replicas": 0, "minReplicas": 2}], {}, [1, 2]),
        ([{"replicas": 9, "maxReplicas": 4}], {}, [1, 4]),
        ([{"replicas": 2, "minReplicas": 1}], {"enableInTreeAutoscaling": True}, [1, 1]),
        ([{"replicas": 2}], {"enableInTreeAutoscaling": True}, [1, 0]),
        ([{"replicas": 0}, {"replicas": 1}], {}, [1, 0, 1]),
        ([{"replicas": 2, "suspend": True}, {"replicas": 1}], {}, [1, 1]),
        ([{"replicas": 2}], {"suspend": True}, []),
        ([], {}, [1]),
    ],
)
def test_members_of_a_cluster(groups: Any, more: Any, counts: list[int]) -> None:
    found = cluster_gang(cluster(*groups, **more))
    assert [member.count for member in found.members] == counts
    assert found.count == sum(counts)


def test_requests_are_of_one_pod_and_totals_of_all() -> None:
    found = cluster_gang(cluster({"replicas": 3}))
    assert found.members[1].requests == {"cpu": "1", "memory": "1Gi"}
    assert found.members[1].total == {"cpu": "3", "memory": "3Gi"}
    assert found.requests == {"cpu": "4", "memory": "4Gi"}


def test_a_group_without_pods_still_names_its_resources() -> None:
    gpu = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]}}
    found = cluster_gang(cluster({"replicas": 0, "template": gpu}))
    assert found.requests["nvidia.com/gpu"] == "0"


@pytest.mark.parametrize(
    ("mode", "count", "cpu", "memory"),
    [
        ("K8sJobMode", 3, "3500m", "3272Mi"),
        ("SidecarMode", 3, "3500m", "3272Mi"),
        ("HTTPMode", 3, "3", "3Gi"),
        ("InteractiveMode", 3, "3", "3Gi"),
    ],
)
def test_a_job_counts_its_submitter_s_resources_but_not_its_pod(
    mode: str, count: int, cpu: str, memory: str
) -> None:
    found = job_gang(job(submissionMode=mode), None)
    assert (found.name, found.count, found.requests) == ("j", count, {"cpu": cpu, "memory": memory})


def test_a_submitter_of_the_user_s_own() -> None:
    found = job_gang(job(submitterPodTemplate=POD), None)
    assert found.members[-1].group.name == "submittergroup"
    assert found.requests == {"cpu": "4", "memory": "4Gi"}


@pytest.mark.parametrize(
    ("status", "live", "count", "cpu"),
    [
        ("Initializing", None, 3, "3500m"),
        ("Running", cluster({"replicas": 5}), 6, "6500m"),
        ("Complete", cluster({"replicas": 5, "suspend": True}), 1, "1"),
        ("Complete", None, 0, None),
        ("Failed", None, 0, None),
        ("Retrying", None, 0, None),
        ("Suspended", None, 0, None),
    ],
)
def test_a_job_follows_its_cluster(status: str, live: RayCluster | None, count: int, cpu: str | None) -> None:
    found = job_gang(job(status), live)
    assert (found.count, found.requests.get("cpu")) == (count, cpu)


def test_a_cluster_on_its_way_out_needs_nothing() -> None:
    going = cluster({"replicas": 2})
    going.raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert job_gang(job("Running"), going).count == 0


def test_a_suspended_job_needs_nothing() -> None:
    assert job_gang(job(suspend=True), None).count == 0


def test_a_job_on_somebody_else_s_cluster_has_no_gang() -> None:
    assert job_gang(job(clusterSelector={"ray.io/cluster": "x"}), None).members == ()
