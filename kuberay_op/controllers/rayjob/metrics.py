"""What Prometheus is told about RayJobs, when the configuration asks for it (``enable-metrics``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from kuberay_op.api import conditions
from kuberay_op.controllers.rayjob.situation import moment
from kuberay_op.kube.resource import Key
from kuberay_op.metrics import OBJECT_FAMILIES, PushedGauge, ScrapeCollector
from kuberay_op.plan.actions import Manifest

INFO: Final = OBJECT_FAMILIES["kuberay_job_info"]
STATUS: Final = OBJECT_FAMILIES["kuberay_job_deployment_status"]
DURATION: Final = OBJECT_FAMILIES["kuberay_job_execution_duration_seconds"]

#: States in which an attempt is over.
ENDS: Final = frozenset({*conditions.TERMINAL_DEPLOYMENT_STATUSES, conditions.DEPLOYMENT_RETRYING})


class JobMetrics:
    """Two families computed from the cache at each scrape, and one that is set when an attempt ends."""

    def __init__(self, registry: CollectorRegistry, jobs: Callable[[], Sequence[Manifest]]) -> None:
        self._jobs = jobs
        self._duration = PushedGauge(registry, DURATION.name, DURATION.doc, DURATION.labels[2:])
        registry.register(ScrapeCollector(self._scrape))

    def written(self, owner: Manifest, status: Mapping[str, Any], now: datetime) -> None:
        """A status was written: note how long the attempt took if it is over."""
        before = owner.get("status") or {}
        state = status.get("jobDeploymentStatus") or ""
        start = moment(before.get("startTime") or "")
        if state not in ENDS or before.get("jobDeploymentStatus") in ENDS or start is None:
            return
        metadata = owner["metadata"]
        self._duration.set(
            (now - start).total_seconds(),
            metadata["name"],
            metadata.get("namespace") or "",
            metadata["uid"],
            state,
            str(before.get("failed") or 0),
        )

    def forget(self, key: Key) -> None:
        """The job is gone."""
        self._duration.forget(key.name, key.namespace)

    def _scrape(self) -> Iterable[Metric]:
        info = GaugeMetricFamily(INFO.name, INFO.doc, labels=INFO.labels)
        states = GaugeMetricFamily(STATUS.name, STATUS.doc, labels=STATUS.labels)
        for job in self._jobs():
            metadata = job["metadata"]
            whose = [metadata["name"], metadata.get("namespace") or "", metadata["uid"]]
            info.add_metric(whose, 1)
            states.add_metric([*whose, (job.get("status") or {}).get("jobDeploymentStatus") or ""], 1)
        return info, states
