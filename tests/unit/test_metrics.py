"""Metrics: names, labels and buckets as dashboards know them, and series that go with their objects."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import pytest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from kuberay_op.metrics import FAMILIES, Metrics, Outcome, PushedGauge, ScrapeCollector


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(process=False)


def families(metrics: Metrics) -> dict[str, Metric]:
    """The printed metrics as Prometheus would read them; counters without their ``_total``."""
    text, _ = metrics.render()
    return {family.name: family for family in text_string_to_metric_families(text.decode())}


def value(metrics: Metrics, name: str, /, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


CONTRACT = {
    "rest_client_request_duration_seconds": ("histogram", {"verb", "host"}),
    "rest_client_rate_limiter_duration_seconds": ("histogram", {"verb", "host"}),
    "rest_client_dns_resolution_duration_seconds": ("histogram", {"host"}),
    "rest_client_request_size_bytes": ("histogram", {"verb", "host"}),
    "rest_client_response_size_bytes": ("histogram", {"verb", "host"}),
    "rest_client_request_retries_total": ("counter", {"code", "verb", "host"}),
    "rest_client_requests_total": ("counter", {"code", "method", "host"}),
    "controller_runtime_reconcile_total": ("counter", {"controller", "result"}),
    "controller_runtime_reconcile_errors_total": ("counter", {"controller"}),
    "controller_runtime_terminal_reconcile_errors_total": ("counter", {"controller"}),
    "controller_runtime_reconcile_panics_total": ("counter", {"controller"}),
    "controller_runtime_reconcile_time_seconds": ("histogram", {"controller"}),
    "controller_runtime_max_concurrent_reconciles": ("gauge", {"controller"}),
    "controller_runtime_active_workers": ("gauge", {"controller"}),
    "workqueue_depth": ("gauge", {"name", "controller", "priority"}),
    "workqueue_adds_total": ("counter", {"name", "controller"}),
    "workqueue_retries_total": ("counter", {"name", "controller"}),
    "workqueue_queue_duration_seconds": ("histogram", {"name", "controller"}),
    "workqueue_work_duration_seconds": ("histogram", {"name", "controller"}),
    "workqueue_unfinished_work_seconds": ("gauge", {"name", "controller"}),
    "workqueue_longest_running_processor_seconds": ("gauge", {"name", "controller"}),
    "leader_election_master_status": ("gauge", {"name"}),
}


def exercise(metrics: Metrics) -> None:
    """Touch every family once."""
    metrics.request("GET", "api:443", "200", 0.01, sent=0, received=100)
    metrics.rate_limited("GET", "api:443", 0.0)
    metrics.retried("429", "GET", "api:443")
    metrics.resolved("api", 0.001)
    metrics.leader("ray-operator-leader", leading=True)
    metrics.controller("raycluster").reconciled("success", 0.5)
    metrics.queue("raycluster").added()


def test_every_family_is_printed_with_the_type_and_labels_of_the_contract(metrics: Metrics) -> None:
    exercise(metrics)
    printed = families(metrics)
    seen = {}
    for name, (kind, _) in CONTRACT.items():
        family = printed[name.removesuffix("_total") if kind == "counter" else name]
        labels = set(family.samples[0].labels) - {"le"}
        seen[name] = (family.type, labels)
    assert seen == CONTRACT
    assert {name for name in FAMILIES if not name.startswith("kuberay_op_")} == set(CONTRACT)


LATENCY = ["0.005", "0.025", "0.1", "0.25", "0.5", "1", "2", "4", "8", "15", "30", "60", "+Inf"]
SIZE = ["64", "256", "512", "1024", "4096", "16384", "65536", "262144"]
SIZE += ["1.048576e+06", "4.194304e+06", "1.6777216e+07", "+Inf"]
QUEUE = ["1e-08", "1e-07", "1e-06", "9.999999999999999e-06", "9.999999999999999e-05"]
QUEUE += ["0.001", "0.01", "0.1", "1", "10", "100", "1000", "+Inf"]


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("rest_client_request_duration_seconds", LATENCY),
        ("rest_client_rate_limiter_duration_seconds", LATENCY),
        ("rest_client_dns_resolution_duration_seconds", [*LATENCY[:-2], "+Inf"]),
        ("rest_client_request_size_bytes", SIZE),
        ("rest_client_response_size_bytes", SIZE),
        ("workqueue_work_duration_seconds", QUEUE),
        ("workqueue_queue_duration_seconds", QUEUE),
    ],
)
def test_bucket_bounds_are_spelt_as_go_spells_them(metrics: Metrics, name: str, bounds: list[str]) -> None:
    exercise(metrics)
    text = metrics.render()[0].decode()
    lines = [line for line in text.splitlines() if line.startswith(f"{name}_bucket")]
    assert [line.split('le="')[1].split('"')[0] for line in lines] == bounds


def test_reconcile_time_has_forty_buckets_from_5_ms_to_a_minute() -> None:
    buckets = FAMILIES["controller_runtime_reconcile_time_seconds"].buckets
    assert (len(buckets), buckets[0], buckets[-1]) == (40, 0.005, 60.0)
    assert list(buckets) == sorted(set(buckets))


def test_there_are_no_created_series(metrics: Metrics) -> None:
    exercise(metrics)
    for accept in ("", "application/openmetrics-text; version=1.0.0"):
        assert b"_created" not in metrics.render(accept)[0]


def test_render_follows_the_accept_header(metrics: Metrics) -> None:
    assert metrics.render()[1] == "text/plain; version=0.0.4; charset=utf-8"
    text, content_type = metrics.render("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert text.endswith(b"# EOF\n")


def test_a_controller_shows_all_its_series_before_the_first_pass(metrics: Metrics) -> None:
    metrics.controller("rayjob")
    outcomes: tuple[Outcome, ...] = ("success", "error", "requeue", "requeue_after")
    for outcome in outcomes:
        assert value(metrics, "controller_runtime_reconcile_total", controller="rayjob", result=outcome) == 0
    assert value(metrics, "controller_runtime_reconcile_panics_total", controller="rayjob") == 0


def test_a_controller_counts_passes_errors_panics_and_workers(metrics: Metrics) -> None:
    controller = metrics.controller("rayjob")
    controller.reconciled("requeue_after", 0.2)
    controller.reconciled("error", 2)
    controller.error()
    controller.error(terminal=True)
    controller.panic()
    controller.workers(3, 8)

    def of(name: str) -> float | None:
        return value(metrics, f"controller_runtime_{name}", controller="rayjob")

    assert value(metrics, "controller_runtime_reconcile_total", controller="rayjob", result="error") == 1
    assert of("reconcile_time_seconds_sum") == pytest.approx(2.2)
    assert of("reconcile_errors_total") == 2
    assert of("terminal_reconcile_errors_total") == 1
    assert of("reconcile_panics_total") == 1
    assert (of("active_workers"), of("max_concurrent_reconciles")) == (3, 8)


def test_a_queue_reports_depth_by_priority_and_what_happened_to_keys(metrics: Metrics) -> None:
    queue = metrics.queue("raycluster")
    queue.depth(4)
    queue.depth(2, priority=-100)
    queue.added()
    queue.added()
    queue.retried()
    queue.started(0.5)
    queue.finished(0.25)
    labels = {"name": "raycluster", "controller": "raycluster"}
    assert value(metrics, "workqueue_depth", priority="0", **labels) == 4
    assert value(metrics, "workqueue_depth", priority="-100", **labels) == 2
    assert value(metrics, "workqueue_adds_total", **labels) == 2
    assert value(metrics, "workqueue_retries_total", **labels) == 1
    assert value(metrics, "workqueue_queue_duration_seconds_sum", **labels) == 0.5
    assert value(metrics, "workqueue_work_duration_seconds_sum", **labels) == 0.25


def test_unfinished_work_is_asked_for_at_each_scrape(metrics: Metrics) -> None:
    running: list[float] = []
    metrics.queue("raycluster").unfinished(lambda: running)
    labels = {"name": "raycluster", "controller": "raycluster"}
    assert value(metrics, "workqueue_unfinished_work_seconds", **labels) == 0
    assert value(metrics, "workqueue_longest_running_processor_seconds", **labels) == 0
    running += [1.5, 4.0]
    assert value(metrics, "workqueue_unfinished_work_seconds", **labels) == 5.5
    assert value(metrics, "workqueue_longest_running_processor_seconds", **labels) == 4.0


def test_a_request_is_counted_under_its_answer(metrics: Metrics) -> None:
    for code in ("200", "200", "409"):
        metrics.request("PATCH", "api:443", code, 0.3, sent=300, received=5000)
    assert value(metrics, "rest_client_requests_total", code="200", method="PATCH", host="api:443") == 2
    assert value(metrics, "rest_client_requests_total", code="409", method="PATCH", host="api:443") == 1
    labels = {"verb": "PATCH", "host": "api:443"}
    assert value(metrics, "rest_client_request_size_bytes_sum", **labels) == 900
    assert value(metrics, "rest_client_response_size_bytes_sum", **labels) == 15000
    assert value(metrics, "rest_client_request_duration_seconds_count", **labels) == 3


def test_leadership_is_1_or_0(metrics: Metrics) -> None:
    metrics.leader("ray-operator-leader", leading=True)
    assert value(metrics, "leader_election_master_status", name="ray-operator-leader") == 1
    metrics.leader("ray-operator-leader", leading=False)
    assert value(metrics, "leader_election_master_status", name="ray-operator-leader") == 0


def test_two_metrics_share_nothing(metrics: Metrics) -> None:
    other = Metrics(process=False)
    metrics.queue("raycluster").added()
    assert value(other, "workqueue_adds_total", name="raycluster", controller="raycluster") is None


def test_the_process_and_the_interpreter_are_described() -> None:
    text = Metrics().render()[0]
    for name in (b"process_resident_memory_bytes ", b"process_cpu_seconds_total ", b"python_info{"):
        assert name in text


def test_pushed_series_go_with_their_object(metrics: Metrics) -> None:
    gauge = PushedGauge(
        metrics.registry, "kuberay_job_execution_duration_seconds", "d", ("uid", "job_deployment_status")
    )
    gauge.set(10, "a", "ns", "u1", "Failed")
    gauge.set(20, "a", "ns", "u2", "Complete")
    gauge.set(30, "a", "other", "u3", "Complete")
    gauge.set(25, "a", "ns", "u2", "Complete")
    assert gauge.forget("a", "ns") == 2
    assert gauge.forget("a", "ns") == 0
    (left,) = families(metrics)["kuberay_job_execution_duration_seconds"].samples
    assert (left.labels["namespace"], left.value) == ("other", 30)


def test_scrape_metrics_are_computed_anew_each_time(metrics: Metrics) -> None:
    names: list[str] = []

    def infos() -> Iterable[Metric]:
        info = GaugeMetricFamily("kuberay_cluster_info", "d", labels=["name"])
        for name in names:
            info.add_metric([name], 1)
        yield info

    metrics.registry.register(ScrapeCollector(infos))
    assert families(metrics)["kuberay_cluster_info"].samples == []
    names.append("a")
    assert [s.labels["name"] for s in families(metrics)["kuberay_cluster_info"].samples] == ["a"]


def test_a_failing_collector_is_left_out_and_the_scrape_succeeds(
    metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Iterable[Metric]:
        yield GaugeMetricFamily("kuberay_job_info", "d", value=1)
        raise RuntimeError("no cache")

    metrics.registry.register(ScrapeCollector(broken))
    metrics.queue("raycluster").added()
    printed = families(metrics)
    assert "kuberay_job_info" not in printed
    assert "workqueue_adds" in printed
    assert "missing from this scrape" in caplog.text


def test_scraping_while_others_write_loses_nothing(metrics: Metrics) -> None:
    def write(controller: str) -> None:
        queue = metrics.queue(controller)
        for _ in range(2000):
            queue.added()
            metrics.request("GET", controller, "200", 0.1, sent=1, received=1)

    threads = [threading.Thread(target=write, args=(f"c{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        metrics.render()
    for n in range(4):
        assert value(metrics, "workqueue_adds_total", name=f"c{n}", controller=f"c{n}") == 2000
        assert value(metrics, "rest_client_requests_total", code="200", method="GET", host=f"c{n}") == 2000
