"""One worker group: which Pods to make and which to remove, replica by replica. Pure.

Two rules keep this calm, whatever happens in between:

* A Pod keeps its place until it is gone: one that is on its way out is not replaced yet. So a group never has
  more Pods than it wants, and making and removing never chase each other.
* What is removed is chosen among those that would stay. So a Pod that is stuck on its way out holds its own
  place and nothing else: the group is repaired, grown and shrunk around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Final

from kuberay_op.api import labels, replicas
from kuberay_op.api.raycluster import WorkerGroupSpec
from kuberay_op.plan.podview import PodView, first_to_go

SUSPENDED: Final = "the group is suspended"
NAMED: Final = "named in scaleStrategy.workersToDelete"


@dataclass(frozen=True, slots=True)
class Add:
    """A Pod to make. The indexes are None where Pods are not numbered."""

    group: str
    reason: str
    #: ``head`` or ``worker``.
    role: str = labels.WORKER
    replica: int | None = None
    #: Which host of a multi-host replica.
    host: int | None = None
    #: Name of a multi-host replica.
    replica_name: str = ""


@dataclass(frozen=True, slots=True)
class Remove:
    """A Pod to delete."""

    pod: PodView
    reason: str


@dataclass(frozen=True, slots=True)
class GroupRules:
    """What decides about a group besides its spec and its Pods."""

    #: Whether the operator chooses which workers go; with autoscaling that is the autoscaler's business.
    may_shrink: bool = True
    #: Whether replicas are numbered (feature gate ``RayMultiHostIndexing``).
    indexing: bool = True


def plan_single_host(
    group: WorkerGroupSpec, pods: Sequence[PodView], rules: GroupRules
) -> tuple[list[Add], list[Remove]]:
    """A group in which every Pod stands for itself."""
    wanted = replicas.group_desired_pods(group)
    staying = [pod for pod in pods if not pod.terminating]
    named = frozenset(group.scale_strategy.workers_to_delete)
    removed = [Remove(pod, why) for pod in staying if (why := _why_remove(pod, named))]
    staying = without(staying, removed)
    surplus = len(staying) - wanted
    if surplus > 0 and rules.may_shrink:
        reason = f"{len(staying)} workers are too many; the group wants {wanted}"
        going = sorted(staying, key=first_to_go, reverse=True)[:surplus]
        removed += [Remove(pod, reason) for pod in going]
    reason = f"{len(pods)} of {wanted} workers exist"
    missing = max(0, wanted - len(pods))
    numbers: Iterable[int | None] = free(pods, missing) if rules.indexing else [None] * missing
    return [Add(group.group_name, reason, replica=number) for number in numbers], removed


def plan_suspended(pods: Sequence[PodView]) -> list[Remove]:
    """A suspended group has no Pods."""
    return [Remove(pod, SUSPENDED) for pod in pods if not pod.terminating]


def without(pods: Iterable[PodView], removed: Iterable[Remove]) -> list[PodView]:
    """Those that stay."""
    going = {removal.pod.uid for removal in removed}
    return [pod for pod in pods if pod.uid not in going]


def free(pods: Iterable[PodView], number: int) -> list[int]:
    """The lowest replica indexes that none of these Pods has."""
    taken = {pod.replica_index for pod in pods}
    return list(islice((index for index in count() if index not in taken), number))


def _why_remove(pod: PodView, named: frozenset[str]) -> str:
    if pod.ill:
        return pod.ill
    return NAMED if pod.name in named else ""
