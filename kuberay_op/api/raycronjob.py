"""RayCronJob: make a RayJob on a schedule."""

from __future__ import annotations

from kuberay_op.api.fields import Flag, Nested, Text, Time
from kuberay_op.api.meta import Column, CustomResource
from kuberay_op.api.raycluster import AGE
from kuberay_op.api.rayjob import RayJobSpec
from kuberay_op.api.view import View


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


class RayCronJobStatus(View):
    """What the operator has done."""

    last_schedule_time = Time("lastScheduleTime", "When a job was last made.")


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
