"""What Prometheus is told about RayClusters, when the configuration asks for it (``enable-metrics``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from kuberay_op.api import labels
from kuberay_op.api.conditions import RAYCLUSTER_PROVISIONED, STATE_SUSPENDED, TRUE
from kuberay_op.kube.resource import Key
from kuberay_op.metrics import OBJECT_FAMILIES, PushedGauge, ScrapeCollector
from kuberay_op.plan.actions import Manifest

INFO: Final = OBJECT_FAMILIES["kuberay_cluster_info"]
PROVISIONED: Final = OBJECT_FAMILIES["kuberay_cluster_condition_provisioned"]
DURATION: Final = OBJECT_FAMILIES["kuberay_cluster_provisioned_duration_seconds"]


class ClusterMetrics:
    """Two families computed from the cache at each scrape, and one that is set when it happens."""

    def __init__(self, registry: CollectorRegistry, clusters: Callable[[], Sequence[Manifest]]) -> None:
        self._clusters = clusters
        self._duration = PushedGauge(registry, DURATION.name, DURATION.doc, DURATION.labels[2:])
        registry.register(ScrapeCollector(self._scrape))

    def written(self, owner: Manifest, status: Mapping[str, Any], now: datetime) -> None:
        """A status was written: note how long it took if the cluster is up for the first time.

        One that comes back from suspension has been up before; its age would say nothing.
        """
        before = owner.get("status") or {}
        if STATE_SUSPENDED in (before.get("stateTransitionTimes") or {}):
            return
        if provisioned(status) and not provisioned(before):
            metadata = owner["metadata"]
            seconds = (now - datetime.fromisoformat(metadata["creationTimestamp"])).total_seconds()
            self._duration.set(seconds, metadata["name"], metadata.get("namespace") or "", metadata["uid"])

    def forget(self, key: Key) -> None:
        """The cluster is gone."""
        self._duration.forget(key.name, key.namespace)

    def _scrape(self) -> Iterable[Metric]:
        info = GaugeMetricFamily(INFO.name, INFO.doc, labels=INFO.labels)
        condition = GaugeMetricFamily(PROVISIONED.name, PROVISIONED.doc, labels=PROVISIONED.labels)
        for cluster in self._clusters():
            metadata = cluster["metadata"]
            whose = [metadata["name"], metadata.get("namespace") or "", metadata["uid"]]
            made_for = (metadata.get("labels") or {}).get(labels.ORIGINATED_FROM_KIND) or "None"
            info.add_metric([*whose, made_for], 1)
            truth = str(provisioned(cluster.get("status") or {})).lower()
            condition.add_metric([*whose, truth], 1)
        return info, condition


def provisioned(status: Mapping[str, Any]) -> bool:
    """Whether a status says that all Pods have been ready."""
    return any(
        condition.get("type") == RAYCLUSTER_PROVISIONED and condition.get("status") == TRUE
        for condition in status.get("conditions") or ()
    )
