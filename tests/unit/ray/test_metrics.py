"""What Prometheus is told about requests to Ray."""

from __future__ import annotations

from kuberay_op.metrics import Metrics
from kuberay_op.ray.breaker import State
from kuberay_op.ray.metrics import PublishedMetrics


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_requests_are_counted_by_call_and_outcome() -> None:
    metrics = Metrics(process=False)
    published = PublishedMetrics(metrics)
    published.request(call="get job", outcome="ok", seconds=0.2)
    published.request(call="get job", outcome="timed_out", seconds=2)
    assert value(metrics, "kuberay_op_ray_requests_total", call="get job", outcome="ok") == 1
    assert value(metrics, "kuberay_op_ray_requests_total", call="get job", outcome="timed_out") == 1
    assert value(metrics, "kuberay_op_ray_request_duration_seconds_sum", call="get job") == 2.2


def test_breakers_are_counted_by_state_until_their_cluster_is_gone() -> None:
    metrics = Metrics(process=False)
    published = PublishedMetrics(metrics)

    def seen() -> tuple[float | None, float | None]:
        name = "kuberay_op_ray_breakers"
        return value(metrics, name, state="open"), value(metrics, name, state="half_open")

    assert seen() == (0, 0)
    published.breaker(cluster="a/x", state=State.OPEN)
    published.breaker(cluster="a/y", state=State.OPEN)
    assert seen() == (2, 0)
    published.breaker(cluster="a/x", state=State.HALF_OPEN)
    assert seen() == (1, 1)
    published.breaker(cluster="a/x", state=State.CLOSED)
    published.breaker(cluster="a/y", state=None)
    assert seen() == (0, 0)
