"""What the process tells Prometheus: one ``Metrics`` object, made at start-up and passed down.

Names, labels and buckets are those the reference and controller-runtime publish, so that dashboards and
alerts go on working. Every family is declared once, in ``FAMILIES``; the reference page is made from that
table. Nothing here is global: each ``Metrics`` owns its registry, so tests can have as many as they like.

Writers look their label children up once and keep them, since a look-up costs more than the observation.
Everything may be called from any thread; ``Metrics.render`` is meant to be called from a worker thread,
because a large cluster takes longer to print than the event loop may be kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.gc_collector import GCCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

#: How a pass over one object ended, as controller-runtime names it.
Outcome = Literal["success", "error", "requeue", "requeue_after"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("success", "error", "requeue", "requeue_after")

_log = logging.getLogger("metrics")


def _exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Bounds by repeated multiplication, rounding errors included: the ``le`` labels must come out alike."""
    bounds = [start]
    for _ in range(count - 1):
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


LATENCY: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
DNS_LATENCY: Final = LATENCY[:-1]
SIZE: Final = tuple(float(n) for n in (64, 256, 512, *(1024 * 4**power for power in range(8))))
QUEUE: Final = _exponential(10e-9, 10, 12)
PLUGIN: Final = (0.00001, 0.0001, 0.001, 0.01, 0.1, 0.5, 1.0)
RECONCILE: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0),
    *(15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)


