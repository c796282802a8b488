"""What stands between a cluster and being ready, the most important first. Pure.

One engine for the ``Ready`` condition and for ``kuberay-op why``. Each question below either finds obstacles
or does not; they are asked in the order of :data:`QUESTIONS`, so what has to be mended first comes first.
Texts change only when the situation does: the first one stands in the status.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kuberay_op.api import labels, replicas
from kuberay_op.api.predicates import autoscaling_enabled, externally_managed
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.plan.actions import Manifest
from kuberay_op.plan.pods import distinct
from kuberay_op.plan.podview import PodView, heads, workers
from kuberay_op.plan.suspend import Suspend, step_of
from kuberay_op.plan.trouble import CRASHING, Trouble, quote, trouble

# --- reasons of the condition Ready

#: Nothing stands in the way.
ALL_READY: Final = "AllPodsReady"
#: The cluster is being deleted.
DELETING: Final = "Deleting"
#: Somebody else takes care of it.
MANAGED_BY_OTHERS: Final = "ManagedByOthers"
#: It breaks a rule.
INVALID: Final = "Invalid"
#: Its Pods are being deleted, or were, as asked.
SUSPENDED: Final = "Suspended"
#: There is more than one head.
TOO_MANY_HEADS: Final = "TooManyHeads"
#: There is no head Pod.
NO_HEAD: Final = "HeadMissing"
#: A group has fewer workers than it wants.
WORKERS_MISSING: Final = "WorkersMissing"
#: A group has more workers than it wants.
WORKERS_SURPLUS: Final = "WorkersSurplus"
#: Two groups have one name.
DOUBLED_GROUP: Final = "DoubledGroup"
#: Pods belong to no group of the spec.
LEFT_OVER: Final = "PodsLeftOver"
#: A Pod mounts a volume claim that does not exist.
CLAIM_MISSING: Final = "VolumeClaimMissing"
#: A Pod mounts a volume claim that has no volume yet.
CLAIM_UNBOUND: Final = "VolumeClaimUnbound"

#: Set on what is deleted only after all that belongs to it.
FOREGROUND: Final = "foregroundDeletion"

#: Events that say no more than that a Pod needs time.
_ORDINARY_EVENTS: Final = frozenset({"Unhealthy", "FailedScheduling", "NodeNotReady"})


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One thing in the way."""

    #: One word for programs.
    reason: str
    #: One sentence for people.
    text: str
    #: A command that shows more; empty when there is nothing more to see.
    look: str = ""
    #: Whether it needs somebody's attention, or only time.
    serious: bool = True


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that is known about a cluster."""

    cluster: RayCluster
    #: Its Pods, oldest first.
    pods: Sequence[PodView] = ()
    #: What went wrong or was refused in the last pass: invalid spec, plugins, failed writes. First is first.
    failures: Sequence[Obstacle] = ()
    # Only ``kuberay-op why`` knows these; the operator reads neither events nor claims.
    #: The last warning event about an object, by its UID: reason and note.
    warnings: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    #: The volume claims that Pods mount, by name; None for one that does not exist.
    claims: Mapping[str, Manifest | None] = field(default_factory=dict)

    def describe(self, kind: str, name: str) -> str:
        """The command that shows an object of the cluster."""
        return f"kubectl describe {kind} {name} -n {self.cluster.namespace}"


Question = Callable[[Situation], Iterable[Obstacle]]


def obstacles(situation: Situation) -> list[Obstacle]:
    """All that stands in the way; empty when the cluster is ready. Serious things come first."""
    for last_word in LAST_WORDS:
        found = list(last_word(situation))
        if found:
            return found
    found = [obstacle for question in QUESTIONS for obstacle in question(situation)]
    return sorted(found, key=lambda obstacle: not obstacle.serious)


def summary(found: Sequence[Obstacle]) -> Obstacle:
    """All obstacles as one: the first, and how many more there are."""
    if not found:
        return Obstacle(ALL_READY, "", serious=False)
    first, more = found[0], len(found) - 1
    return replace(first, text=f"{first.text} (and {more} more)") if more else first


# --- what makes all other questions idle


def deleting(situation: Situation) -> Iterator[Obstacle]:
    """It is on its way out; what holds it are finalizers."""
    metadata = situation.cluster.metadata
    if not metadata.deletion_timestamp:
        return
    yield from situation.failures
    if FOREGROUND in metadata.finalizers:
        for pod in situation.pods:
            if what := _trouble(situation, pod):
                yield _about(situation, "Pod", pod, what)
    held = ", ".join(metadata.finalizers)
    text = f"it is being deleted{f'; finalizers hold it: {held}' if held else ''}"
    yield Obstacle(
        DELETING, text, situation.describe("raycluster", situation.cluster.name), serious=bool(held)
    )


def managed_by_others(situation: Situation) -> Iterator[Obstacle]:
    """We do not touch it."""
    spec = situation.cluster.spec
    if externally_managed(spec):
        yield Obstacle(MANAGED_BY_OTHERS, f"spec.managedBy leaves it to {spec.managed_by or 'nobody'}")


def suspended(situation: Situation) -> Iterator[Obstacle]:
    """The user wants it to have no Pods."""
    spec, step = situation.cluster.spec, step_of(situation.cluster)
    if step is Suspend.SUSPENDING:
        text = "it is being suspended; its Pods are being deleted"
    elif step is Suspend.SUSPENDED and (spec.suspend or not spec.is_set("suspend")):
        text = "it is suspended; set spec.suspend to false to resume"
    elif spec.suspend:
        text = "it is about to be suspended"
    else:
        return
    yield from situation.failures
    look = situation.describe("raycluster", situation.cluster.name)
    yield Obstacle(SUSPENDED, text, look, serious=step is Suspend.SUSPENDED)


# --- the questions


def failures(situation: Situation) -> Iterable[Obstacle]:
    """What the operator could not do."""
    return situation.failures


def head(situation: Situation) -> Iterator[Obstacle]:
    """There must be one head, and it must be ready."""
    found = heads(situation.pods)
    staying = [pod for pod in found if not pod.terminating]
    if len(staying) > 1:
        names = ", ".join(pod.name for pod in staying)
        look = f"kubectl delete pod {staying[-1].name} -n {situation.cluster.namespace}"
        yield Obstacle(
            TOO_MANY_HEADS, f"there are {len(staying)} head Pods: {names}; delete all but one", look
        )
    elif not found and not situation.failures:  # what was refused explains it
        look = situation.describe("raycluster", situation.cluster.name)
        yield Obstacle(NO_HEAD, "there is no head Pod", look, serious=False)
    for pod in staying or found:
        if what := _trouble(situation, pod):
            yield _about(situation, "head Pod", pod, what)


def volume_claims(situation: Situation) -> Iterator[Obstacle]:
    """What Pods mount must exist and have a volume."""
    users: dict[str, str] = {}
    for pod in situation.pods:
        for name in mounted_claims(pod.pod):
            users.setdefault(name, pod.name)
    for name, claim in situation.claims.items():
        if name not in users:
            continue
        who = f"volume claim {name}, which Pod {users[name]} mounts,"
        look = f"kubectl get persistentvolumeclaims -n {situation.cluster.namespace}"
        if claim is None:
            yield Obstacle(CLAIM_MISSING, f"{who} does not exist; create it", look)
        elif (claim.get("status") or {}).get("phase") != "Bound":
            reason, note = situation.warnings.get(claim["metadata"]["uid"], ("", ""))
            said = f": {reason}: {quote(note)}" if note else ""
            look = situation.describe("persistentvolumeclaim", name)
            yield Obstacle(CLAIM_UNBOUND, f"{who} has no volume yet{said}", look)


def mounted_claims(pod: Manifest) -> list[str]:
    """The names of the volume claims in a Pod's spec."""
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    found = [(volume.get("persistentVolumeClaim") or {}).get("claimName") for volume in volumes]
    return [name for name in found if name]


