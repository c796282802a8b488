"""The RayJobs that a RayCronJob has made: which still run, and which have become history. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kuberay_op.api.annotations import CRONJOB_SCHEDULED_AT
from kuberay_op.api.conditions import (
    DEPLOYMENT_COMPLETE,
    DEPLOYMENT_VALIDATION_FAILED,
    JOB_SUCCEEDED,
    TERMINAL_DEPLOYMENT_STATUSES,
)
from kuberay_op.api.raycronjob import RayCronJobSpec
from kuberay_op.api.rayjob import RayJob
from kuberay_op.frozen import FrozenDict
from kuberay_op.plan.actions import Manifest


@dataclass(frozen=True, slots=True)
class Runs:
    """RayJobs by how far they are, the oldest first."""

    active: tuple[RayJob, ...] = ()
    succeeded: tuple[RayJob, ...] = ()
    #: Also those that were stopped, and those whose template is not valid.
    failed: tuple[RayJob, ...] = ()

    @classmethod
    def of(cls, objects: Iterable[Manifest]) -> Runs:
        """Sort the RayJobs among these objects."""
        jobs = [RayJob(dict(obj)) for obj in objects if obj.get("kind") == RayJob.KIND]
        jobs.sort(key=_age)
        return cls(
            active=tuple(job for job in jobs if not finished(job)),
            succeeded=tuple(job for job in jobs if succeeded(job)),
            failed=tuple(job for job in jobs if finished(job) and not succeeded(job)),
        )

    def beyond(self, spec: RayCronJobSpec) -> tuple[RayJob, ...]:
        """Finished jobs that the limits of the history do not leave room for."""
        return (
            *_oldest(self.succeeded, spec.successful_jobs_history_limit),
            *_oldest(self.failed, spec.failed_jobs_history_limit),
        )

    def last_success(self) -> str:
        """When the latest successful job ended; "" when there is none."""
        return max((job.status.end_time for job in self.succeeded), default="")


def finished(job: RayJob) -> bool:
    """Whether nothing will come of the job any more, unless somebody edits it."""
    ends = (*TERMINAL_DEPLOYMENT_STATUSES, DEPLOYMENT_VALIDATION_FAILED)
    return job.status.job_deployment_status in ends


def succeeded(job: RayJob) -> bool:
    """Whether the job has done what it should."""
    status = job.status
    return status.job_deployment_status == DEPLOYMENT_COMPLETE and status.job_status == JOB_SUCCEEDED


def job_news(old: FrozenDict, new: FrozenDict) -> bool:
    """Whether a RayJob has changed in what matters to its RayCronJob; most of its status does not."""
    before, after = RayJob(dict(old)), RayJob(dict(new))
    return _looks(before) != _looks(after)


def _looks(job: RayJob) -> tuple[bool, bool, bool, str]:
    going = bool(job.metadata.deletion_timestamp)
    return finished(job), succeeded(job), going, job.status.end_time


def _oldest(jobs: Sequence[RayJob], limit: int | None) -> Sequence[RayJob]:
    if limit is None:
        return ()
    excess = jobs[: max(0, len(jobs) - limit)]
    return [job for job in excess if not job.metadata.deletion_timestamp]


def _age(job: RayJob) -> tuple[str, str]:
    made_for = job.metadata.annotations.get(CRONJOB_SCHEDULED_AT)
    return made_for or job.metadata.creation_timestamp, job.name
