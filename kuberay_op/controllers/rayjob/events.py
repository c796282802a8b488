"""What to tell users about a RayJob, as Kubernetes Events. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kuberay_op.api import conditions, reasons
from kuberay_op.controllers.notes import Note
from kuberay_op.controllers.raycluster.failures import failures_of
from kuberay_op.plan.actions import Action, Create, Delete, Manifest, Outcome


@dataclass(frozen=True, slots=True)
class _Words:
    """How events about a kind of child are called."""

    noun: str
    created: str
    not_created: str
    deleted: str = ""
    not_deleted: str = ""
    updated: str = ""
    not_updated: str = ""


_KINDS: Final = {
    "RayCluster": _Words(
        "RayCluster", reasons.CREATED_RAYCLUSTER, reasons.FAILED_TO_CREATE_RAYCLUSTER,
        reasons.DELETED_RAYCLUSTER, reasons.FAILED_TO_DELETE_RAYCLUSTER,
        reasons.UPDATED_RAYCLUSTER, reasons.FAILED_TO_UPDATE_RAYCLUSTER,
    ),
    "Job": _Words(
        "Kubernetes Job", reasons.CREATED_RAYJOB_SUBMITTER, reasons.FAILED_TO_CREATE_RAYJOB_SUBMITTER,
        reasons.DELETED_RAYJOB_SUBMITTER, reasons.FAILED_TO_DELETE_RAYJOB_SUBMITTER,
    ),
    "Service": _Words(
        "Service", reasons.CREATED_SERVICE, reasons.FAILED_TO_CREATE_SERVICE,
        updated=reasons.UPDATED_SERVICE, not_updated=reasons.FAILED_TO_UPDATE_SERVICE,
    ),
    "RayJob": _Words("RayJob", "", "", reasons.DELETED_RAYJOB, reasons.FAILED_TO_DELETE_RAYJOB),
}  # fmt: skip

#: Reasons of the events that tell a state.
_STATES: Final = {
    conditions.DEPLOYMENT_COMPLETE: reasons.COMPLETED_RAYJOB,
    conditions.DEPLOYMENT_FAILED: reasons.FAILED_RAYJOB,
    conditions.DEPLOYMENT_RETRYING: reasons.RETRYING_RAYJOB,
    conditions.DEPLOYMENT_SUSPENDING: reasons.SUSPENDED_RAYJOB,
}


def child_notes(outcomes: Sequence[Outcome]) -> Iterator[Note]:
    """What was done to children, and what could not be."""
    for outcome in outcomes:
        words = _KINDS.get(str(outcome.action.obj.get("kind")))
        if outcome.error is None and outcome.changed and words is not None:
            verb, reason = _done(outcome.action, words)
            if reason:
                text = f"{verb}d {words.noun} {_named(outcome.action.obj)}"
                why = f"; {outcome.action.reason}" if isinstance(outcome.action, Delete) else ""
                yield Note("Normal", reason, verb, text + why)
    for failure in failures_of(outcomes):
        kind = str(failure.action.obj.get("kind"))
        verb, reason = _failed(failure.action, _KINDS.get(kind) or _Words(kind, "", ""))
        new = "new " if isinstance(failure.action, Create) else ""
        noun = _KINDS[kind].noun if kind in _KINDS else kind
        text = f"Failed to {verb.lower()} {new}{noun} {_named(failure.action.obj)}: {failure.cause}"
        yield Note("Warning", reason or f"FailedTo{verb}{kind}", verb, text)


def state_notes(before: Manifest, status: Mapping[str, Any]) -> Iterator[Note]:
    """That a job has come to another state, if people would want to know."""
    old = before.get("status") or {}
    was, is_ = old.get("jobDeploymentStatus") or "", status.get("jobDeploymentStatus") or ""
    if was == is_:
        return
    if was == conditions.DEPLOYMENT_SUSPENDED:
        yield Note("Normal", reasons.RESUMED_RAYJOB, reasons.ACTION_RECONCILE, "the job starts again")
        return
    reason = _STATES.get(is_)
    if reason is None:
        return
    text = _text(is_, {**old, **status})
    bad = is_ not in (conditions.DEPLOYMENT_COMPLETE, conditions.DEPLOYMENT_SUSPENDING)
    action = reasons.ACTION_SUSPEND if is_ == conditions.DEPLOYMENT_SUSPENDING else reasons.ACTION_RECONCILE
    yield Note("Warning" if bad else "Normal", reason, action, text)


def _text(state: str, status: Mapping[str, Any]) -> str:
    message = status.get("message") or ""
    why = ": ".join(part for part in (status.get("reason") or "", message) if part)
    match state:
        case conditions.DEPLOYMENT_COMPLETE:
            job_id, how = status.get("jobId"), status.get("jobStatus")
            return f"the job {job_id} ended as {how}{f': {message}' if message else ''}"
        case conditions.DEPLOYMENT_RETRYING:
            return (
                f"attempt {status.get('failed')} failed ({why}); the next begins at {status.get('retryTime')}"
            )
        case conditions.DEPLOYMENT_SUSPENDING:
            return "spec.suspend is true: the cluster of the job is deleted"
    return why


def _done(action: Action, words: _Words) -> tuple[str, str]:
    match action:
        case Create():
            return reasons.ACTION_CREATE, words.created
        case Delete():
            return reasons.ACTION_DELETE, words.deleted
    return reasons.ACTION_UPDATE, words.updated


def _failed(action: Action, words: _Words) -> tuple[str, str]:
    match action:
        case Create():
            return reasons.ACTION_CREATE, words.not_created
        case Delete():
            return reasons.ACTION_DELETE, words.not_deleted
    return reasons.ACTION_UPDATE, words.not_updated


def _named(obj: Manifest) -> str:
    metadata = obj.get("metadata") or {}
    return f"{metadata.get('namespace')}/{metadata.get('name')}"
