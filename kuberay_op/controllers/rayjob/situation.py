"""All that a decision about a RayJob rests on, as read at the beginning of a pass; and what it comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kuberay_op.api import labels
from kuberay_op.api.names import is_ours
from kuberay_op.api.predicates import GateQuery
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.rayjob import RayJob
from kuberay_op.api.validation.rayjob import HTTP_MODE, INTERACTIVE_MODE, K8S_JOB_MODE, SIDECAR_MODE
from kuberay_op.config import Config
from kuberay_op.plan.actions import Manifest
from kuberay_op.ray.dashboard import JobInfo

LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)

MODES: Final = (K8S_JOB_MODE, HTTP_MODE, INTERACTIVE_MODE, SIDECAR_MODE)


@dataclass(frozen=True, slots=True)
class Answer:
    """What asking Ray has brought: the last good answer, and why the latest question got none."""

    #: The last good answer; None before there was one.
    info: JobInfo | None = None
    error: Exception | None = None
    #: When Ray was last asked, and since when the result has been the same.
    at: datetime = LONG_AGO
    since: datetime = LONG_AGO

    @property
    def now(self) -> JobInfo | None:
        """What Ray says about the job now; None when it did not answer the last time."""
        return self.info if self.error is None else None


@dataclass(frozen=True, slots=True)
class RaySays:
    """What is known from Ray itself."""

    #: About the job; None before it was asked.
    job: Answer | None = None
    #: Whether Ray has taken note that the job is to stop; and why it could not be told yet.
    stopped: bool = False
    stop_error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """What the configuration says about jobs."""

    transition_grace: timedelta
    check_timeout: timedelta
    delete_self: bool
    sidecar_restarts: bool
    rules: bool
    domain: str

    @classmethod
    def of(cls, config: Config, gates: GateQuery) -> Settings:
        """From the configuration."""
        return cls(
            transition_grace=timedelta(seconds=config.rayjob_transition_grace_seconds),
            check_timeout=timedelta(seconds=config.rayjob_status_check_timeout_seconds),
            delete_self=config.delete_rayjob_after_job_finishes,
            sidecar_restarts=gates("SidecarSubmitterRestart"),
            rules=gates("RayJobDeletionPolicy"),
            domain=config.cluster_domain,
        )


@dataclass(frozen=True, slots=True)
class Situation:
    """A RayJob and what is around it."""

    job: RayJob
    now: datetime
    settings: Settings
    #: The cluster that the status names, if it is there and may be used.
    cluster: RayCluster | None = None
    #: A cluster of the name exists and is neither ours nor selected.
    cluster_taken: bool = False
    #: The submitter Job, if it is there and ours.
    submitter: Manifest | None = None
    #: Head Pods of the cluster.
    heads: Sequence[Manifest] = ()
    #: The Service to the cluster's head.
    head_service: Manifest | None = None
    ray: RaySays = RaySays()

    @property
    def mode(self) -> str:
        """How the job gets to Ray."""
        return self.job.spec.submission_mode or K8S_JOB_MODE

    @property
    def state(self) -> str:
        """The state that the status shows."""
        return self.job.status.job_deployment_status

    @property
    def selects(self) -> bool:
        """Whether the job runs on a cluster that is not its own."""
        return bool(self.job.spec.cluster_selector)


@dataclass(frozen=True, slots=True)
class Step:
    """What one pass over a job comes to."""

    #: The jobDeploymentStatus after it.
    state: str
    #: Other fields of the status that change, by their names in JSON; None takes one out.
    fields: Mapping[str, Any] = field(default_factory=dict)
    #: Which children there must be.
    cluster: bool = False
    service: bool = False
    submitter: bool = False
    #: What must go, each with the reason.
    deletes: Sequence[tuple[Manifest, str]] = ()
    #: Whether the workers of the cluster are to be suspended.
    suspend_workers: bool = False
    #: Whether the step is taken only if all children could be made.
    after_acting: bool = False
    #: Seconds until somebody must look again although nothing happens.
    seconds: float | None = None
    #: What keeps the job from going on and only a person can mend.
    problem: str = ""


def cluster_key(job: RayJob) -> str:
    """The name of the cluster that the job is to run on; empty before one was chosen."""
    return job.status.ray_cluster_name or job.spec.cluster_selector.get(labels.CLUSTER, "")


def moment(text: str) -> datetime | None:
    """A time of a status; None when there is none, or none that can be read."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def timestamp(at: datetime | None) -> str | None:
    """A time as the API writes it: in whole seconds, UTC."""
    return None if at is None else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def left(until: datetime, now: datetime) -> float:
    """Seconds until then; at least a little, since times of a status are whole seconds."""
    return max(0.05, (until - now).total_seconds())


def soonest(*seconds: float | None) -> float | None:
    """The shortest of these times; None when there is none."""
    return min((each for each in seconds if each is not None), default=None)


def going(obj: Manifest) -> bool:
    """Whether an object is on its way out."""
    return "deletionTimestamp" in obj["metadata"]


def mine(job: RayJob, obj: Manifest) -> bool:
    """Whether an object is controlled by the job."""
    return is_ours(dict(obj), job.metadata.uid)