@dataclass(frozen=True, slots=True)
class Family:
    """One metric family: what it is called, what it counts and how it is split."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    doc: str
    buckets: tuple[float, ...] = ()


FAMILIES: Final = {
    family.name: family
    for family in (
        # Requests to the API server
        Family(
            "rest_client_requests_total",
            "counter",
            ("code", "method", "host"),
            "Requests to the API server, by answer, HTTP method and host.",
        ),
        Family(
            "rest_client_request_duration_seconds",
            "histogram",
            ("verb", "host"),
            "Seconds from sending a request to its answer, by verb and host.",
            LATENCY,
        ),
        Family(
            "rest_client_rate_limiter_duration_seconds",
            "histogram",
            ("verb", "host"),
            "Seconds a request waited for our own rate limit, by verb and host.",
            LATENCY,
        ),
        Family(
            "rest_client_dns_resolution_duration_seconds",
            "histogram",
            ("host",),
            "Seconds to look up the API server's name, by host.",
            DNS_LATENCY,
        ),
        Family(
            "rest_client_request_size_bytes",
            "histogram",
            ("verb", "host"),
            "Bytes in the body of a request, by verb and host.",
            SIZE,
        ),
        Family(
            "rest_client_response_size_bytes",
            "histogram",
            ("verb", "host"),
            "Bytes in the body of an answer, by verb and host.",
            SIZE,
        ),
        Family(
            "rest_client_request_retries_total",
            "counter",
            ("code", "verb", "host"),
            "Requests sent once more, by the answer that made us, verb and host.",
        ),
        # Passes over objects
        Family(
            "controller_runtime_reconcile_total",
            "counter",
            ("controller", "result"),
            "Passes over an object, by controller and how they ended.",
        ),
        Family(
            "controller_runtime_reconcile_errors_total",
            "counter",
            ("controller",),
            "Passes that ended in an error, by controller.",
        ),
        Family(
            "controller_runtime_terminal_reconcile_errors_total",
            "counter",
            ("controller",),
            "Passes that ended in an error no retry can mend, by controller.",
        ),
        Family(
            "controller_runtime_reconcile_panics_total",
            "counter",
            ("controller",),
            "Passes that ended in an exception nobody expected, by controller.",
        ),
        Family(
            "controller_runtime_reconcile_time_seconds",
            "histogram",
            ("controller",),
            "Seconds one pass took, by controller.",
            RECONCILE,
        ),
        Family(
            "controller_runtime_max_concurrent_reconciles",
            "gauge",
            ("controller",),
            "Passes that may run at once, by controller.",
        ),
        Family(
            "controller_runtime_active_workers",
            "gauge",
            ("controller",),
            "Passes that are running now, by controller.",
        ),
        # The queues in front of them
        Family(
            "workqueue_depth",
            "gauge",
            ("name", "controller", "priority"),
            "Keys that wait, by queue and priority.",
        ),
        Family("workqueue_adds_total", "counter", ("name", "controller"), "Keys put into the queue."),
        Family(
            "workqueue_retries_total",
            "counter",
            ("name", "controller"),
            "Keys put into the queue again after a failure.",
        ),
        Family(
            "workqueue_queue_duration_seconds",
            "histogram",
            ("name", "controller"),
            "Seconds a key waited before a worker took it.",
            QUEUE,
        ),
        Family(
            "workqueue_work_duration_seconds",
            "histogram",
            ("name", "controller"),
            "Seconds a worker spent on a key.",
            QUEUE,
        ),
        Family(
            "workqueue_unfinished_work_seconds",
            "gauge",
            ("name", "controller"),
            "Seconds of work on keys that are not finished; grows steadily when a worker is stuck.",
        ),
        Family(
            "workqueue_longest_running_processor_seconds",
            "gauge",
            ("name", "controller"),
            "Seconds the longest running worker has spent on its key.",
        ),
        # Leadership
        Family(
            "leader_election_master_status",
            "gauge",
            ("name",),
            "1 while this process holds the lease of that name, else 0.",
        ),
        # Plugins
        Family(
            "kuberay_op_plugin_calls_total",
            "counter",
            ("plugin", "hook", "outcome"),
            "Calls of plugins' hooks that ended `ok`, in an `error`, or too `late`.",
        ),
        Family(
            "kuberay_op_plugin_call_duration_seconds",
            "histogram",
            ("plugin", "hook"),
            "Seconds that plugins' hooks took.",
            PLUGIN,
        ),
    )
}


class Metrics:
    """All metrics of one process.

    ``registry`` is open to others: controllers register their collectors there, plugins their metrics.
    """

    def __init__(self, *, process: bool = True) -> None:
        self.registry = CollectorRegistry()
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._histograms: dict[str, Histogram] = {}
        for family in FAMILIES.values():
            self._declare(family)
        if process:
            ProcessCollector(registry=self.registry)
            PlatformCollector(registry=self.registry)
            GCCollector(registry=self.registry)
        self._requests: dict[tuple[str, str], tuple[Histogram, Histogram, Histogram]] = {}
        self._answers: dict[tuple[str, str, str], Counter] = {}
        self._waits: dict[tuple[str, str], Histogram] = {}

    def _declare(self, family: Family) -> None:
        match family.kind:
            case "counter":
                self._counters[family.name] = Counter(
                    family.name, family.doc, family.labels, registry=self.registry
                )
            case "gauge":
                self._gauges[family.name] = Gauge(
                    family.name, family.doc, family.labels, registry=self.registry
                )
            case "histogram":
                self._histograms[family.name] = Histogram(
                    family.name, family.doc, family.labels, registry=self.registry, buckets=family.buckets
                )

    def counter(self, name: str, *labels: str) -> Counter:
        """The child of a declared counter with these label values."""
        return self._counters[name].labels(*labels)

    def gauge(self, name: str, *labels: str) -> Gauge:
        """The child of a declared gauge with these label values."""
        return self._gauges[name].labels(*labels)

    def histogram(self, name: str, *labels: str) -> Histogram:
        """The child of a declared histogram with these label values."""
        return self._histograms[name].labels(*labels)

    def queue(self, controller: str) -> QueueMetrics:
        """What the queue of ``controller`` reports; keep it, making it is not cheap."""
        return QueueMetrics(self, controller)

    def controller(self, name: str) -> ControllerMetrics:
        """What the controller ``name`` reports; keep it, making it is not cheap."""
        return ControllerMetrics(self, name)

    def request(self, verb: str, host: str, code: str, seconds: float, *, sent: int, received: int) -> None:
        """Count one answered request.

        ``verb`` is the HTTP method (``GET``), ``code`` the status (``200``) or ``<error>`` when there was no
        answer; ``sent`` and ``received`` are the bytes of the bodies.
        """
        children = self._requests.get((verb, host))
        if children is None:
            children = self._requests[verb, host] = (
                self.histogram("rest_client_request_duration_seconds", verb, host),
                self.histogram("rest_client_request_size_bytes", verb, host),
                self.histogram("rest_client_response_size_bytes", verb, host),
            )
        counter = self._answers.get((code, verb, host))
        if counter is None:
            counter = self._answers[code, verb, host] = self.counter(
                "rest_client_requests_total", code, verb, host
            )
        duration, request_size, response_size = children
        duration.observe(seconds)
        request_size.observe(sent)
        response_size.observe(received)
        counter.inc()

    def rate_limited(self, verb: str, host: str, seconds: float) -> None:
        """Note how long a request waited for the client-side rate limit (0 counts too)."""
        waited = self._waits.get((verb, host))
        if waited is None:
            waited = self._waits[verb, host] = self.histogram(
                "rest_client_rate_limiter_duration_seconds", verb, host
            )
        waited.observe(seconds)

    def retried(self, code: str, verb: str, host: str) -> None:
        """Count a request that is sent once more because of ``code``."""
        self.counter("rest_client_request_retries_total", code, verb, host).inc()

    def resolved(self, host: str, seconds: float) -> None:
        """Note how long a name took to look up."""
        self.histogram("rest_client_dns_resolution_duration_seconds", host).observe(seconds)

    def leader(self, name: str, *, leading: bool) -> None:
        """Say whether this process holds the lease ``name``."""
        self.gauge("leader_election_master_status", name).set(1 if leading else 0)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Everything as text, and its content type, in the format the ``Accept`` header asks for.

        Takes time in proportion to the number of series: call it through ``asyncio.to_thread``.
        """
        encode, content_type = choose_encoder(accept)
        return encode(_AsGoPrintsIt(self.registry)), content_type


