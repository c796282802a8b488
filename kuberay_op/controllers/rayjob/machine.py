"""The states of a RayJob, and how it gets from one to the next. Pure.

::

    New ──► Initializing ──► Running ──► Complete
     ▲       │   ▲  (Waiting)   │  └───► Failed
     │       │   │              │           │ attempts left
     │       └───┼── suspend ───┤           ▼
     │           │              ▼       Retrying
     │       Suspended ◄── Suspending       │
     └───────────┴──────────────────────────┘

A pass takes one step. Names and ids are written down before anything is made under them, and deleting begins
only after the state that asks for it was written: whenever the operator dies, the next one knows what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from kuberay_op.api import conditions, names, ports
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.validation.rayjob import HTTP_MODE, INTERACTIVE_MODE, K8S_JOB_MODE, SIDECAR_MODE
from kuberay_op.build.submitter import check_metadata, entrypoint_resources
from kuberay_op.controllers.rayjob import cleanup, running
from kuberay_op.controllers.rayjob.deadlines import active_deadline, pre_running_deadline, until
from kuberay_op.controllers.rayjob.situation import (
    MODES,
    Situation,
    Step,
    cluster_key,
    going,
    left,
    moment,
    soonest,
)
from kuberay_op.controllers.rayjob.submitter import container_status
from kuberay_op.errors import Invalid
from kuberay_op.kube.resource import key_of
from kuberay_op.plan.actions import Manifest
from kuberay_op.ray.urls import service_address

#: What is known of an attempt, and is forgotten before the next.
ATTEMPT: Final = (
    "jobId",
    "rayClusterName",
    "dashboardURL",
    "jobStatus",
    "reason",
    "message",
    "rayJobInfo",
    "rayClusterStatus",
    "jobStatusCheckFailureStartTime",
    "retryTime",
)


#: Seconds until a Service that should be there is looked for again: it is not the job's, so nobody tells.
AGAIN: Final = 3.0


def next_step(at: Situation, rng: Random) -> Step:
    """The step to take now."""
    if at.state == conditions.DEPLOYMENT_INITIALIZING:
        return initializing(at, rng)
    # Else New; one that was not valid and is now; and whatever somebody else may have written.
    return _STEPS[at.state](at) if at.state in _STEPS else new(at, rng)


def new(at: Situation, rng: Random) -> Step:
    """Choose the names. What is there already stays: it may be in use."""
    problem = unusable(at)
    if problem:
        return not_valid(problem)
    job, fields = at.job, dict[str, Any](jobStatus=None, reason=None, message=None)
    if not job.status.job_id and at.mode != INTERACTIVE_MODE:
        fields["jobId"] = job.spec.job_id or names.with_suffix(job.name, rng)
    if not job.status.ray_cluster_name:
        fields["rayClusterName"] = cluster_key(job) or names.with_suffix(job.name, rng)
    if at.state != conditions.DEPLOYMENT_VALIDATION_FAILED or not job.status.start_time:
        fields["startTime"] = at.now
    return Step(conditions.DEPLOYMENT_INITIALIZING, fields)


def not_valid(problem: str) -> Step:
    """The job cannot be run as it is written."""
    return Step(
        conditions.DEPLOYMENT_VALIDATION_FAILED,
        {"reason": conditions.VALIDATION_FAILED, "message": problem},
    )


def unusable(at: Situation) -> str:
    """What the rules of the API allow and nobody can run; empty when nothing."""
    if at.mode not in MODES:
        return f"spec.submissionMode: {at.mode!r} is unknown; use one of {', '.join(MODES)}"
    if at.mode == INTERACTIVE_MODE:
        return ""
    try:
        check_metadata(at.job)
        if at.mode == HTTP_MODE:
            entrypoint_resources(at.job)
    except Invalid as error:
        return str(error)
    return ""


def initializing(at: Situation, rng: Random) -> Step:
    """Get the cluster up, and see that the job gets to it."""
    ended = _stopped_early(at)
    if ended is not None:
        return ended
    if at.cluster_taken:
        return Step(at.state, {"rayClusterName": names.with_suffix(at.job.name, rng)}, seconds=0.0)
    seconds = soonest(until(active_deadline(at), at.now), until(pre_running_deadline(at), at.now))
    cluster = at.cluster
    if cluster is None:
        problem = running.missing_cluster(at)
        said = {"message": problem or None}
        return Step(at.state, said, cluster=not at.selects, seconds=seconds, problem=problem)
    return _on_cluster(at, cluster, seconds)


def _on_cluster(at: Situation, cluster: RayCluster, seconds: float | None) -> Step:
    """There is a cluster: wait until it is up, and go on."""
    fields: dict[str, Any] = {"rayClusterStatus": cluster.status.raw, "message": None}
    if going(cluster.raw) or not _up(at):
        return Step(at.state, fields, seconds=seconds)  # when it is gone, one of the same name follows
    address = at.job.status.dashboard_url or _dashboard(at)
    if not address:
        fields["message"] = f"no Service leads to the dashboard of the RayCluster {cluster.name}"
        return Step(at.state, fields, seconds=soonest(seconds, AGAIN))
    fields["dashboardURL"] = address
    if at.mode == INTERACTIVE_MODE:
        return Step(conditions.DEPLOYMENT_WAITING, fields)
    submitter = at.mode == K8S_JOB_MODE
    return Step(
        conditions.DEPLOYMENT_RUNNING, fields, submitter=submitter, after_acting=submitter, seconds=seconds
    )


def waiting(at: Situation) -> Step:
    """Wait for the user to submit a job and say which."""
    ended = _stopped_early(at)
    if ended is not None:
        return ended
    if at.job.spec.job_id:
        return Step(conditions.DEPLOYMENT_RUNNING, {"jobId": at.job.spec.job_id})
    fields = {} if at.cluster is None else {"rayClusterStatus": at.cluster.status.raw}
    seconds = soonest(until(active_deadline(at), at.now), until(pre_running_deadline(at), at.now))
    return Step(at.state, fields, seconds=seconds)


def tearing_down(at: Situation) -> Step:
    """Remove what the attempt had. Once begun this is finished, whatever the spec says meanwhile."""
    why = "the job is suspended" if at.state == conditions.DEPLOYMENT_SUSPENDING else "the job is tried again"
    if parts := _parts(at):
        return Step(at.state, deletes=[(part, why) for part in parts if not going(part)])
    if at.state == conditions.DEPLOYMENT_SUSPENDING:
        return Step(conditions.DEPLOYMENT_SUSPENDED, dict.fromkeys(ATTEMPT))
    again = moment(at.job.status.retry_time)
    if again is not None and again > at.now:
        return Step(at.state, seconds=left(again, at.now))
    return Step(conditions.DEPLOYMENT_NEW, dict.fromkeys(ATTEMPT))


def nothing_left(at: Situation) -> bool:
    """Whether an attempt that is being removed has nothing left."""
    return at.state in (conditions.DEPLOYMENT_SUSPENDING, conditions.DEPLOYMENT_RETRYING) and not _parts(at)


def suspended(at: Situation) -> Step:
    """Stay so until the user wants the job to run."""
    if at.job.spec.suspend:
        return Step(at.state)
    return Step(conditions.DEPLOYMENT_NEW, {"jobStatus": None})


def _parts(at: Situation) -> list[Manifest]:
    """What an attempt has in the cluster. A Job beside another mode is not its submitter."""
    parts: list[Manifest] = []
    if at.cluster is not None and not at.selects:
        parts.append(at.cluster.raw)
    if at.submitter is not None and at.mode in (K8S_JOB_MODE, INTERACTIVE_MODE):
        parts.append(at.submitter)
    return parts


def _stopped_early(at: Situation) -> Step | None:
    """Before the job runs: suspended, or out of time."""
    if at.job.spec.suspend:
        return Step(conditions.DEPLOYMENT_SUSPENDING)
    return running.overdue(at) or _pre_running_overdue(at)


def _pre_running_overdue(at: Situation) -> Step | None:
    due = pre_running_deadline(at)
    if due is None or at.now < due:
        return None
    text = (
        f"the job did not run within preRunningDeadlineSeconds ({at.job.spec.pre_running_deadline_seconds} s)"
    )
    said = at.job.status.message
    return running.failed(conditions.PRE_RUNNING_DEADLINE_EXCEEDED, f"{text}: {said}" if said else text)


def _up(at: Situation) -> bool:
    """Whether the cluster takes jobs, or has taken this one."""
    ready = at.cluster is not None and at.cluster.status.state == conditions.STATE_READY
    return bool(at.job.status.dashboard_url) or ready or _submitted(at)


def _dashboard(at: Situation) -> str:
    """Where the dashboard is; empty when no Service leads there, or its port has another name."""
    if at.head_service is None:
        return ""
    for port in (at.head_service.get("spec") or {}).get("ports") or ():
        if port.get("name") == ports.DASHBOARD:
            key = key_of(at.head_service)
            return service_address(key.name, key.namespace, int(port["port"]), domain=at.settings.domain)
    return ""


def _submitted(at: Situation) -> bool:
    """In SidecarMode the job may be over before the last worker is up, and then the head is never ready."""
    if at.mode != SIDECAR_MODE or not at.heads:
        return False
    status = container_status(at.heads[0]) or {}
    return bool((status.get("state") or {}).get("terminated"))


_STEPS: Final[Mapping[str, Callable[[Situation], Step]]] = {
    conditions.DEPLOYMENT_WAITING: waiting,
    conditions.DEPLOYMENT_RUNNING: running.step,
    conditions.DEPLOYMENT_SUSPENDING: tearing_down,
    conditions.DEPLOYMENT_RETRYING: tearing_down,
    conditions.DEPLOYMENT_SUSPENDED: suspended,
    conditions.DEPLOYMENT_COMPLETE: cleanup.step,
    conditions.DEPLOYMENT_FAILED: cleanup.step,
}
