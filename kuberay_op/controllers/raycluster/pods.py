"""From the plan for the Pods to actions: which Pods are built, and what has to happen before what. Pure.

Deletions come first: they may free what new Pods need. The head is made before the workers, so that it gets
the last room in a quota, and workers only if that went well. When all Pods go, the head goes last and only if
all others could be deleted: an upgrade is recognised by the head.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kuberay_op.api import labels
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.build.metadata import OPERATOR_VERSION
from kuberay_op.build.pod import head_pod, worker_pod
from kuberay_op.config import Config
from kuberay_op.controllers.wishes import causes_of
from kuberay_op.frozen import FrozenDict, freeze
from kuberay_op.hooks.scope import Group, Scope
from kuberay_op.hooks.typed import Hooks
from kuberay_op.plan.actions import OBJECTS, Action, Create, Delete, Manifest, Update
from kuberay_op.plan.groups import Add, Remove
from kuberay_op.plan.pods import PodPlan, PodSettings
from kuberay_op.plan.podview import PodView
from kuberay_op.plan.upgrade import stamps

# --- lanes

#: Pods that go for reasons of their own.
DELETED: Final = "deleted Pods"
#: Pods that go because all do; the head after the others.
ALL_WORKERS: Final = "all workers"
ALL_HEADS: Final = "all heads"
#: The head that gets new annotations.
STAMPED: Final = "stamped head"
#: A new head.
HEAD: Final = "head"

ALL_PODS: Final = frozenset({ALL_WORKERS, ALL_HEADS})


def worker_lane(group: str) -> str:
    """New workers of a group."""
    return f"workers of {group}"


def settings_of(config: Config) -> PodSettings:
    """What the configuration says about Pods."""
    return PodSettings(
        version=OPERATOR_VERSION,
        indexing=config.gates.enabled("RayMultiHostIndexing"),
        conditions=config.gates.enabled("RayClusterStatusConditions"),
        random_delete=config.enable_random_pod_delete,
    )


class PodActions:
    """The actions for the Pods of one cluster in one pass."""

    def __init__(self, cluster: RayCluster, config: Config, scope: Scope, hooks: Hooks) -> None:
        self._cluster = cluster
        self._config = config
        self._scope = scope
        self._hooks = hooks
        self._groups = {group.group_name: group for group in reversed(cluster.spec.worker_group_specs)}
        self._built: dict[str, Manifest] = {}

    def of(self, plan: PodPlan) -> Iterator[Action]:
        """The actions of the plan, in order."""
        for removal in sorted(plan.remove, key=lambda each: each.pod.role == labels.HEAD):
            yield self._delete(removal, all_go=plan.all_go)
        if plan.stamp is not None:
            yield self._stamp(plan.stamp)
        yield from map(self._create, plan.add)

    def _delete(self, removal: Remove, *, all_go: bool) -> Delete:
        if not all_go:
            return Delete(removal.pod.pod, removal.reason, lane=DELETED)
        if removal.pod.role == labels.HEAD:
            return Delete(removal.pod.pod, removal.reason, lane=ALL_HEADS, after=(ALL_WORKERS,))
        return Delete(removal.pod.pod, removal.reason, lane=ALL_WORKERS)

    def _stamp(self, head: PodView) -> Update:
        metadata = head.pod["metadata"]
        marks = {"annotations": stamps(self._cluster, OPERATOR_VERSION)}
        named = {"name": metadata["name"], "namespace": metadata["namespace"]}
        wanted = {"apiVersion": "v1", "kind": "Pod", "metadata": named | marks}
        reason = "its hash was made by another version"
        return Update(wanted, head.pod, {"metadata": marks}, reason, lane=STAMPED)

    def _create(self, addition: Add) -> Create:
        if addition.role == labels.HEAD:
            pod = head_pod(self._cluster, self._config)
            built = self._hooks.patch_pod(self._scope, head_group(self._cluster), pod)
            causes = causes_of(built.changes)
            return Create(built.obj, addition.reason, causes, lane=HEAD, after=(OBJECTS,), once=True)
        group = Group(addition.group, "worker", self._groups[addition.group].raw)
        built = self._hooks.patch_pod(self._scope, group, self._worker(addition))
        causes, lane = causes_of(built.changes), worker_lane(addition.group)
        return Create(
            built.obj,
            addition.reason,
            causes,
            lane=lane,
            after=(OBJECTS, HEAD),
            once=True,
            whole=addition.replica_name,
        )

    def _worker(self, addition: Add) -> Manifest:
        """The workers of a group are alike but for their place in it, so they are built once."""
        if addition.group not in self._built:
            group = self._groups[addition.group]
            self._built[addition.group] = freeze(worker_pod(self._cluster, group, self._config))
        alike = self._built[addition.group]
        place: dict[str, str] = {}
        if addition.replica is not None:
            place[labels.REPLICA_INDEX] = str(addition.replica)
        if addition.replica_name:
            place |= {labels.REPLICA_NAME: addition.replica_name, labels.HOST_INDEX: str(addition.host)}
        metadata = alike["metadata"]
        return FrozenDict(
            {**alike, "metadata": freeze({**metadata, "labels": {**metadata["labels"], **place}})}
        )


def head_group(cluster: RayCluster) -> Group:
    """The group that plugins see for the head."""
    return Group(labels.HEAD_GROUP, "head", cluster.spec.head_group_spec.raw)