class ControllerMetrics:
    """``controller_runtime_*`` of one controller, all series present from the start."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._results = {
            outcome: metrics.counter("controller_runtime_reconcile_total", name, outcome)
            for outcome in OUTCOMES
        }
        self._seconds = metrics.histogram("controller_runtime_reconcile_time_seconds", name)
        self._errors = metrics.counter("controller_runtime_reconcile_errors_total", name)
        self._terminal = metrics.counter("controller_runtime_terminal_reconcile_errors_total", name)
        self._panics = metrics.counter("controller_runtime_reconcile_panics_total", name)
        self._active = metrics.gauge("controller_runtime_active_workers", name)
        self._limit = metrics.gauge("controller_runtime_max_concurrent_reconciles", name)

    def reconciled(self, result: Outcome, seconds: float) -> None:
        """Count one pass and how long it took."""
        self._results[result].inc()
        self._seconds.observe(seconds)

    def error(self, *, terminal: bool = False) -> None:
        """Count a pass that failed; ``terminal`` when trying again cannot help."""
        self._errors.inc()
        if terminal:
            self._terminal.inc()

    def panic(self) -> None:
        """Count a pass that ended in an exception nobody expected."""
        self._panics.inc()

    def workers(self, active: int, limit: int) -> None:
        """Say how many passes run now and how many may."""
        self._active.set(active)
        self._limit.set(limit)


class QueueMetrics:
    """``workqueue_*`` of one queue; the queue is called like its controller."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._metrics = metrics
        self._name = name
        self._depths: dict[int, Gauge] = {}
        self._adds = metrics.counter("workqueue_adds_total", name, name)
        self._retries = metrics.counter("workqueue_retries_total", name, name)
        self._waited = metrics.histogram("workqueue_queue_duration_seconds", name, name)
        self._worked = metrics.histogram("workqueue_work_duration_seconds", name, name)
        self._unfinished = metrics.gauge("workqueue_unfinished_work_seconds", name, name)
        self._longest = metrics.gauge("workqueue_longest_running_processor_seconds", name, name)
        self.depth(0)

    def depth(self, n: int, priority: int = 0) -> None:
        """Say how many keys of this priority wait."""
        gauge = self._depths.get(priority)
        if gauge is None:
            gauge = self._depths[priority] = self._metrics.gauge(
                "workqueue_depth", self._name, self._name, str(priority)
            )
        gauge.set(n)

    def added(self) -> None:
        """Count a key put into the queue."""
        self._adds.inc()

    def retried(self) -> None:
        """Count a key put back after a failure."""
        self._retries.inc()

    def started(self, seconds_in_queue: float) -> None:
        """Note that a worker took a key, and how long it had waited."""
        self._waited.observe(seconds_in_queue)

    def finished(self, seconds: float) -> None:
        """Note that a worker is done with a key, and how long it took."""
        self._worked.observe(seconds)

    def unfinished(self, running: Callable[[], Collection[float]]) -> None:
        """Give the function that is asked, at each scrape, for the seconds every running worker has spent.

        Called once, when the queue is made. It runs in the scraping thread, so it must take its snapshot in
        one step, for example ``[now - start for start in list(self.started.values())]``.
        """
        self._unfinished.set_function(lambda: sum(running()))
        self._longest.set_function(lambda: max(running(), default=0.0))


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


class _AsGoPrintsIt(Collector):
    """The registry as the reference's own library would show it.

    The text of an ``le`` label is part of a series' identity, and Go prints ``1`` where Python prints
    ``1.0``; and Go has no ``_created`` series. Both would break or litter existing dashboards.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            if metric.type in ("counter", "histogram"):
                created = f"{metric.name}_created"
                metric.samples = [sample for sample in metric.samples if sample.name != created]
                for sample in metric.samples:
                    bound = sample.labels.get("le")
                    if bound is not None:
                        sample.labels["le"] = bound.removesuffix(".0")
            yield metric
