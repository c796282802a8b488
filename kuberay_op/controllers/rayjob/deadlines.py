"""When a job must have done what. Pure. A job without a start has no deadline yet."""

from __future__ import annotations

from datetime import datetime, timedelta

from kuberay_op.api.rayjob import RayJob
from kuberay_op.controllers.rayjob.situation import Situation, left, moment, soonest


def active_deadline(at: Situation) -> datetime | None:
    """When the job must have ended."""
    return _after_start(at.job, at.job.spec.active_deadline_seconds)


def pre_running_deadline(at: Situation) -> datetime | None:
    """When the job must be running."""
    return _after_start(at.job, at.job.spec.pre_running_deadline_seconds)


def until(due: datetime | None, now: datetime) -> float | None:
    """Seconds until then; None without a deadline."""
    return None if due is None else left(due, now)


def alarm(job: RayJob, now: datetime) -> float | None:
    """Seconds until the next deadline that is still to come; None when there is none."""
    spec = job.spec
    limits = (spec.active_deadline_seconds, spec.pre_running_deadline_seconds)
    dues = [due for due in (_after_start(job, seconds) for seconds in limits) if due is not None]
    return soonest(*(left(due, now) for due in dues if due > now))


def _after_start(job: RayJob, seconds: int | None) -> datetime | None:
    start = moment(job.status.start_time)
    return None if start is None or seconds is None else start + timedelta(seconds=seconds)
