"""Every metric family of the operator, declared once; the reference page is made from this table.

Names, labels and buckets that the reference or controller-runtime publish must stay as they are there. Those
of our own are called ``kuberay_op_…``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


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
        # The process
        Family(
            "kuberay_op_event_loop_lag_seconds",
            "gauge",
            (),
            "Seconds by which the event loop was late for its last heartbeat; near 0 while all is well.",
        ),
        # Requests to Ray
        Family(
            "kuberay_op_ray_requests_total",
            "counter",
            ("call", "outcome"),
            "Requests to the Ray of clusters, by what was asked and how it ended (`ok` or an error).",
        ),
        Family(
            "kuberay_op_ray_request_duration_seconds",
            "histogram",
            ("call",),
            "Seconds that requests to Ray took, by what was asked.",
            LATENCY,
        ),
        Family(
            "kuberay_op_ray_breakers",
            "gauge",
            ("state",),
            "Clusters whose Ray is left alone after failures (`open`) or just tried (`half_open`).",
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

#: Metrics about custom resources, only with ``enable-metrics``. Their controllers fill them.
OBJECT_FAMILIES: Final = {
    family.name: family
    for family in (
        Family(
            "kuberay_cluster_info",
            "gauge",
            ("name", "namespace", "uid", "owner_kind"),
            "Always 1, for each RayCluster. `owner_kind` is the kind of object it was made for, or `None`.",
        ),
        Family(
            "kuberay_cluster_condition_provisioned",
            "gauge",
            ("name", "namespace", "uid", "condition"),
            "Always 1; `condition` is `true` once all Pods of the RayCluster have been ready.",
        ),
        Family(
            "kuberay_cluster_provisioned_duration_seconds",
            "gauge",
            ("name", "namespace", "uid"),
            "Seconds from the creation of a RayCluster until all its Pods were ready for the first time.",
        ),
        Family("kuberay_job_info", "gauge", ("name", "namespace", "uid"), "Always 1, for each RayJob."),
        Family(
            "kuberay_job_deployment_status",
            "gauge",
            ("name", "namespace", "uid", "deployment_status"),
            "Always 1; `deployment_status` is where the RayJob stands, empty for a new one.",
        ),
        Family(
            "kuberay_job_execution_duration_seconds",
            "gauge",
            ("name", "namespace", "uid", "job_deployment_status", "retry_count"),
            "Seconds an attempt took, by how it ended. `retry_count` is how many had failed before.",
        ),
        Family(
            "kuberay_op_cronjob_active_jobs",
            "gauge",
            ("name", "namespace"),
            "RayJobs of a RayCronJob that have not finished.",
        ),
        Family(
            "kuberay_op_cronjob_last_schedule_time_seconds",
            "gauge",
            ("name", "namespace"),
            "The time for which a RayCronJob last made a RayJob, in seconds since 1970.",
        ),
        Family(
            "kuberay_op_cronjob_last_successful_time_seconds",
            "gauge",
            ("name", "namespace"),
            "When a RayJob of a RayCronJob last finished successfully, in seconds since 1970.",
        ),
        Family(
            "kuberay_op_cronjob_missed_runs_total",
            "counter",
            ("name", "namespace"),
            "Times of a RayCronJob's schedule that passed without a RayJob; at most 100 at once.",
        ),
    )
}
