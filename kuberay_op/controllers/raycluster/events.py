"""What to tell users of what a pass has done, as Kubernetes Events. Pure.

One event for each thing that happened to one group in one pass, however many Pods it concerned. Nothing that
was done already is told again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kuberay_op.api import labels, reasons
from kuberay_op.api.predicates import GateQuery
from kuberay_op.api.validation import warnings
from kuberay_op.build.volumes import AUTOSCALER
from kuberay_op.controllers.notes import Note
from kuberay_op.controllers.raycluster.failures import NO_ACCOUNT, Failure, failures_of, node_type
from kuberay_op.controllers.raycluster.pods import ALL_PODS
from kuberay_op.plan.actions import Action, Create, Delete, Manifest, Outcome, Update

#: The rule about groups whose Pods restart.
V1_RESTART: Final = "warning.v1-restart"

#: How many Pods one event names.
NAMED: Final = 10


@dataclass(frozen=True, slots=True)
class _Words:
    """How events about a kind of object are called."""

    noun: str
    created: str
    not_created: str
    updated: str = ""
    not_updated: str = ""


_KINDS: Final = {
    "Service": _Words("service", reasons.CREATED_SERVICE, reasons.FAILED_TO_CREATE_SERVICE,
                      reasons.UPDATED_SERVICE, reasons.FAILED_TO_UPDATE_SERVICE),
    "Ingress": _Words("ingress", reasons.CREATED_INGRESS, reasons.FAILED_TO_CREATE_INGRESS,
                      reasons.UPDATED_INGRESS, reasons.FAILED_TO_UPDATE_INGRESS),
    "Route": _Words("route", reasons.CREATED_ROUTE, reasons.FAILED_TO_CREATE_ROUTE),
    "PersistentVolumeClaim": _Words("PVC", reasons.CREATED_PVC, reasons.FAILED_TO_CREATE_PVC,
                                    not_updated=reasons.FAILED_TO_CREATE_PVC),
    "ServiceAccount": _Words("service account", reasons.CREATED_SERVICE_ACCOUNT,
                             reasons.FAILED_TO_CREATE_SERVICE_ACCOUNT),
    "Role": _Words("role", reasons.CREATED_ROLE, reasons.FAILED_TO_CREATE_ROLE),
    "RoleBinding": _Words("role binding", reasons.CREATED_ROLE_BINDING,
                          reasons.FAILED_TO_CREATE_ROLE_BINDING),
}  # fmt: skip


def notes(owner: Manifest, outcomes: Sequence[Outcome]) -> Iterator[Note]:
    """The events of a pass: what was done, then what was not."""
    done = [outcome for outcome in outcomes if outcome.error is None and outcome.changed]
    pods = [outcome for outcome in done if outcome.action.obj.get("kind") == "Pod"]
    for outcome in done:
        if outcome.action.obj.get("kind") != "Pod":
            yield from _object_done(outcome)
    yield from _pods_deleted(pods)
    yield from _pods_created(pods)
    for failure in failures_of(outcomes):
        yield from _failed(owner, failure)


# --- Pods


def _pods_created(outcomes: Iterable[Outcome]) -> Iterator[Note]:
    created: dict[tuple[str, str], list[Manifest]] = {}
    for outcome in outcomes:
        if isinstance(outcome.action, Create):
            created.setdefault(_group(outcome.action.obj), []).append(outcome.obj)
    for (role, group), pods in created.items():
        reason = reasons.CREATED_HEAD_POD if role == labels.HEAD else reasons.CREATED_WORKER_POD
        text = f"Created {_pods(role, group, pods)}"
        yield Note("Normal", reason, reasons.ACTION_CREATE, text)


def _pods_deleted(outcomes: Iterable[Outcome]) -> Iterator[Note]:
    deleted: dict[tuple[str, str, str, str], list[Manifest]] = {}
    for outcome in outcomes:
        action = outcome.action
        if isinstance(action, Delete):
            role, group = ("", "") if action.lane in ALL_PODS else _group(action.obj)
            key = (_deleted_reason(action), role, group, action.reason)
            deleted.setdefault(key, []).append(action.obj)
    for (reason, role, group, why), pods in deleted.items():
        yield Note("Normal", reason, reasons.ACTION_DELETE, f"Deleted {_pods(role, group, pods)}; {why}")


def _deleted_reason(action: Delete) -> str:
    if action.lane in ALL_PODS:
        return reasons.DELETED_POD
    is_head = node_type(action.obj) == labels.HEAD
    return reasons.DELETED_HEAD_POD if is_head else reasons.DELETED_WORKER_POD


def _pods(role: str, group: str, pods: Sequence[Manifest]) -> str:
    """``worker Pod ns/a``, or ``3 worker Pods of group g in ns: a, b, c``."""
    names = [str(pod["metadata"]["name"]) for pod in pods]
    namespace = pods[0]["metadata"].get("namespace")
    kind = f"{role} Pod" if role else "Pod"
    if len(names) == 1:
        return f"{kind} {namespace}/{names[0]}"
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    which = f" of group {group}" if role == labels.WORKER else ""
    return f"{len(names)} {kind}s{which} in {namespace}: {', '.join(names[:NAMED])}{more}"


def _group(pod: Manifest) -> tuple[str, str]:
    marks = pod["metadata"].get("labels") or {}
    return str(marks.get(labels.NODE_TYPE, "")), str(marks.get(labels.GROUP, ""))


# --- other objects


def _object_done(outcome: Outcome) -> Iterator[Note]:
    words = _KINDS.get(str(outcome.action.obj.get("kind")))
    if words is None:
        return
    name = _named(outcome.action.obj)
    match outcome.action:
        case Create():
            yield Note("Normal", words.created, reasons.ACTION_CREATE, f"Created {words.noun} {name}")
        case Update() if words.updated:
            yield Note("Normal", words.updated, reasons.ACTION_UPDATE, f"Updated {words.noun} {name}")


# --- failures


def _failed(owner: Manifest, failure: Failure) -> Iterator[Note]:
    action, cause = failure.action, failure.cause
    cluster = f"{owner['metadata'].get('namespace')}/{owner['metadata']['name']}"
    verb = _verb(action)
    if action.obj.get("kind") == "Pod":
        role = node_type(action.obj)
        which = "Pods" if action.lane in ALL_PODS else f"{role} Pod"
        text = f"Failed to {verb.lower()} {which} for the cluster {cluster}, {cause}"
        yield Note("Warning", _failed_pod_reason(action, role), verb, text)
        if failure.kind == NO_ACCOUNT and _autoscales(action.obj):
            account = action.obj["spec"].get("serviceAccountName")
            text = f"The autoscaler's service account {account} does not exist; create it, or leave it out"
            yield Note("Warning", reasons.AUTOSCALER_SERVICE_ACCOUNT_NOT_FOUND, reasons.ACTION_VALIDATE, text)
        return
    words = _KINDS.get(str(action.obj.get("kind")))
    reason = words and (words.not_created if isinstance(action, Create) else words.not_updated)
    noun = words.noun if words else action.obj.get("kind")
    text = f"Failed to {verb.lower()} {noun} {_named(action.obj)} for the cluster {cluster}, {cause}"
    yield Note("Warning", reason or f"FailedTo{verb}{action.obj.get('kind')}", verb, text)


def _autoscales(pod: Manifest) -> bool:
    return any(each.get("name") == AUTOSCALER for each in (pod.get("spec") or {}).get("containers") or ())


def _failed_pod_reason(action: Action, role: str) -> str:
    is_head = role == labels.HEAD
    match action:
        case Create():
            return reasons.FAILED_TO_CREATE_HEAD_POD if is_head else reasons.FAILED_TO_CREATE_WORKER_POD
        case Delete(lane=lane) if lane in ALL_PODS:
            return reasons.FAILED_TO_DELETE_POD_COLLECTION
        case Delete():
            return reasons.FAILED_TO_DELETE_HEAD_POD if is_head else reasons.FAILED_TO_DELETE_WORKER_POD
    return "FailedToUpdatePod"


def _verb(action: Action) -> str:
    match action:
        case Create():
            return reasons.ACTION_CREATE
        case Delete():
            return reasons.ACTION_DELETE
    return reasons.ACTION_UPDATE


def _named(obj: Manifest) -> str:
    metadata = obj.get("metadata") or {}
    return f"{metadata.get('namespace')}/{metadata.get('name')}"


# --- warnings


def restart_policy_notes(owner: Manifest, gates: GateQuery) -> Iterator[Note]:
    """Groups whose Pods restart by themselves, which the first autoscaler does not understand."""
    found = [problem for problem in warnings(dict(owner), gates) if problem.rule == V1_RESTART]
    if found:
        text = "; ".join(map(str, found))
        yield Note("Warning", reasons.INVALID_RAYCLUSTER_SPEC, reasons.ACTION_VALIDATE, text)
