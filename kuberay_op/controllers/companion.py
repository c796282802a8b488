"""A further controller over RayClusters, beside the main one, with children of its own.

It shares the main one's cache of clusters and looks at a cluster when people edit it (labels included) or
when one of its own children changes. What it does in a pass is its own business: :meth:`Companion.work`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from kuberay_op.api import labels
from kuberay_op.api.predicates import externally_managed
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.validation import failure
from kuberay_op.controllers.act import Actor
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.features import Gates
from kuberay_op.frozen import FrozenDict, freeze, thaw
from kuberay_op.kube.apply import controller_uid
from kuberay_op.kube.cache import OWNER
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.resource import Key, Resource
from kuberay_op.plan.actions import Manifest, Outcome
from kuberay_op.runtime.expectations import View
from kuberay_op.runtime.manager import Manager
from kuberay_op.runtime.result import Result
from kuberay_op.runtime.wiring import edited


class Companion(ABC):
    """Passes over RayClusters that are ours and valid. ``resources`` are the kinds of its children.

    Those in ``shared`` are made by plugins as well, so that their cache cannot be cut down by our label.
    """

    def __init__(
        self,
        manager: Manager,
        *,
        name: str,
        logger: str,
        resources: Sequence[Resource],
        gates: Gates,
        shared: Sequence[Resource] = (),
    ) -> None:
        self.client = manager.client
        self.recorder = manager.events.recorder(f"{name}-controller")
        self._gates = gates
        self._clusters = manager.cache(RAY_CLUSTERS)
        self._stores = {
            resource: manager.cache(resource, label_selector=None if resource in shared else labels.CLUSTER)
            for resource in resources
        }
        self.wiring = manager.controller(name, RAY_CLUSTERS, self.reconcile, when=edited, logger=logger).owns(
            *resources
        )
        self.actor = Actor(
            manager.client,
            owner=RAY_CLUSTERS,
            resources={(resource.api_version, resource.kind): resource for resource in resources},
            stores=self._stores,
            expectations=self.wiring.expectations,
            recorder=self.recorder,
        )

    async def reconcile(self, key: Key) -> Result:
        """One pass over one cluster."""
        expectations = self.wiring.expectations
        view = expectations.check(key)
        if view is View.BEHIND:
            return Result.after(expectations.limit).saying(waiting="the cache to show what was written")
        owner = await self._owner(key, view)
        if owner is None:
            self.forget(key)
            return Result.forget()
        cluster = RayCluster(owner)
        if cluster.metadata.raw.get("deletionTimestamp") or externally_managed(cluster.spec):
            return Result.done()
        broken = failure(thaw(owner), self._gates.enabled)
        if broken is not None:  # the main controller says so to the user
            return Result.done().saying(skipped=broken.message)
        children = await self._children(key, cluster, view)
        expectations.forget(key)
        return await self.work(key, cluster, children)

    @abstractmethod
    async def work(self, key: Key, cluster: RayCluster, children: Sequence[Manifest]) -> Result:
        """What there is to do for a cluster that has these children."""

    @abstractmethod
    def forget(self, key: Key) -> None:
        """The cluster is gone; drop what is remembered about it."""

    async def _owner(self, key: Key, view: View) -> FrozenDict | None:
        if self._clusters.get(key) is None or view is not View.OVERDUE:
            return self._clusters.get(key)
        try:
            live: FrozenDict = freeze(await self.client.get(RAY_CLUSTERS, key.name, key.namespace, owner=key))
            return live
        except NotFound:
            return None

    async def _children(self, key: Key, cluster: RayCluster, view: View) -> list[Manifest]:
        """Our children, from the caches, or from the server if the caches are overdue."""
        found: list[Manifest] = []
        for resource, store in self._stores.items():
            objects: Sequence[Mapping[str, Any]] = store.by_index(OWNER, cluster.metadata.uid)
            if view is View.OVERDUE:
                selector = f"{labels.CLUSTER}={key.name}"
                listed = await self.client.list(resource, key.namespace, label_selector=selector, owner=key)
                objects = [freeze(obj) for obj in listed.items]
            # Items of watches of one kind may come without it.
            kind = {"apiVersion": resource.api_version, "kind": resource.kind}
            found += [
                FrozenDict({**kind, **obj})
                for obj in objects
                if controller_uid(obj) == cluster.metadata.uid and not _by_plugin(obj)
            ]
        return found


def first_error(outcomes: Sequence[Outcome]) -> Exception | None:
    """What went wrong first, if anything did."""
    return next((outcome.error for outcome in outcomes if outcome.error is not None), None)


def _by_plugin(obj: Manifest) -> bool:
    return labels.PLUGIN in (obj["metadata"].get("labels") or {})
