"""What Prometheus is told about RayCronJobs, when the configuration asks for it (``enable-metrics``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from kuberay_op.api.raycronjob import RayCronJob
from kuberay_op.kube.resource import Key
from kuberay_op.metrics import OBJECT_FAMILIES, ScrapeCollector
from kuberay_op.plan.actions import Manifest

ACTIVE: Final = OBJECT_FAMILIES["kuberay_op_cronjob_active_jobs"]
SCHEDULED: Final = OBJECT_FAMILIES["kuberay_op_cronjob_last_schedule_time_seconds"]
SUCCESSFUL: Final = OBJECT_FAMILIES["kuberay_op_cronjob_last_successful_time_seconds"]
MISSED: Final = OBJECT_FAMILIES["kuberay_op_cronjob_missed_runs_total"]


class CronMetrics:
    """Three families computed from the cache at each scrape, and a counter of runs that never were."""

    def __init__(self, registry: CollectorRegistry, crons: Callable[[], Sequence[Manifest]]) -> None:
        self._crons = crons
        self._missed = Counter(MISSED.name, MISSED.doc, MISSED.labels, registry=registry)
        self._known: set[Key] = set()
        registry.register(ScrapeCollector(self._scrape))

    def missed(self, owner: Manifest, count: int) -> None:
        """So many times passed without a run."""
        metadata = owner["metadata"]
        key = Key(metadata.get("namespace") or "", metadata["name"])
        self._known.add(key)
        self._missed.labels(key.name, key.namespace).inc(count)

    def forget(self, key: Key) -> None:
        """The RayCronJob is gone."""
        if key in self._known:
            self._known.discard(key)
            self._missed.remove(key.name, key.namespace)

    def _scrape(self) -> Iterable[Metric]:
        active = GaugeMetricFamily(ACTIVE.name, ACTIVE.doc, labels=ACTIVE.labels)
        scheduled = GaugeMetricFamily(SCHEDULED.name, SCHEDULED.doc, labels=SCHEDULED.labels)
        successful = GaugeMetricFamily(SUCCESSFUL.name, SUCCESSFUL.doc, labels=SUCCESSFUL.labels)
        for obj in self._crons():
            cron = RayCronJob(dict(obj))
            whose = [cron.name, cron.namespace]
            active.add_metric(whose, len(cron.status.active))
            for family, moment in (
                (scheduled, cron.status.last_schedule_time),
                (successful, cron.status.last_successful_time),
            ):
                if moment:
                    family.add_metric(whose, datetime.fromisoformat(moment).timestamp())
        return active, scheduled, successful