def groups(situation: Situation) -> Iterator[Obstacle]:
    """Every group must have its workers, and they must be ready."""
    spec = situation.cluster.spec
    for group in distinct(spec.worker_group_specs):
        found = workers(situation.pods, group.group_name)
        wanted = replicas.group_desired_pods(group)
        yield from _troubled(situation, group.group_name, found)
        look = (
            f"kubectl get pods -n {situation.cluster.namespace} "
            f"-l {labels.CLUSTER}={situation.cluster.name},{labels.GROUP}={group.group_name}"
        )
        if len(found) < wanted:
            text = f"group {group.group_name} has {len(found)} of {wanted} workers"
            yield Obstacle(WORKERS_MISSING, text, look, serious=False)
        elif len(found) > wanted:
            waits = "; the autoscaler chooses which go" if autoscaling_enabled(spec) else ""
            text = f"group {group.group_name} has {len(found)} workers and wants {wanted}{waits}"
            yield Obstacle(WORKERS_SURPLUS, text, look, serious=False)


def doubled_groups(situation: Situation) -> Iterator[Obstacle]:
    """Groups of one name would fight over the same Pods; only the first counts."""
    names = Counter(group.group_name for group in situation.cluster.spec.worker_group_specs)
    for name, times in names.items():
        if times > 1:
            text = f"{times} worker groups are called {name}; only the first counts, rename the others"
            yield Obstacle(DOUBLED_GROUP, text)


