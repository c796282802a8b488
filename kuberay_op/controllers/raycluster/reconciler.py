"""One pass over a RayCluster: observe, make the head Pod if it is missing, report."""

from __future__ import annotations

from typing import Final

from kuberay_op.api import labels
from kuberay_op.api.predicates import externally_managed
from kuberay_op.clock import Clock
from kuberay_op.controllers.raycluster.desired import head_pod
from kuberay_op.controllers.raycluster.observe import Observed, observe
from kuberay_op.controllers.raycluster.status import changed, status_of
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.kube.resource import PODS, Key
from kuberay_op.runtime.expectations import View
from kuberay_op.runtime.manager import Manager
from kuberay_op.runtime.result import Result
from kuberay_op.runtime.wiring import edited

NAME: Final = "raycluster"

#: The Pods that concern us, of all in the cluster.
RAY_PODS: Final = f"{labels.NODE_TYPE} in ({labels.HEAD}, {labels.WORKER}, {labels.REDIS_CLEANUP})"


class RayClusterReconciler:
    """Keeps one head Pod for each RayCluster; ``requeue`` is the pause between looks without a cause."""

    def __init__(self, manager: Manager, *, clock: Clock, requeue: float) -> None:
        self._client = manager.client
        self._clock = clock
        self._requeue = requeue
        self._pods = manager.cache(PODS, label_selector=RAY_PODS)
        self._clusters = manager.cache(RAY_CLUSTERS)
        self._wiring = manager.controller(NAME, RAY_CLUSTERS, self.reconcile, when=edited).owns(PODS)

    async def reconcile(self, key: Key) -> Result:
        """Look at one cluster and do what is missing."""
        expectations = self._wiring.expectations
        view = expectations.check(key)
        if view is View.BEHIND:
            return Result.after(expectations.limit).saying(waiting="the cache to show what was written")
        observed = await observe(key, self._client, self._clusters, self._pods, view)
        if observed is None:
            return Result.forget()
        if observed.cluster.metadata.deletion_timestamp or externally_managed(observed.cluster.spec):
            return Result.done()
        expectations.forget(key)
        result = self._look_again()
        if not observed.heads:
            result = result.saying(created=await self._create_head(key, observed))
        return result.saying(status="written") if await self._publish(key, observed) else result

    async def _create_head(self, key: Key, observed: Observed) -> str:
        pod = await self._client.create(
            PODS, head_pod(observed.cluster), reason="the cluster has no head", owner=key
        )
        self._wiring.expectations.created(key, self._pods, pod)
        return str(pod["metadata"]["name"])

    async def _publish(self, key: Key, observed: Observed) -> bool:
        status = status_of(observed.cluster, observed.heads, self._clock.now())
        before = observed.cluster.raw.get("status") or {}
        if not changed(before, status):
            return False
        written = await self._client.patch(
            RAY_CLUSTERS,
            key.name,
            key.namespace,
            {"status": status},
            subresource="status",
            reason="the status has changed",
            owner=key,
        )
        self._wiring.expectations.changed(key, self._clusters, written)
        return True

    def _look_again(self) -> Result:
        return Result.after(self._requeue) if self._requeue > 0 else Result.done()
