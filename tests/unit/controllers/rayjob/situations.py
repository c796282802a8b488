"""Situations of RayJobs for tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.rayjob import RayJob
from kuberay_op.config import Config
from kuberay_op.controllers.rayjob.machine import next_step
from kuberay_op.controllers.rayjob.situation import Answer, RaySays, Settings, Situation, Step, timestamp
from kuberay_op.controllers.rayjob.status import status_of
from kuberay_op.ray.dashboard import JobInfo
from kuberay_op.testing import make

NOW: Final = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
UID: Final = "uid-1"
DASHBOARD: Final = "c-head-svc.default.svc.cluster.local:8265"

HEAD_SERVICE: Final[dict[str, Any]] = {
    "metadata": {"name": "c-head-svc", "namespace": "default"},
    "spec": {"ports": [{"name": "metrics", "port": 8080}, {"name": "dashboard", "port": 8265}]},
}


def ago(seconds: float) -> datetime:
    """A moment before now."""
    return NOW - timedelta(seconds=seconds)


def at(seconds: float) -> str:
    """A moment before now, as a status has it."""
    return str(timestamp(ago(seconds)))


def job(
    state: str = "", *parts: make.Part, mode: str = "HTTPMode", status: dict[str, Any] | None = None
) -> RayJob:
    """A RayJob in a state; from Initializing on it has names, and from Running on an address."""
    known: dict[str, Any] = {}
    if state not in ("", "ValidationFailed", "Suspended"):
        known = {"jobId": "j-abcde", "rayClusterName": "c", "startTime": at(60)}
    if state not in ("", "ValidationFailed", "Suspended", "Initializing"):
        known["dashboardURL"] = DASHBOARD
    if state:
        known["jobDeploymentStatus"] = state
    made = make.rayjob(
        "j",
        make.stored(uid=UID),
        make.spec(submissionMode=mode),
        make.status(**{**known, **(status or {})}),
        *parts,
    )
    return RayJob(made)


def cluster(state: str = "ready", *parts: make.Part, owned: bool = True) -> RayCluster:
    """The cluster of a job."""
    status = make.status(state=state, head={"serviceName": "c-head-svc"})
    owner = [make.owned_by(make.rayjob("j", make.stored(uid=UID)))] if owned else []
    return RayCluster(make.raycluster("c", make.stored(uid="uid-c"), status, *owner, *parts))


def info(status: str = "RUNNING", message: str = "", *, end: datetime | None = None) -> JobInfo:
    """What Ray says about a job."""
    return JobInfo(status, message, "j-abcde", start=ago(50), end=end)


def says(
    found: JobInfo | None = None, error: Exception | None = None, *, age: float = 0, since: float = 0
) -> RaySays:
    """An answer of Ray that is so old."""
    return RaySays(Answer(found, error, ago(age), ago(since)))


def submitter(how: str = "", seconds: float = 0) -> dict[str, Any]:
    """A submitter Job that ended so many seconds ago, or runs."""
    conditions = []
    if how:
        conditions = [{"type": how, "status": "True", "lastTransitionTime": at(seconds), "reason": "R"}]
    return {"metadata": {"name": "j", "uid": "uid-j"}, "kind": "Job", "status": {"conditions": conditions}}


def situation(of: RayJob, found: RayCluster | None = None, **fields: Any) -> Situation:
    """A job and what is around it."""
    config = fields.pop("config", Config())
    settings = Settings.of(config, config.gates.enabled)
    service = {"head_service": HEAD_SERVICE} if found is not None else {}
    return Situation(of, NOW, settings, cluster=found, **{**service, **fields})


def step(of: Situation) -> Step:
    """The step of a situation; names are the same every time."""
    return next_step(of, Random(1))  # noqa: S311 (seeded on purpose)


def status(of: Situation) -> dict[str, Any]:
    """The status after the step."""
    return status_of(of.job, step(of), NOW)
