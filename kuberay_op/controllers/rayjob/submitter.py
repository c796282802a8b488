"""What has become of the submitter: a Job of Kubernetes, or a container beside the head. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from kuberay_op.api import conditions
from kuberay_op.api.names import SUBMITTER_CONTAINER
from kuberay_op.api.validation.rayjob import K8S_JOB_MODE, SIDECAR_MODE
from kuberay_op.build.submitter import BACKOFF_LIMIT
from kuberay_op.controllers.rayjob.situation import Situation, moment
from kuberay_op.plan.actions import Manifest

_ENDS: Final = ("Complete", "Failed")


@dataclass(frozen=True, slots=True)
class Submitter:
    """How the submitter is doing."""

    #: When it ended, one way or another.
    finished: datetime | None = None
    #: Why it gave up; empty while it has not.
    failure: str = ""
    #: It should be there and is not.
    missing: bool = False


def look(at: Situation) -> Submitter | None:
    """The submitter of the job; None in modes that have none."""
    if at.mode == K8S_JOB_MODE:
        return Submitter(missing=True) if at.submitter is None else of_job(at.submitter)
    if at.mode == SIDECAR_MODE:
        status = container_status(at.heads[0]) if at.heads else None
        return Submitter(missing=True) if status is None else of_container(status, at)
    return None


def of_job(job: Manifest) -> Submitter:
    """By the conditions of a Job."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") in _ENDS and condition.get("status") == conditions.TRUE:
            finished = moment(str(condition.get("lastTransitionTime") or ""))
            if condition["type"] == "Complete":
                return Submitter(finished)
            why = ": ".join(str(condition[key]) for key in ("reason", "message") if condition.get(key))
            return Submitter(finished, f"the submitter Job {job['metadata']['name']} failed: {why}")
    return Submitter()


def of_container(status: Mapping[str, Any], at: Situation) -> Submitter:
    """By the status of the container in the head Pod."""
    state = status.get("state") or {}
    over = state.get("terminated")
    finished = moment(str((over or {}).get("finishedAt") or ""))
    if over and over.get("exitCode") == 0:
        return Submitter(finished)
    if not at.settings.sidecar_restarts:
        return Submitter(finished, _exit(over)) if over else Submitter()
    # Kubernetes restarts it for ever; so many restarts as a submitter Job would have are enough. The last
    # of them may run to its end.
    before = (status.get("lastState") or {}).get("terminated")
    spent = int(status.get("restartCount") or 0) >= BACKOFF_LIMIT
    if before and spent and "running" not in state:
        return Submitter(finished or moment(str(before.get("finishedAt") or "")), _exit(over or before))
    return Submitter()


def container_status(pod: Manifest) -> Mapping[str, Any] | None:
    """The status of the submitter container of a head Pod; None when the Pod has no such container."""
    status = pod.get("status") or {}
    for each in status.get("containerStatuses") or ():
        if each.get("name") == SUBMITTER_CONTAINER:
            return dict(each)
    declared = (pod.get("spec") or {}).get("containers") or ()
    return {} if any(each.get("name") == SUBMITTER_CONTAINER for each in declared) else None


def ended(children: Iterable[Manifest], name: str) -> datetime | None:
    """When a submitter among these objects ended: the Job of that name, or the container in a head Pod."""
    for child in children:
        if child["kind"] == "Job" and child["metadata"]["name"] == name:
            return of_job(child).finished
        if child["kind"] == "Pod":
            state = (container_status(child) or {}).get("state") or {}
            return moment(str((state.get("terminated") or {}).get("finishedAt") or ""))
    return None


def _exit(state: Mapping[str, Any]) -> str:
    why = f" ({state['reason']})" if state.get("reason") else ""
    return f"the container {SUBMITTER_CONTAINER} ended with exit code {state.get('exitCode')}{why}"
