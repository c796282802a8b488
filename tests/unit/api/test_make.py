"""Makers give valid, independent objects."""

from __future__ import annotations

import pytest

from kuberay_op.api import RayCluster, RayJob
from kuberay_op.api.schema import schema_problems
from kuberay_op.api.view import Json
from kuberay_op.testing import make

PARTS: list[tuple[make.Part, ...]] = [
    (),
    (make.workers(2), make.workers(0, "gpus", numOfHosts=4)),
    (make.workers(), make.autoscaling(), make.autoscaling("v2", idleTimeoutSeconds=30)),
    (make.namespace("n"), make.labels(a="b"), make.annotations({"ray.io/x": "y"}), make.stored()),
    (make.redis(), make.head_env(A="b"), make.head(enableIngress=True), make.cluster(suspend=True)),
    (make.deleted("2026-01-01T00:00:00Z", "a.b/c"),),
    (make.owned_by(make.raycronjob("o")),),
]


@pytest.mark.parametrize("maker", [make.raycluster, make.rayjob, make.rayservice, make.raycronjob])
@pytest.mark.parametrize("parts", PARTS)
def test_what_is_made_fits_the_schema(maker: object, parts: tuple[make.Part, ...]) -> None:
    assert callable(maker)
    obj: Json = maker("a", *parts)
    assert [str(problem) for problem in schema_problems(obj)] == []


def test_parts_about_the_cluster_find_it_in_every_kind() -> None:
    for obj in (make.raycluster("a"), make.rayjob("a"), make.rayservice("a"), make.raycronjob("a")):
        make.workers(3, "g")(obj)
        assert make.cluster_in(obj)["workerGroupSpecs"][0]["replicas"] == 3


def test_objects_share_nothing() -> None:
    part = make.workers(1)
    one, two = make.raycluster("a", part), make.raycluster("b", part)
    RayCluster(one).spec.worker_group_specs[0].replicas = 5
    assert RayCluster(two).spec.worker_group_specs[0].replicas == 1


def test_a_cluster_spec_alone_can_be_made() -> None:
    spec = make.cluster_spec_of(make.workers(2))
    job = RayJob(make.rayjob("j", make.spec(rayClusterSpec=spec)))
    assert job.spec.ray_cluster_spec.worker_group_specs[0].replicas == 2


def test_a_status_can_be_given() -> None:
    obj = make.raycluster("a", make.status(observedGeneration=1), make.condition("HeadPodReady", holds=False))
    assert schema_problems(obj) == []
    status = RayCluster(obj).status
    assert status.observed_generation == 1
    assert [(entry.type, entry.status) for entry in status.conditions] == [("HeadPodReady", "False")]
