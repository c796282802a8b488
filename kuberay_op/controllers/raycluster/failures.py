"""What went wrong in a pass, in the words of status and events. Pure.

The condition ``ReplicaFailure`` names the operation that failed by one of five marks. The API server puts the
name it would have given a Pod into its answers, and that is another one each time; it is cut out, so that the
same failure reads the same and is told once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kuberay_op.api import conditions, labels
from kuberay_op.api.names import SUFFIX_ALPHABET, SUFFIX_LENGTH
from kuberay_op.controllers.raycluster.pods import ALL_PODS
from kuberay_op.controllers.raycluster.why import Obstacle
from kuberay_op.plan.actions import Action, Create, Delete, Manifest, Outcome

# --- reasons of the condition Ready, beside the marks

#: A ResourceQuota is used up.
QUOTA: Final = "QuotaExceeded"
#: An admission webhook or policy says no.
DENIED: Final = "DeniedByAdmission"
#: The operator lacks a permission.
FORBIDDEN: Final = "OperatorForbidden"
#: The Pod names a ServiceAccount that does not exist.
NO_ACCOUNT: Final = "ServiceAccountMissing"
#: Anything else that the API server refused.
REFUSED: Final = "WriteRefused"

_KINDS_OF_REFUSAL: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"exceeded quota|failed quota"), QUOTA),
    (re.compile(r"admission webhook|ValidatingAdmissionPolicy|violates PodSecurity"), DENIED),
    (re.compile(r"cannot (create|delete|patch|update) resource"), FORBIDDEN),
    (re.compile(r"service ?account.* not found", re.IGNORECASE), NO_ACCOUNT),
)

#: What our client puts before the words of the server: which call, and the status.
_CALL: Final = re.compile(r"[a-z]+ \S+ \S+: \d{3} \w+: ")

_SUFFIX: Final = f"[{SUFFIX_ALPHABET}]{{{SUFFIX_LENGTH}}}"


@dataclass(frozen=True, slots=True)
class Failure:
    """An action that failed."""

    action: Action
    #: What the server said, without random parts.
    cause: str

    @property
    def mark(self) -> str:
        """The reason of ``ReplicaFailure``; empty for what is not about a Pod."""
        return mark_of(self.action)

    @property
    def message(self) -> str:
        """The message of ``ReplicaFailure``."""
        return f"{self.mark}\n{self.cause}"

    def obstacle(self, look: str) -> Obstacle:
        """As something that stands in the way of the cluster; ``look`` is the command that shows more."""
        kind = next((word for words, word in _KINDS_OF_REFUSAL if words.search(self.cause)), REFUSED)
        verb = {Create: "made", Delete: "deleted"}.get(type(self.action), "changed")
        return Obstacle(kind, f"{subject(self.action.obj)} cannot be {verb}: {self.cause}", look)


def failures_of(outcomes: Iterable[Outcome]) -> list[Failure]:
    """What failed, in the order of the plan; of equal failures only the first."""
    found: dict[tuple[str, str], Failure] = {}
    for outcome in outcomes:
        if outcome.error is not None:
            cause = without_random_name(_CALL.sub("", str(outcome.error), count=1), outcome.action.obj)
            failure = Failure(outcome.action, cause)
            found.setdefault((subject(outcome.action.obj), failure.cause), failure)
    return list(found.values())


def mark_of(action: Action) -> str:
    """Which of the five operations an action on a Pod is; empty when it is none of them."""
    if action.obj.get("kind") != "Pod":
        return ""
    is_head = node_type(action.obj) == labels.HEAD
    match action:
        case Create():
            return conditions.FAILED_CREATE_HEAD_POD if is_head else conditions.FAILED_CREATE_WORKER_POD
        case Delete(lane=lane) if lane in ALL_PODS:
            return conditions.FAILED_DELETE_ALL_PODS
        case Delete():
            return conditions.FAILED_DELETE_HEAD_POD if is_head else conditions.FAILED_DELETE_WORKER_POD
    return ""


def subject(obj: Manifest) -> str:
    """An object as a sentence names it, a new Pod by its group."""
    metadata = obj.get("metadata") or {}
    if obj.get("kind") == "Pod" and not metadata.get("name"):
        group = (metadata.get("labels") or {}).get(labels.GROUP)
        return "the head Pod" if node_type(obj) == labels.HEAD else f"a worker Pod of group {group}"
    return f"{obj.get('kind')} {metadata.get('name') or metadata.get('generateName')}"


def node_type(obj: Manifest) -> str:
    """``head`` or ``worker``."""
    return str(((obj.get("metadata") or {}).get("labels") or {}).get(labels.NODE_TYPE, ""))


def without_random_name(text: str, obj: Manifest) -> str:
    """A text about a new object without the name that the server made up for it."""
    prefix = (obj.get("metadata") or {}).get("generateName")
    return re.sub(f"{re.escape(prefix)}{_SUFFIX}", f"{prefix}*", text) if prefix else text
