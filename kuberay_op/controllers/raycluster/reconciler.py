"""The RayCluster controller: reads what there is and hands it to the pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kuberay_op.api import labels
from kuberay_op.clock import Clock
from kuberay_op.controllers.act import Actor
from kuberay_op.controllers.pipeline import Observed, Pipeline
from kuberay_op.controllers.plugins import Kinds
from kuberay_op.controllers.raycluster.desired import RayClusterKind
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.features import Gates
from kuberay_op.frozen import FrozenDict, freeze
from kuberay_op.hooks.typed import Hooks
from kuberay_op.kube.cache import OWNER, Store
from kuberay_op.kube.events import Events
from kuberay_op.kube.resource import PODS, Key, Resource
from kuberay_op.runtime.expectations import View
from kuberay_op.runtime.manager import Manager
from kuberay_op.runtime.result import Result
from kuberay_op.runtime.wiring import edited

NAME: Final = "raycluster"

#: The Pods that concern us, of all in the cluster.
RAY_PODS: Final = f"{labels.NODE_TYPE} in ({labels.HEAD}, {labels.WORKER}, {labels.REDIS_CLEANUP})"


class RayClusterReconciler:
    """Keeps RayClusters as they should be.

    ``requeue`` is the pause between looks without a cause; ``kinds`` are those of children that plugins make.
    """

    def __init__(
        self,
        manager: Manager,
        *,
        clock: Clock,
        requeue: float,
        hooks: Hooks,
        gates: Gates,
        events: Events,
        kinds: Kinds,
    ) -> None:
        self._client = manager.client
        self._clusters = manager.cache(RAY_CLUSTERS)
        stores: dict[Resource, Store] = {PODS: manager.cache(PODS, label_selector=RAY_PODS)}
        for resource in kinds.served:
            # Only what plugins made: a cache of all ConfigMaps, say, would be no use and much memory.
            stores.setdefault(resource, manager.cache(resource, label_selector=labels.PLUGIN))
        self._stores = stores
        self._wiring = manager.controller(NAME, RAY_CLUSTERS, self.reconcile, when=edited).owns(*stores)
        recorder = events.recorder(f"{NAME}-controller")
        actor = Actor(
            manager.client,
            owner=RAY_CLUSTERS,
            resources={(resource.api_version, resource.kind): resource for resource in stores},
            stores={**stores, RAY_CLUSTERS: self._clusters},
            expectations=self._wiring.expectations,
            recorder=recorder,
        )
        self._pipeline = Pipeline(
            RayClusterKind(),
            hooks=hooks,
            actor=actor,
            recorder=recorder,
            gates=gates,
            clock=clock,
            requeue=requeue,
            missing=kinds.missing,
        )

    async def reconcile(self, key: Key) -> Result:
        """One pass over one cluster."""
        expectations = self._wiring.expectations
        view = expectations.check(key)
        if view is View.BEHIND:
            return Result.after(expectations.limit).saying(waiting="the cache to show what was written")
        observed = await self._observe(key, view)
        if observed is None:
            return Result.forget()
        expectations.forget(key)
        return await self._pipeline.run(key, observed)

    async def _observe(self, key: Key, view: View) -> Observed | None:
        """The cluster and its children: from the caches, or from the server if the caches are overdue."""
        owner = self._clusters.get(key)
        if owner is None:
            return None
        uid = owner["metadata"]["uid"]
        children: list[Mapping[str, Any]] = []
        for resource, store in self._stores.items():
            found: Sequence[Mapping[str, Any]] = store.by_index(OWNER, uid)
            if view is View.OVERDUE:
                selector = f"{labels.CLUSTER}={key.name}" if resource == PODS else labels.PLUGIN
                listed = await self._client.list(resource, key.namespace, label_selector=selector, owner=key)
                found = [freeze(obj) for obj in listed.items if _owned_by(obj, uid)]
            # Items of watches of one kind may come without it. Frozen, since plugins get to see them.
            kind = {"apiVersion": resource.api_version, "kind": resource.kind}
            children += [FrozenDict({**kind, **obj}) for obj in found]
        return Observed(owner, children)


def _owned_by(obj: Mapping[str, Any], uid: str) -> bool:
    return any(owner["uid"] == uid for owner in obj["metadata"].get("ownerReferences") or ())
