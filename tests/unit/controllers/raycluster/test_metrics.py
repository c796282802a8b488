"""Metrics about RayClusters: computed from the cache, or noted when it happens, once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kuberay_op.controllers.raycluster.metrics import ClusterMetrics
from kuberay_op.kube.resource import Key
from kuberay_op.metrics import OBJECT_FAMILIES, Metrics
from kuberay_op.testing import make

NOW = datetime(2026, 1, 1, 0, 1, 30, tzinfo=UTC)  # make.stored: created at midnight
UP = {"conditions": [{"type": "RayClusterProvisioned", "status": "True"}]}
DURATION = "kuberay_cluster_provisioned_duration_seconds"


def lines(metrics: Metrics) -> list[str]:
    text = metrics.render()[0].decode()
    return sorted(line for line in text.splitlines() if line.startswith("kuberay_cluster_"))


def of(*clusters: dict[str, Any]) -> tuple[Metrics, ClusterMetrics]:
    metrics = Metrics(process=False)
    return metrics, ClusterMetrics(metrics.registry, lambda: clusters)


def test_every_cluster_is_counted_at_each_scrape() -> None:
    one = make.raycluster("a", make.stored(uid="u1"))
    two = make.raycluster(
        "b",
        make.stored(uid="u2"),
        make.labels({"ray.io/originated-from-crd": "RayJob"}),
        make.condition("RayClusterProvisioned"),
    )
    metrics, _ = of(one, two)
    assert lines(metrics) == [
        'kuberay_cluster_condition_provisioned{condition="false",name="a",namespace="default",uid="u1"} 1.0',
        'kuberay_cluster_condition_provisioned{condition="true",name="b",namespace="default",uid="u2"} 1.0',
        'kuberay_cluster_info{name="a",namespace="default",owner_kind="None",uid="u1"} 1.0',
        'kuberay_cluster_info{name="b",namespace="default",owner_kind="RayJob",uid="u2"} 1.0',
    ]


def test_how_long_it_took_is_noted_once_and_forgotten_with_the_cluster() -> None:
    metrics, clusters = of()
    new = make.raycluster("a", make.stored(uid="u1"))
    clusters.written(new, {"conditions": []}, NOW)
    assert lines(metrics) == []
    clusters.written(new, UP, NOW)
    series = f'{DURATION}{{name="a",namespace="default",uid="u1"}} 90.0'
    assert lines(metrics) == [series]
    known = make.raycluster("a", make.stored(uid="u1"), make.condition("RayClusterProvisioned"))
    clusters.written(known, UP, datetime(2026, 2, 1, tzinfo=UTC))
    assert lines(metrics) == [series], "it has been up before"
    clusters.forget(Key("default", "a"))
    assert lines(metrics) == []


def test_coming_back_from_suspension_is_not_the_first_time() -> None:
    metrics, clusters = of()
    times = {"suspended": "2026-01-01T00:00:10Z"}
    resumed = make.raycluster("a", make.stored(), make.status(stateTransitionTimes=times))
    clusters.written(resumed, UP, NOW)
    assert lines(metrics) == []


def test_the_table_says_what_is_published() -> None:
    metrics, clusters = of(make.raycluster("a", make.stored()))
    clusters.written(make.raycluster("a", make.stored()), UP, NOW)
    published = {line.partition("{")[0] for line in lines(metrics)}
    assert published == {name for name in OBJECT_FAMILIES if name.startswith("kuberay_cluster_")}
    for line in lines(metrics):
        name, _, rest = line.partition("{")
        found = {pair.partition("=")[0] for pair in rest.partition("}")[0].split(",")}
        assert found == set(OBJECT_FAMILIES[name].labels)
