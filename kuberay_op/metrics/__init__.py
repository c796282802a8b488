"""What the process tells Prometheus: one ``Metrics`` object, made at start-up and passed down.

Names, labels and buckets are those the reference and controller-runtime publish, so that dashboards and
alerts go on working. Every family is declared once, in ``FAMILIES``; the reference page is made from that
table. Nothing here is global: each ``Metrics`` owns its registry, so tests can have as many as they like.

Writers look their label children up once and keep them, since a look-up costs more than the observation.
Everything may be called from any thread; ``Metrics.render`` is meant to be called from a worker thread,
because a large cluster takes longer to print than the event loop may be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from kuberay_op.metrics.collectors import AsGoPrintsIt, PushedGauge, ScrapeCollector
from kuberay_op.metrics.families import FAMILIES, OBJECT_FAMILIES, Family

__all__ = [
    "FAMILIES",
    "OBJECT_FAMILIES",
    "OUTCOMES",
    "ControllerMetrics",
    "Family",
    "Metrics",
    "Outcome",
    "PushedGauge",
    "QueueMetrics",
    "ScrapeCollector",
]

#: How a pass over one object ended, as controller-runtime names it.
Outcome = Literal["success", "error", "requeue", "requeue_after"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("success", "error", "requeue", "requeue_after")


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
        return self._gauges[name].labels(*labels) if labels else self._gauges[name]

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

    def loop_lag(self, seconds: Callable[[], float]) -> None:
        """Give the function that is asked, at each scrape, how late the event loop runs things."""
        self.gauge("kuberay_op_event_loop_lag_seconds").set_function(seconds)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Everything as text, and its content type, in the format the ``Accept`` header asks for.

        Takes time in proportion to the number of series: call it through ``asyncio.to_thread``.
        """
        encode, content_type = choose_encoder(accept)
        return encode(AsGoPrintsIt(self.registry)), content_type


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
