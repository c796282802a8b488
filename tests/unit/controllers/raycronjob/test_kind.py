"""What the RayCronJob brings to the pipeline: plans, events and status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kuberay_op.api.raycronjob import RayCronJob
from kuberay_op.build.cronjob import scheduled_rayjob, timestamp
from kuberay_op.controllers.pipeline import Report
from kuberay_op.controllers.raycronjob.desired import LONGEST, RayCronJobKind
from kuberay_op.controllers.raycronjob.metrics import CronMetrics
from kuberay_op.controllers.raycronjob.runs import job_news
from kuberay_op.frozen import freeze
from kuberay_op.hooks.scope import Scope
from kuberay_op.kube.errors import Forbidden
from kuberay_op.kube.resource import Key
from kuberay_op.metrics import Metrics
from kuberay_op.plan.actions import Create, Delete, Outcome
from kuberay_op.testing import make
from kuberay_op.testing.operator import make_hooks

Json = dict[str, Any]

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
KIND = RayCronJobKind()


def cron(status: Json | None = None, **spec: Any) -> Json:
    obj = make.raycronjob("nightly", make.namespace("ns"), make.spec(**{"schedule": "0 * * * *", **spec}))
    obj["metadata"] |= {"uid": "u", "generation": 3, "creationTimestamp": timestamp(NOON)}
    return obj | ({"status": status} if status else {})


def job(hour: int, state: str = "", status: str = "", end: str = "") -> Json:
    obj = scheduled_rayjob(RayCronJob(cron()), NOON + timedelta(hours=hour))
    obj["metadata"]["uid"] = f"job {hour}"
    fields = {"jobDeploymentStatus": state, "jobStatus": status, "endTime": end}
    return obj | {"status": {name: value for name, value in fields.items() if value}}


def scope(owner: Json, *jobs: Json, hours: float = 1.0) -> Scope:
    return Scope(
        owner=freeze(owner),
        now=NOON + timedelta(hours=hours),
        gate=lambda _: True,
        children={"RayJob": tuple(freeze(each) for each in jobs)},
    )


def plan(seen: Scope) -> list[Any]:
    return list(KIND.wanted(seen, make_hooks({})).actions)


def status(seen: Scope, outcomes: Sequence[Outcome] = ()) -> Json:
    standing = [*seen.children["RayJob"], *(each.obj for each in outcomes if each.error is None)]
    return KIND.status(seen, standing, Report(outcomes))


def test_the_rayjob_is_as_the_reference_makes_it() -> None:
    [action] = plan(scope(cron()))
    assert isinstance(action, Create)
    assert action.once
    assert action.obj == {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            "name": "nightly-28576140",
            "namespace": "ns",
            "labels": {"ray.io/cronjob-name": "nightly"},
            "annotations": {"ray.io/cronjob-scheduled-timestamp": "2024-05-01T13:00:00Z"},
            "ownerReferences": [
                {
                    "apiVersion": "ray.io/v1",
                    "kind": "RayCronJob",
                    "name": "nightly",
                    "uid": "u",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": cron()["spec"]["jobTemplate"],
    }


def test_who_manages_the_job_is_the_templates_business() -> None:
    owner = cron()
    owner["spec"]["jobTemplate"]["managedBy"] = "kueue.x-k8s.io/multikueue"
    assert not KIND.skips(owner)
    [action] = plan(scope(owner))
    assert action.obj["spec"]["managedBy"] == "kueue.x-k8s.io/multikueue"


def test_replacing_deletes_first() -> None:
    seen = scope(cron({"lastScheduleTime": timestamp(NOON)}, concurrencyPolicy="Replace"), job(0))
    first, second = plan(seen)
    assert isinstance(first, Delete)
    assert isinstance(second, Create)
    assert first.lane in second.after


def test_history_is_cut_also_while_suspended() -> None:
    done = [job(number, "Complete", "SUCCEEDED") for number in range(3)]
    seen = scope(cron(suspend=True, successfulJobsHistoryLimit=1), *done, hours=5)
    assert [type(action) for action in plan(seen)] == [Delete, Delete]
    assert [action.obj["metadata"]["uid"] for action in plan(seen)] == ["job 0", "job 1"]


def test_status_after_a_run_was_made() -> None:
    seen = scope(cron())
    made = {**plan(seen)[0].obj, "metadata": {**plan(seen)[0].obj["metadata"], "uid": "new"}}
    assert status(seen, [Outcome(plan(seen)[0], obj=made)]) == {
        "observedGeneration": 3,
        "lastScheduleTime": "2024-05-01T13:00:00Z",
        "active": [
            {
                "apiVersion": "ray.io/v1",
                "kind": "RayJob",
                "namespace": "ns",
                "name": "nightly-28576140",
                "uid": "new",
            }
        ],
    }


def test_status_after_a_run_could_not_be_made() -> None:
    seen = scope(cron())
    assert status(seen, [Outcome(plan(seen)[0], error=Forbidden("no"))]) == {"observedGeneration": 3}


def test_status_of_finished_jobs() -> None:
    before = {
        "lastScheduleTime": timestamp(NOON),
        "lastSuccessfulTime": "2024-05-01T10:00:00Z",
        "active": [{"name": "x"}],
    }
    done = [
        job(-1, "Complete", "SUCCEEDED", "2024-05-01T11:10:00Z"),
        job(0, "Failed", "FAILED", "2024-05-01T12:10:00Z"),
    ]
    assert status(scope(cron(before), *done, hours=0.5)) == {
        "observedGeneration": 3,
        "lastSuccessfulTime": "2024-05-01T11:10:00Z",
        "active": None,
    }
    # The job may be gone, what is known of it stays.
    assert status(scope(cron(before), hours=0.5))["lastSuccessfulTime"] == "2024-05-01T10:00:00Z"


def said(seen: Scope, *outcomes: Outcome) -> list[tuple[str, str]]:
    return [(note.type, note.reason) for note in KIND.notes(seen, outcomes)]


def test_events() -> None:
    seen = scope(cron(), hours=3)
    made, gone = Outcome(plan(seen)[0]), Delete(job(0), "old")
    assert said(seen, made) == [("Normal", "CreatedRayJob"), ("Warning", "MissSchedule")]
    assert said(seen, replace(made, changed=False)) == []
    assert said(seen, replace(made, error=Forbidden("no"))) == [("Warning", "FailedToCreateRayJob")]
    assert said(scope(cron(), hours=0), Outcome(gone)) == [("Normal", "DeletedRayJob")]
    assert said(scope(cron(), hours=0), Outcome(gone, error=Forbidden("no"))) == [
        ("Warning", "FailedToDeleteRayJob")
    ]
    assert said(scope(cron(startingDeadlineSeconds=5), hours=1.5)) == [("Warning", "MissSchedule")]
    assert said(scope(cron({"lastScheduleTime": timestamp(NOON)}, concurrencyPolicy="Forbid"), job(0))) == [
        ("Normal", "JobAlreadyActive")
    ]


def test_suspension_is_told_once_per_edit() -> None:
    assert said(scope(cron(suspend=True))) == [("Normal", "SuspendedRayCronJob")]
    assert said(scope(cron({"observedGeneration": 3}, suspend=True))) == []


def test_due_is_exact_and_never_far() -> None:
    assert KIND.due(scope(cron(), hours=0.9)) == 360
    assert KIND.due(scope(cron(), hours=0.1)) == LONGEST
    assert KIND.due(scope(cron(suspend=True))) is None


def test_news_of_a_job() -> None:
    running = job(0, "Running", "RUNNING")
    later = job(0, "Running", "RUNNING") | {"status": {"jobDeploymentStatus": "Running", "message": "x"}}
    assert not job_news(freeze(running), freeze(later))
    for state, outcome in (("Complete", "SUCCEEDED"), ("Failed", "FAILED"), ("ValidationFailed", "")):
        assert job_news(freeze(running), freeze(job(0, state, outcome)))
    going = {**running, "metadata": {**running["metadata"], "deletionTimestamp": timestamp(NOON)}}
    assert job_news(freeze(running), freeze(going))


def test_metrics() -> None:
    metrics = Metrics(process=False)
    status = {
        "lastScheduleTime": timestamp(NOON),
        "lastSuccessfulTime": timestamp(NOON),
        "active": [{"name": "x"}],
    }
    numbers = CronMetrics(metrics.registry, lambda: [cron(status)])
    kind = RayCronJobKind(numbers)
    kind.written(scope(cron(), hours=4), {"lastScheduleTime": "x"})
    whose = {"name": "nightly", "namespace": "ns"}

    def value(name: str) -> float | None:
        return metrics.registry.get_sample_value(name, whose)

    assert value("kuberay_op_cronjob_active_jobs") == 1
    assert value("kuberay_op_cronjob_last_schedule_time_seconds") == NOON.timestamp()
    assert value("kuberay_op_cronjob_last_successful_time_seconds") == NOON.timestamp()
    assert value("kuberay_op_cronjob_missed_runs_total") == 3
    numbers.forget(Key("ns", "nightly"))
    numbers.forget(Key("ns", "another"))
    assert value("kuberay_op_cronjob_missed_runs_total") is None
