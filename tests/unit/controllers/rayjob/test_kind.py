"""The RayJob's part in the pipeline: status, events, finalizer, gang and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from kuberay_op.api.rayjob import RayJob
from kuberay_op.api.validation import failure
from kuberay_op.config import Config
from kuberay_op.controllers.hold import Hold
from kuberay_op.controllers.pipeline import Report
from kuberay_op.controllers.rayjob.desired import RayJobKind
from kuberay_op.controllers.rayjob.events import child_notes, state_notes
from kuberay_op.controllers.rayjob.metrics import JobMetrics
from kuberay_op.controllers.rayjob.situation import RaySays
from kuberay_op.errors import Retry
from kuberay_op.frozen import freeze
from kuberay_op.hooks.scope import Scope
from kuberay_op.hooks.verdicts import Done, Wait
from kuberay_op.kube.errors import Forbidden
from kuberay_op.kube.resource import Key
from kuberay_op.plan.actions import Create, Delete, Outcome, Update
from kuberay_op.testing import make
from kuberay_op.testing.operator import make_hooks
from tests.unit.controllers.rayjob.situations import (
    DASHBOARD,
    HEAD_SERVICE,
    NOW,
    at,
    cluster,
    info,
    job,
    says,
    submitter,
)


def kind(config: Config | None = None, metrics: JobMetrics | None = None) -> RayJobKind:
    """The kind, with names that are the same every time."""
    return RayJobKind(config or Config(), rng=Random(1), metrics=metrics)  # noqa: S311 (seeded on purpose)


def scope(of: RayJob, ray: RaySays | None = None, **children: Sequence[Mapping[str, Any]]) -> Scope:
    """A pass over a job."""
    gate = Config().gates.enabled
    return Scope(owner=freeze(of.raw), now=NOW, gate=gate, children=freeze(children), ray=ray)


def around(*more: Mapping[str, Any]) -> dict[str, Any]:
    """A cluster that is ready, and its Service."""
    service = {**HEAD_SERVICE, "kind": "Service"}
    return {"RayCluster": [cluster().raw], "Service": [service, *more]}


# --- what there should be


def test_a_service_that_leads_elsewhere_is_turned_round_and_one_that_does_not_is_left() -> None:
    def service(to: str) -> dict[str, Any]:
        spec = {"selector": {"ray.io/cluster": to}}
        return {"kind": "Service", "metadata": {"name": "j-head-svc"}, "spec": spec}

    def wanted(*more: Mapping[str, Any]) -> list[str]:
        found = kind().wanted(scope(job("Running"), **around(*more)), make_hooks({}))
        return [str(item.obj["metadata"]["name"]) for item in found.objects]

    assert wanted() == ["j-head-svc"]
    assert wanted(service("old")) == ["j-head-svc"]
    assert wanted(service("c")) == []


def test_the_submitter_knows_the_address_that_was_just_found() -> None:
    of = scope(job("Initializing", mode="K8sJobMode"), **around())
    (found,) = kind().wanted(of, make_hooks({})).objects
    (container,) = found.obj["spec"]["template"]["spec"]["containers"]
    assert {"name": "RAY_DASHBOARD_ADDRESS", "value": DASHBOARD} in container["env"]
    assert f"--address http://{DASHBOARD} " in container["args"][0]


def test_the_job_itself_can_be_deleted() -> None:
    of = job("Complete", status={"jobStatus": "SUCCEEDED", "endTime": at(1)})
    config = Config(delete_rayjob_after_job_finishes=True)
    (action,) = kind(config).wanted(scope(of), make_hooks({})).actions
    assert isinstance(action, Delete)
    assert (action.obj["kind"], action.obj["metadata"]["name"]) == ("RayJob", "j")


def test_workers_are_suspended_and_nothing_else_is_changed() -> None:
    strategy = {"onSuccess": {"policy": "DeleteWorkers"}, "onFailure": {"policy": "DeleteNone"}}
    of = job(
        "Complete",
        make.spec(shutdownAfterJobFinishes=False, deletionStrategy=strategy),
        status={"jobStatus": "SUCCEEDED", "endTime": at(1)},
    )
    there = cluster("ready", make.workers(2), make.workers(1, "more"))
    (action,) = kind().wanted(scope(of, RayCluster=[there.raw]), make_hooks({})).actions
    assert isinstance(action, Update)
    groups = [{**group.raw, "suspend": True} for group in there.spec.worker_group_specs]
    assert action.patch == {"spec": {"workerGroupSpecs": groups}}


# --- status


def test_a_step_that_could_not_be_taken_is_not_told() -> None:
    of = scope(job("Initializing", mode="K8sJobMode"), **around())
    assert kind().status(of, [], Report())["jobDeploymentStatus"] == "Running"
    refused = Outcome(Create({"kind": "Job", "metadata": {"name": "j"}}, "why"), error=Forbidden("no"))
    found = kind().status(of, [], Report([refused]))
    assert found["jobDeploymentStatus"] == "Initializing"
    assert "dashboardURL" not in found
    assert found["rayClusterStatus"] == cluster().status.raw


def test_while_a_plugin_objects_only_the_clock_goes_on() -> None:
    held = Report(hold=Hold("PluginRefuses", "no"))
    running = scope(job("Initializing"), **around())
    assert kind().status(running, [], held)["jobDeploymentStatus"] == "Initializing"
    late = scope(job("Initializing", make.spec(activeDeadlineSeconds=1)), **around())
    assert kind().status(late, [], held)["reason"] == "DeadlineExceeded"


@pytest.mark.parametrize(
    ("state", "expected"),
    [("", "ValidationFailed"), ("Initializing", "ValidationFailed"), ("Suspended", "ValidationFailed"),
     ("Running", "Running"), ("Retrying", None), ("Suspending", None), ("Complete", None), ("Failed", None)],
)  # fmt: skip
def test_a_bad_edit_stops_what_has_not_begun(state: str, expected: str | None) -> None:
    of = job(state, make.spec(backoffLimit=-1))
    broken = failure(of.raw, Config().gates.enabled)
    assert broken is not None
    assert kind().invalid(scope(of, **around()), broken).get("jobDeploymentStatus") == expected


def test_a_job_that_runs_ends_by_rays_word_even_if_it_is_not_valid() -> None:
    of = job("Running", make.spec(backoffLimit=-1, activeDeadlineSeconds=1, suspend=True))
    broken = failure(of.raw, Config().gates.enabled)
    assert broken is not None
    found = kind().invalid(scope(of, says(info("FAILED", "boom")), **around()), broken)
    assert (found["jobDeploymentStatus"], found["message"], found["failed"]) == ("Failed", "boom", 1)


def test_another_state_is_looked_at_at_once() -> None:
    of = scope(job("Running"))
    assert kind().written(of, {"jobDeploymentStatus": "Complete"})
    assert not kind().written(of, {"jobDeploymentStatus": "Running"})


# --- the end


def test_a_deletion_waits_for_ray_and_not_for_long() -> None:
    def verdict(ray: RaySays, seconds: float = 0, **more: Any) -> Any:
        of = job("Running", make.deleted(at(seconds), "ray.io/rayjob-finalizer"), **more)
        return kind().finalize(scope(of, ray, **around()), "ray.io/rayjob-finalizer")

    assert kind().finalizers() == ("ray.io/rayjob-finalizer",)
    assert isinstance(verdict(RaySays()), Wait)
    assert verdict(RaySays()).seconds == 30
    assert isinstance(verdict(RaySays(stop_error=Retry("no")), 29), Wait)
    given_up = verdict(RaySays(stop_error=Retry("no connection")), 30)
    assert isinstance(given_up, Done)
    assert given_up.warning
    assert "no connection" in given_up.reason
    assert isinstance(verdict(RaySays(stopped=True)), Done)
    assert isinstance(verdict(RaySays(), status={"jobStatus": "SUCCEEDED"}), Done)
    assert isinstance(verdict(RaySays(), status={"jobId": None}), Done)
    assert kind().finalize(scope(job("Running", make.deleted())), "ray.io/other") is None


def test_the_scheduler_lets_go_when_nothing_is_left() -> None:
    of = job("Retrying", mode="K8sJobMode")
    mine = make.owned_by(of.raw)
    left = submitter()
    mine(left)
    assert kind().lets_go(scope(of, Job=[left])) == ""
    assert kind().lets_go(scope(of)) == "first"
    assert kind().lets_go(scope(job("Complete"))) == "also"
    assert kind().lets_go(scope(job("Running"))) == ""


# --- events


def test_events_about_children() -> None:
    raycluster = {"kind": "RayCluster", "metadata": {"name": "c", "namespace": "n"}}
    submitter_ = {"kind": "Job", "metadata": {"name": "j", "namespace": "n"}}
    found = list(
        child_notes(
            [
                Outcome(Create(raycluster, "x"), raycluster),
                Outcome(Delete(raycluster, "the job has finished"), {}),
                Outcome(Create(submitter_, "x"), error=Forbidden("create jobs n/j: 403 Forbidden: no")),
                Outcome(Create(raycluster, "x"), raycluster, changed=False),
            ]
        )
    )
    assert [(note.type, note.reason, note.text) for note in found] == [
        ("Normal", "CreatedRayCluster", "Created RayCluster n/c"),
        ("Normal", "DeletedRayCluster", "Deleted RayCluster n/c; the job has finished"),
        ("Warning", "FailedToCreateRayJobSubmitter", "Failed to create new Kubernetes Job n/j: no"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("Running", {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "message": "ok"},
         [("Normal", "CompletedRayJob", "the job j-abcde ended as SUCCEEDED: ok")]),
        ("Running", {"jobDeploymentStatus": "Failed", "reason": "AppFailed", "message": "boom"},
         [("Warning", "FailedRayJob", "AppFailed: boom")]),
        ("Running", {"jobDeploymentStatus": "Retrying", "reason": "AppFailed", "message": "boom", "failed": 1,
                     "retryTime": "T"},
         [("Warning", "RetryingRayJob", "attempt 1 failed (AppFailed: boom); the next begins at T")]),
        ("Running", {"jobDeploymentStatus": "Running", "message": "60 %"}, []),
        ("Running", {"jobDeploymentStatus": "Suspending"},
         [("Normal", "SuspendedRayJob", "spec.suspend is true: the cluster of the job is deleted")]),
        ("Suspended", {"jobDeploymentStatus": None},
         [("Normal", "ResumedRayJob", "the job starts again")]),
        ("", {"jobDeploymentStatus": "Initializing"}, []),
    ],
)  # fmt: skip
def test_events_about_states(before: str, after: dict[str, Any], expected: Any) -> None:
    found = state_notes(job(before).raw, after)
    assert [(note.type, note.reason, note.text) for note in found] == expected


# --- metrics


def test_metrics() -> None:
    registry = CollectorRegistry()
    of = job("Running", status={"failed": 1})
    metrics = JobMetrics(registry, lambda: [of.raw])
    kind(metrics=metrics).written(scope(of), {"jobDeploymentStatus": "Retrying"})
    kind(metrics=metrics).written(scope(of), {"jobDeploymentStatus": "Running"})
    whose = 'name="j",namespace="default",uid="uid-1"'
    text = generate_latest(registry).decode()
    assert f"kuberay_job_info{{{whose}}} 1.0" in text
    assert f'kuberay_job_deployment_status{{deployment_status="Running",{whose}}} 1.0' in text
    duration = [
        line for line in text.splitlines() if line.startswith("kuberay_job_execution_duration_seconds{")
    ]
    assert duration == [
        'kuberay_job_execution_duration_seconds{job_deployment_status="Retrying",name="j",'
        'namespace="default",retry_count="1",uid="uid-1"} 60.0'
    ]
    metrics.forget(Key("default", "j"))
    assert "duration_seconds{" not in generate_latest(registry).decode()
