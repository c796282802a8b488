"""What Prometheus is told about requests to Ray."""

from __future__ import annotations

from kuberay_op.metrics import Metrics
from kuberay_op.ray.breaker import State


class PublishedMetrics:
    """Counts requests by call and breakers by state; clusters come and go, so none has its own series."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._states: dict[str, State] = {}
        for state in State:
            if state is not State.CLOSED:
                self._tell(state)

    def request(self, *, call: str, outcome: str, seconds: float) -> None:
        """A request is over. ``outcome`` is ``ok`` or that of its error."""
        self._metrics.counter("kuberay_op_ray_requests_total", call, outcome).inc()
        self._metrics.histogram("kuberay_op_ray_request_duration_seconds", call).observe(seconds)

    def breaker(self, *, cluster: str, state: State | None) -> None:
        """The breaker of a cluster changed; None when the cluster is gone."""
        before = self._states.pop(cluster, None)
        if state is not None and state is not State.CLOSED:
            self._states[cluster] = state
        for changed in {before, state} - {None, State.CLOSED}:
            self._tell(changed)

    def _tell(self, state: State | None) -> None:
        if state is not None:
            count = sum(1 for each in self._states.values() if each is state)
            self._metrics.gauge("kuberay_op_ray_breakers", state.value).set(count)