def left_over(situation: Situation) -> Iterator[Obstacle]:
    """Pods of groups that were taken out of the spec go on running until somebody deletes them."""
    known = {group.group_name for group in situation.cluster.spec.worker_group_specs}
    strays = [pod for pod in situation.pods if pod.role == labels.WORKER and pod.group not in known]
    for name in dict.fromkeys(pod.group for pod in strays):
        names = [pod.name for pod in strays if pod.group == name]
        look = (
            f"kubectl delete pods -n {situation.cluster.namespace} "
            f"-l {labels.CLUSTER}={situation.cluster.name},{labels.GROUP}={name}"
        )
        text = f"{_count(names, 'Pod')} of group {name}, which is not in the spec any more, still run"
        yield Obstacle(LEFT_OVER, f"{text}; delete them", look)


#: Each of these, if it has something to say, says all there is.
LAST_WORDS: Final[tuple[Question, ...]] = (
    deleting,           # nothing else matters any more
    managed_by_others,  # nothing else is our business
    suspended,          # there are no Pods to ask about
)  # fmt: skip

QUESTIONS: Final[tuple[Question, ...]] = (
    failures,        # what was refused explains what is missing
    volume_claims,   # what is missing explains why Pods wait
    head,            # without a head no worker becomes ready
    doubled_groups,  # a mistake that nothing else shows
    groups,          # then the workers
    left_over,       # then what is too much
)  # fmt: skip


def _troubled(situation: Situation, group: str, found: Sequence[PodView]) -> Iterator[Obstacle]:
    """The troubles of a group's workers, each kind of trouble once."""
    by_reason: dict[tuple[bool, str], list[tuple[PodView, Trouble]]] = {}
    for pod in found:
        what = _trouble(situation, pod)
        if what is not None:
            by_reason.setdefault((what.serious, what.reason), []).append((pod, what))
    for troubled in by_reason.values():
        pod, what = troubled[0]
        if len(troubled) == 1:
            yield _about(situation, f"worker Pod of group {group},", pod, what)
        elif what.serious:
            text = (
                f"{len(troubled)} of {len(found)} workers of group {group}, such as {pod.name}: {what.text}"
            )
            yield Obstacle(what.reason, text, _look_at(situation, pod, what))
        else:
            text = f"{len(troubled)} of {len(found)} workers of group {group} are not ready: {what.reason}"
            yield Obstacle(what.reason, text, _look_at(situation, pod, what), serious=False)


def _trouble(situation: Situation, pod: PodView) -> Trouble | None:
    what = None if pod.ready and not pod.terminating else trouble(pod.pod)
    reason, note = situation.warnings.get(pod.uid, ("", ""))
    if what is None or what.serious or not note:
        return what
    serious = reason not in _ORDINARY_EVENTS
    text = f"{what.text}; the last warning about it is {reason}: {quote(note)}"
    return replace(what, reason=reason if serious else what.reason, text=text, serious=serious)


def _about(situation: Situation, who: str, pod: PodView, what: Trouble) -> Obstacle:
    return Obstacle(
        what.reason, f"{who} {pod.name} {what.text}", _look_at(situation, pod, what), what.serious
    )


def _look_at(situation: Situation, pod: PodView, what: Trouble) -> str:
    if not what.container:
        return situation.describe("pod", pod.name)
    ended = " --previous" if what.reason == CRASHING else ""
    return f"kubectl logs {pod.name} -n {situation.cluster.namespace} -c {what.container}{ended}"


def _count(names: Sequence[str], noun: str) -> str:
    return f"{len(names)} {noun}{'s' if len(names) != 1 else ''}"
