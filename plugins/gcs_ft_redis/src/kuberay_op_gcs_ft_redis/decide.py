"""What to do next for a cluster that is being deleted. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from kuberay_op.api import annotations as notes
from kuberay_op.api import labels, reasons
from kuberay_op.api.names import redis_cleanup_job
from kuberay_op.api.predicates import gcs_ft_embedded, gcs_ft_enabled, job_result
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.config import Config
from kuberay_op.hooks import Done, Manifest, Scope

#: Seconds before the deadline at which the clean-up begins although the head has not gone.
RESERVE: Final = 60.0

#: Reason of the event about keys that stay in Redis.
FAILED_EVENT: Final = "RedisCleanupFailed"


class Outcome(StrEnum):
    """How a clean-up ended, as the metric counts it."""

    CLEARED = "cleared"
    FAILED = "failed"
    GAVE_UP = "gave-up"
    NOT_NEEDED = "not-needed"


@dataclass(frozen=True, slots=True)
class End:
    """The clean-up is over."""

    outcome: Outcome
    reason: str

    def verdict(self) -> Done:
        """What the core is told: the event is a warning when keys may be left."""
        match self.outcome:
            case Outcome.GAVE_UP:
                return Done(self.reason, event=reasons.FORCE_DELETED_STUCK_CLUSTER, warning=True)
            case Outcome.FAILED:
                return Done(self.reason, event=FAILED_EVENT, warning=True)
        return Done(self.reason)


def spared(cluster: RayCluster, config: Config) -> str:
    """Why nothing has to be cleaned up; empty when something has."""
    if not config.enable_gcs_ft_redis_cleanup:
        return "the clean-up of Redis is switched off (ENABLE_GCS_FT_REDIS_CLEANUP)"
    if not gcs_ft_enabled(cluster.spec, cluster.metadata.annotations):
        return "the cluster is not fault-tolerant"
    return "the cluster keeps its state on a volume, not in Redis" if gcs_ft_embedded(cluster.spec) else ""


def deadline_of(cluster: RayCluster, default: float) -> float:
    """Seconds that a deletion may take: those of the cluster's annotation, if it is a number of them."""
    text = cluster.metadata.annotations.get(notes.GCS_FT_DELETION_TIMEOUT, "")
    seconds = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    return float(seconds or default)


def seconds_since_deletion(scope: Scope) -> float:
    """How long the owner has been on its way out."""
    stamp = scope.owner["metadata"].get("deletionTimestamp")
    return (scope.now - datetime.fromisoformat(stamp)).total_seconds() if stamp else 0.0


@dataclass(frozen=True, slots=True)
class Time:
    """Seconds since the deletion, and how many there may be."""

    waited: float
    deadline: float

    @property
    def left(self) -> float:
        """Seconds until the cluster goes, whatever became of its keys."""
        return self.deadline - self.waited

    @property
    def for_head(self) -> float:
        """Seconds until the clean-up begins, with the head gone or not: it must have some time, too."""
        return max(self.deadline - RESERVE, self.deadline / 2) - self.waited


def heads(scope: Scope) -> list[str]:
    """Names of the head Pods that are still there."""
    return [
        pod["metadata"]["name"]
        for pod in scope.children.get("Pod", ())
        if (pod["metadata"].get("labels") or {}).get(labels.NODE_TYPE) == labels.HEAD
    ]


def job_of(scope: Scope) -> Manifest | None:
    """The Job that cleans up, if it was made."""
    name = redis_cleanup_job(scope.name)
    return next((job for job in scope.children.get("Job", ()) if job["metadata"]["name"] == name), None)


def end_of_job(job: Manifest) -> End | None:
    """How the Job ended; None while it has not."""
    name = job["metadata"]["name"]
    result = job_result(dict(job))
    if result == "Complete":
        return End(Outcome.CLEARED, f"Job {name} has removed the keys from Redis")
    if result == "Failed":
        return End(Outcome.FAILED, f"Job {name} failed{_why(job)}; keys may be left in Redis")
    return None


def gave_up(job: Manifest, waited: float, trouble: str) -> End:
    """The deadline has passed."""
    namespace = job["metadata"]["annotations"].get(notes.EXTERNAL_STORAGE_NAMESPACE, "")
    cause = f"; {trouble}" if trouble else ""
    text = (
        f"gave up after {waited:.0f} s{cause}; keys of storage namespace {namespace!r} may be left in Redis"
    )
    return End(Outcome.GAVE_UP, text)


def _why(job: Manifest) -> str:
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Failed" and condition.get("message"):
            return f": {condition['message']}"
    return ""
