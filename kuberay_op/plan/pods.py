"""All Pods of a cluster: which to make, which to remove, each with a reason. Pure.

Asked in this order, and the first that has something to say decides: suspension (``suspend.py``), an upgrade
(``upgrade.py``), then the head and each worker group by itself (``groups.py``, ``multihost.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from kuberay_op.api import annotations as notes
from kuberay_op.api import labels, replicas
from kuberay_op.api.conditions import RAYCLUSTER_PROVISIONED, TRUE
from kuberay_op.api.predicates import autoscaling_enabled
from kuberay_op.api.raycluster import RayCluster, WorkerGroupSpec
from kuberay_op.plan import suspend
from kuberay_op.plan.actions import Manifest
from kuberay_op.plan.groups import Add, GroupRules, Remove, plan_single_host, plan_suspended
from kuberay_op.plan.multihost import plan_multi_host
from kuberay_op.plan.podview import PodView, heads, views, workers
from kuberay_op.plan.upgrade import OUTDATED, plan_upgrade

SUSPENDING: Final = "the cluster is being suspended"
NO_HEAD: Final = "the cluster has no head"


@dataclass(frozen=True, slots=True)
class PodSettings:
    """What the operator's configuration says about Pods."""

    #: This operator's version, as written on head Pods.
    version: str
    #: Feature gate ``RayMultiHostIndexing``.
    indexing: bool = True
    #: Feature gate ``RayClusterStatusConditions``.
    conditions: bool = True
    #: Remove surplus workers even though the autoscaler is on.
    random_delete: bool = False


@dataclass(frozen=True, slots=True)
class PodPlan:
    """What has to happen to the Pods of a cluster."""

    add: tuple[Add, ...] = ()
    remove: tuple[Remove, ...] = ()
    #: All Pods go, so the head goes last: it is how an interrupted deletion is noticed and finished.
    all_go: bool = False
    #: The head Pod that gets the annotations of ``upgrade.stamps`` anew.
    stamp: PodView | None = None
    #: Why the Pods are in a state that only a person can mend; empty when they are not.
    problem: str = ""


def plan_pods(
    cluster: RayCluster,
    pods: Iterable[Manifest],
    settings: PodSettings,
    rng: Random,
    begun: frozenset[str] = frozenset(),
) -> PodPlan:
    """The plan for the Pods that the cluster owns.

    ``rng`` gives the names of new multi-host replicas; ``begun`` are those that were never whole.
    """
    seen = views(pods)
    match suspend.pods_at(cluster, in_conditions=settings.conditions):
        case suspend.Pods.DELETE:
            return PodPlan(remove=_all(seen, SUSPENDING), all_go=True)
        case suspend.Pods.LEAVE:
            return PodPlan()
        case suspend.Pods.KEEP_UP:
            pass
    upgrade = plan_upgrade(cluster, seen, settings.version)
    if upgrade.recreate:
        return PodPlan(remove=_all(seen, OUTDATED), all_go=True)
    found = heads(seen)
    sound = [head.name for head in found if not head.terminating and not head.ill]
    if len(sound) > 1:
        return PodPlan(problem=f"there are {len(sound)} head Pods ({', '.join(sound)}); delete all but one")
    if not found and _head_stays_lost(cluster):
        return PodPlan()
    added, removed = _plan_head(found)
    for group in distinct(cluster.spec.worker_group_specs):
        more, fewer = _plan_group(cluster, group, seen, settings, rng, begun)
        added += more
        removed += fewer
    return PodPlan(tuple(added), tuple(removed), stamp=upgrade.stamp)


def distinct(groups: Iterable[WorkerGroupSpec]) -> list[WorkerGroupSpec]:
    """The groups, without those whose name an earlier one has: they would fight over the same Pods."""
    first: dict[str, WorkerGroupSpec] = {}
    for group in groups:
        first.setdefault(group.group_name, group)
    return list(first.values())


def _plan_head(found: Sequence[PodView]) -> tuple[list[Add], list[Remove]]:
    """One head, always. Its successor is made when it is gone: two heads would fight over the cluster."""
    if not found:
        return [Add(labels.HEAD_GROUP, NO_HEAD, role=labels.HEAD)], []
    return [], [Remove(head, head.ill) for head in found if head.ill and not head.terminating]


def _plan_group(
    cluster: RayCluster,
    group: WorkerGroupSpec,
    seen: Sequence[PodView],
    settings: PodSettings,
    rng: Random,
    begun: frozenset[str],
) -> tuple[list[Add], list[Remove]]:
    pods = workers(seen, group.group_name)
    if group.suspend:
        return [], plan_suspended(pods)
    rules = GroupRules(
        may_shrink=settings.random_delete or not autoscaling_enabled(cluster.spec), indexing=settings.indexing
    )
    if settings.indexing and replicas.hosts(group) > 1:
        return plan_multi_host(group, pods, rules, rng, begun)
    return plan_single_host(group, pods, rules)


def _head_stays_lost(cluster: RayCluster) -> bool:
    """Whether a head that was lost after the cluster had been up must not be replaced (sidecar jobs)."""
    asked = cluster.metadata.annotations.get(notes.DISABLE_PROVISIONED_HEAD_RESTART) == labels.TRUE
    return asked and any(
        condition.type == RAYCLUSTER_PROVISIONED and condition.status == TRUE
        for condition in cluster.status.conditions
    )


def _all(pods: Iterable[PodView], reason: str) -> tuple[Remove, ...]:
    return tuple(Remove(pod, reason) for pod in pods if not pod.terminating)
