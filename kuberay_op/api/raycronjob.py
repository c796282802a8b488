"""RayCronJob: make a RayJob on a schedule."""

from __future__ import annotations

from typing import Final

from kuberay_op.api.fields import Flag, Integer, Nested, NestedList, Text, Time
from kuberay_op.api.meta import Column, Condition, CustomResource
from kuberay_op.api.raycluster import AGE
from kuberay_op.api.rayjob import RayJobSpec
from kuberay_op.api.view import View

ALLOW: Final = "Allow"
FORBID: Final = "Forbid"
REPLACE: Final = "Replace"


class RayCronJobSpec(View):
    """The schedule and the job."""

    job_template = Nested(
        "jobTemplate", "Spec of the RayJobs to make, without a metadata part.", RayJobSpec, required=True
    )
    schedule = Text(
        "schedule",
        "When to make one, in cron form: minute, hour, day, month, day of week; or @hourly, @daily.",
        required=True,
    )
    time_zone = Text(
        "timeZone",
        "Time zone of the schedule, such as Europe/Berlin; that of the operator when unset.",
        min_length=1,
    )
    suspend = Flag("suspend", "Make no more jobs until this is false again; running ones go on.")
    concurrency_policy = Text(
        "concurrencyPolicy",
        "What to do when it is time and a job of before has not finished: Allow (the default) makes another; "
        "Forbid waits, and skips all but the last time that passes; Replace deletes the one of before.",
        choices=(ALLOW, FORBID, REPLACE),
    )
    starting_deadline_seconds = Integer(
        "startingDeadlineSeconds",
        "A job that could not be made within so many seconds of its time is skipped; never when unset.",
        bits=64,
        minimum=0,
    )
    successful_jobs_history_limit = Integer(
        "successfulJobsHistoryLimit", "How many successful jobs to keep; all when unset.", minimum=0
    )
    failed_jobs_history_limit = Integer(
        "failedJobsHistoryLimit", "How many failed or stopped jobs to keep; all when unset.", minimum=0
    )


class ActiveRayJob(View):
    """A job that has not finished."""

    api_version = Text("apiVersion", "Always ray.io/v1.")
    kind = Text("kind", "Always RayJob.")
    namespace = Text("namespace", "Namespace of the RayJob.")
    name = Text("name", "Name of the RayJob.")
    uid = Text("uid", "UID of the RayJob.")


class RayCronJobStatus(View):
    """What the operator has done."""

    last_schedule_time = Time("lastScheduleTime", "The time for which a job was last made.")
    active = NestedList("active", "The jobs that have not finished.", ActiveRayJob, atomic=True)
    last_successful_time = Time("lastSuccessfulTime", "When a job last finished successfully.")
    conditions = NestedList("conditions", "What plugins object to, if any do.", Condition, map_keys=("type",))
    observed_generation = Integer(
        "observedGeneration", "The generation of the spec this status belongs to.", bits=64
    )


class RayCronJob(CustomResource):
    """RayJobs on a schedule."""

    KIND = "RayCronJob"
    PLURAL = "raycronjobs"
    COLUMNS = (
        Column("schedule", "string", ".spec.schedule"),
        Column("timezone", "string", ".spec.timeZone"),
        Column("last schedule", "date", ".status.lastScheduleTime"),
        AGE,
        Column("suspend", "boolean", ".spec.suspend"),
    )

    spec = Nested("spec", "The schedule and the job.", RayCronJobSpec)
    status = Nested("status", "What the operator has done.", RayCronJobStatus)
