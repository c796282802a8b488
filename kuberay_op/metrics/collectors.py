"""Metrics about objects: pushed when something happens, or computed at each scrape; and the last touch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

_log = logging.getLogger("metrics")


class PushedGauge:
    """A gauge set when something happens and forgotten with its object.

    Its first labels are always ``name`` and ``namespace``; ``forget`` removes all series of one object.
    """

    def __init__(
        self, registry: CollectorRegistry, name: str, documentation: str, labels: tuple[str, ...] = ()
    ) -> None:
        self._gauge = Gauge(name, documentation, ("name", "namespace", *labels), registry=registry)
        self._series: dict[tuple[str, str], set[tuple[str, ...]]] = {}

    def set(self, value: float, name: str, namespace: str, *labels: str) -> None:
        """Store the value of one series; ``labels`` in the order they were declared."""
        self._gauge.labels(name, namespace, *labels).set(value)
        self._series.setdefault((namespace, name), set()).add(labels)

    def forget(self, name: str, namespace: str) -> int:
        """Drop every series of the object and say how many there were."""
        gone = self._series.pop((namespace, name), set())
        for labels in gone:
            self._gauge.remove(name, namespace, *labels)
        return len(gone)


class ScrapeCollector(Collector):
    """Metrics computed at each scrape, for example from a cache.

    ``callback`` gives families (``prometheus_client.core.GaugeMetricFamily``). It runs in the scraping
    thread, so it works on a snapshot taken in one step. When it raises, the failure is logged, its series
    are left out, and the scrape goes on.
    """

    def __init__(self, callback: Callable[[], Iterable[Metric]]) -> None:
        self._callback = callback

    def describe(self) -> Iterable[Metric]:
        """Nothing: registering must not run the callback, there may be no cache yet."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """All families, or none of them."""
        try:
            return list(self._callback())
        except Exception:  # noqa: BLE001 - whatever a callback does, the other metrics must still be served
            _log.exception("metrics could not be computed and are missing from this scrape")
            return []


class AsGoPrintsIt(Collector):
    """The registry as the reference's own library would show it.

    The text of an ``le`` label is part of a series' identity, and Go prints ``1`` where Python prints
    ``1.0``; and Go has no ``_created`` series. Both would break or litter existing dashboards.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        """Every family, its samples as Go would print them."""
        for metric in self._registry.collect():
            if metric.type in ("counter", "histogram"):
                created = f"{metric.name}_created"
                metric.samples = [sample for sample in metric.samples if sample.name != created]
                for sample in metric.samples:
                    bound = sample.labels.get("le")
                    if bound is not None:
                        sample.labels["le"] = bound.removesuffix(".0")
            yield metric
