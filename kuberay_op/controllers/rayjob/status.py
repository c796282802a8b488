"""From a step to the fields of the status: counters, times, and whether there is another attempt. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from kuberay_op.api import conditions
from kuberay_op.api.rayjob import RayJob
from kuberay_op.controllers.rayjob.situation import Step, timestamp

#: Failures after which no further attempt is made: there would be no time for it, or no way to watch it.
FINAL: Final = frozenset({conditions.DEADLINE_EXCEEDED, conditions.STATUS_CHECK_TIMEOUT_EXCEEDED})

#: The pause before another attempt, as Jobs of Kubernetes have it: doubled each time, up to a limit.
FIRST_PAUSE: Final = timedelta(seconds=10)
LONGEST_PAUSE: Final = timedelta(minutes=6)

#: States in which the clock of a job runs.
UNDER_WAY: Final = frozenset(
    {conditions.DEPLOYMENT_INITIALIZING, conditions.DEPLOYMENT_WAITING, conditions.DEPLOYMENT_RUNNING}
)


def status_of(job: RayJob, step: Step, now: datetime) -> dict[str, Any]:
    """The fields of the status after a step that was taken."""
    fields: dict[str, Any] = {
        **{name: _json(value) for name, value in step.fields.items()},
        "jobDeploymentStatus": step.state or None,
        "observedGeneration": job.metadata.generation,
    }
    if step.state in UNDER_WAY and not job.status.start_time:
        fields.setdefault("startTime", timestamp(now))
    if step.state != job.status.job_deployment_status:
        fields |= _ended(job, step, now)
    return fields


def _ended(job: RayJob, step: Step, now: datetime) -> dict[str, Any]:
    """What is counted when an attempt ends."""
    succeeded, failures = job.status.succeeded or 0, job.status.failed or 0
    if step.state == conditions.DEPLOYMENT_COMPLETE:
        well = step.fields.get("jobStatus", job.status.job_status) == conditions.JOB_SUCCEEDED
        return {"endTime": timestamp(now), "succeeded": succeeded + well, "failed": failures}
    if step.state != conditions.DEPLOYMENT_FAILED:
        return {}
    counted = {"succeeded": succeeded, "failed": failures + 1}
    if another_attempt(job, str(step.fields.get("reason", "")), failures + 1):
        retrying = {"jobDeploymentStatus": conditions.DEPLOYMENT_RETRYING}
        return {**counted, **retrying, "retryTime": timestamp(now + pause(failures + 1))}
    return {**counted, "endTime": timestamp(now)}


def another_attempt(job: RayJob, reason: str, failures: int) -> bool:
    """Whether a job that has failed so often is tried again."""
    return reason not in FINAL and failures <= (job.spec.backoff_limit or 0)


def pause(failures: int) -> timedelta:
    """How long to wait after so many failures."""
    doubled: timedelta = FIRST_PAUSE * 2.0 ** min(failures - 1, 16)
    return min(doubled, LONGEST_PAUSE)


def _json(value: Any) -> Any:
    return timestamp(value) if isinstance(value, datetime) else value
