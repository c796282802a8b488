"""What went wrong in a pass, in the words of status and events. Pure.

The condition ``ReplicaFailure`` names the operation that failed by one of five marks. The API server puts the
name it would have given a Pod into its answers, and that is another one each time; it is cut out, so that the
same failure reads the same and is told once.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kuberay_op.api import conditions, labels
from kuberay_op.api.names import SUFFIX_ALPHABET, SUFFIX_LENGTH
from kuberay_op.api.raycluster import RayCluster
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
#: An object that is not the cluster's has the name that one of its objects needs.
NAME_TAKEN: Final = "NameTaken"
#: The API server asks a webhook that does not answer.
WEBHOOK_AWAY: Final = "WebhookUnreachable"
#: Anything else that the API server refused.
REFUSED: Final = "WriteRefused"

#: All of them: what the operator wanted to do and could not.
REFUSALS: Final = frozenset({QUOTA, DENIED, FORBIDDEN, NO_ACCOUNT, NAME_TAKEN, WEBHOOK_AWAY, REFUSED})

_KINDS_OF_REFUSAL: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"exists and is not ours"), NAME_TAKEN),
    (re.compile(r"exceeded quota|failed quota"), QUOTA),
    (re.compile(r"failed calling webhook"), WEBHOOK_AWAY),
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

    @property
    def kind(self) -> str:
        """Which kind of refusal it is."""
        return next((word for words, word in _KINDS_OF_REFUSAL if words.search(self.cause)), REFUSED)

    def obstacle(self, cluster: RayCluster) -> Obstacle:
        """As something that stands in the way of the cluster."""
        kind = self.kind
        verb = {Create: "made", Delete: "deleted"}.get(type(self.action), "changed")
        text = f"{subject(self.action.obj)} cannot be {verb}: {self.cause}"
        return Obstacle(kind, text, look_further(kind, text, cluster))


#: For each kind of refusal, what in its text to look for and the command that shows more of that.
_LOOKS: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    QUOTA: (re.compile(r"quota: (?P<name>[\w.-]+)"), "kubectl describe resourcequota {name} -n {namespace}"),
    NO_ACCOUNT: (re.compile(r'"(?P<name>[\w.-]+)" not found'), "kubectl get serviceaccounts -n {namespace}"),
    NAME_TAKEN: (
        re.compile(r"(?P<kind>[a-z.]+) (?P<at>[\w.-]+)/(?P<name>[\w.-]+) exists and is not ours"),
        "kubectl get {kind} {name} -n {at} -o yaml",
    ),
    FORBIDDEN: (
        re.compile(r'User "(?P<user>[^"]+)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)"'),
        "kubectl auth can-i {verb} {resource} -n {namespace} --as={user}",
    ),
    WEBHOOK_AWAY: (
        re.compile("webhook"),
        "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
    ),
    DENIED: (
        re.compile("webhook|Policy"),
        "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations,"
        "validatingadmissionpolicies",
    ),
}


def look_further(kind: str, text: str, cluster: RayCluster) -> str:
    """The command that shows more of what was refused."""
    words, command = _LOOKS.get(kind, (None, ""))
    found = words.search(text) if words else None
    if found:
        words_found = {name: shlex.quote(word) for name, word in found.groupdict().items()}
        return command.format_map({"namespace": cluster.namespace, **words_found})
    return f"kubectl describe raycluster {cluster.name} -n {cluster.namespace}"


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
