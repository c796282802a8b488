"""The RayCluster controller: reads what there is and hands it to the pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from kuberay_op.api import labels
from kuberay_op.api.names import is_ours
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.build.auth import needs_secret, secret_name
from kuberay_op.build.gcs_ft import claim_name
from kuberay_op.clock import Clock
from kuberay_op.config import Config
from kuberay_op.controllers.act import Actor
from kuberay_op.controllers.mtls import TlsSecrets, issue_news
from kuberay_op.controllers.pauses import Pauses
from kuberay_op.controllers.pipeline import Observed, Pipeline
from kuberay_op.controllers.plugins import Kinds
from kuberay_op.controllers.raycluster.desired import RayClusterKind, just_edited
from kuberay_op.controllers.raycluster.filters import pod_news
from kuberay_op.controllers.raycluster.metrics import ClusterMetrics
from kuberay_op.controllers.resources import CERTIFICATES, ISSUERS, OUR_JOBS, RAY_CLUSTERS, ROUTES
from kuberay_op.frozen import FrozenDict, freeze
from kuberay_op.hooks.typed import Hooks
from kuberay_op.kube.cache import OWNER
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.events import Events
from kuberay_op.kube.resource import (
    INGRESSES,
    JOBS,
    NETWORK_POLICIES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SECRETS,
    SERVICES,
    Key,
    Resource,
)
from kuberay_op.kube.trim import EVERYTHING, Trim
from kuberay_op.metrics import Metrics
from kuberay_op.runtime.expectations import View
from kuberay_op.runtime.manager import Manager
from kuberay_op.runtime.result import Result
from kuberay_op.runtime.wiring import edited

NAME: Final = "raycluster"

#: Which of its objects concern us, for each kind that we make. The Services of a cluster have no label in
#: common. Secrets are not among them: they are read by name, and only their metadata is kept.
SELECTORS: Final[Mapping[Resource, str | None]] = {
    PODS: f"{labels.NODE_TYPE} in ({labels.HEAD}, {labels.WORKER}, {labels.REDIS_CLEANUP})",
    SERVICES: None,
    INGRESSES: labels.CLUSTER,
    ROUTES: labels.CLUSTER,
    PERSISTENT_VOLUME_CLAIMS: labels.CLUSTER,
}

#: What is kept of an object, where that is not all. Of a Pod's spec little is ever asked for, and with tens
#: of thousands of Pods it would be most of our memory.
TRIMS: Final[Mapping[Resource, Trim]] = {
    PODS: Trim.only("spec.containers.name", "spec.nodeName", "spec.restartPolicy", "status"),
}


#: Kinds that other controllers of RayClusters keep in caches, and the gate of each.
COMPANIONS: Final[Mapping[Resource, str]] = {
    NETWORK_POLICIES: "RayClusterNetworkPolicy",
    ISSUERS: "RayClusterMTLS",
    CERTIFICATES: "RayClusterMTLS",
}


class RayClusterReconciler:
    """Keeps RayClusters as they should be.

    ``kinds`` are those of children that plugins make; ``routes`` is whether dashboards get a Route;
    ``cert_manager`` is whether the cluster has its API, None when nobody asked.
    """

    def __init__(
        self,
        manager: Manager,
        *,
        clock: Clock,
        requeue: float,
        hooks: Hooks,
        config: Config,
        events: Events,
        kinds: Kinds,
        rng: Random,
        metrics: Metrics,
        routes: bool = False,
        cert_manager: bool | None = None,
    ) -> None:
        self._client = manager.client
        self._clusters = manager.cache(RAY_CLUSTERS)
        self._selectors = selectors(config, kinds, routes=routes)
        stores = {
            resource: manager.cache(resource, label_selector=selector, trim=TRIMS.get(resource, EVERYTHING))
            for resource, selector in self._selectors.items()
        }
        self._stores = stores
        others = [resource for resource in stores if resource != PODS]
        self._wiring = manager.controller(NAME, RAY_CLUSTERS, self.reconcile, when=edited)
        self._wiring.owns(PODS, when=pod_news).owns(*others)
        secrets = None
        if cert_manager:
            # The same selector as that of the controller for certificates, which shares this cache.
            selector = None if CERTIFICATES in kinds.served else labels.CLUSTER
            certificates = manager.cache(CERTIFICATES, label_selector=selector)
            self._wiring.owns(CERTIFICATES, when=issue_news)
            secrets = TlsSecrets(manager.client, certificates)
        # Read at each scrape, in another thread: the list is taken in one step.
        self._metrics = (
            ClusterMetrics(metrics.registry, self._clusters.list) if config.enable_metrics else None
        )
        recorder = events.recorder(f"{NAME}-controller")
        actor = Actor(
            manager.client,
            owner=RAY_CLUSTERS,
            resources={(resource.api_version, resource.kind): resource for resource in (*stores, SECRETS)},
            stores={**stores, RAY_CLUSTERS: self._clusters},
            expectations=self._wiring.expectations,
            recorder=recorder,
        )
        pauses = Pauses(clock=clock, rng=rng)
        self._pipeline = Pipeline(
            RayClusterKind(config, routes=routes, rng=rng, metrics=self._metrics, begun=pauses.begun),
            hooks=hooks,
            actor=actor,
            recorder=recorder,
            gates=config.gates,
            clock=clock,
            requeue=requeue,
            missing=kinds.missing,
            rng=rng,
            before_pods=secrets.missing if secrets else None,
            cert_manager=cert_manager,
            pauses=pauses,
            config=config,
        )

    async def reconcile(self, key: Key) -> Result:
        """One pass over one cluster."""
        expectations = self._wiring.expectations
        view = expectations.check(key)
        if view is View.BEHIND:
            return Result.after(expectations.limit).saying(waiting="the cache to show what was written")
        observed = await self._observe(key, view)
        if observed is None:
            self._forget(key)
            return Result.forget()
        expectations.forget(key)
        return await self._pipeline.run(key, observed)

    def _forget(self, key: Key) -> None:
        self._pipeline.forget(key)
        if self._metrics is not None:
            self._metrics.forget(key)

    async def _observe(self, key: Key, view: View) -> Observed | None:
        """The cluster and its children: from the caches, or from the server if the caches are overdue."""
        owner = self._clusters.get(key)
        if owner is not None and view is View.OVERDUE:
            try:
                owner = freeze(await self._client.get(RAY_CLUSTERS, key.name, key.namespace, owner=key))
            except NotFound:
                owner = None
        if owner is None:
            return None
        cluster = RayCluster(owner)
        children: list[Mapping[str, Any]] = []
        for resource, store in self._stores.items():
            found: Sequence[Mapping[str, Any]] = store.by_index(OWNER, cluster.metadata.uid)
            if view is View.OVERDUE:
                selector = self._selectors[resource]
                if selector and resource in SELECTORS:
                    selector = f"{labels.CLUSTER}={key.name}"
                listed = await self._client.list(resource, key.namespace, label_selector=selector, owner=key)
                found = [freeze(obj) for obj in listed.items if _owned_by(obj, cluster.metadata.uid)]
            if resource == PERSISTENT_VOLUME_CLAIMS and not found:
                # One that outlives its cluster has no owner.
                left = store.get(Key(key.namespace, claim_name(cluster)))
                found = [left] if left is not None else []
            if resource == PODS:
                found = [pod for pod in found if _is_pod_of(pod, cluster)]
            # Items of watches of one kind may come without it. Frozen, since plugins get to see them.
            kind = {"apiVersion": resource.api_version, "kind": resource.kind}
            children += [FrozenDict({**kind, **obj}) for obj in found]
        if needs_secret(cluster):
            # That it is there is all that is kept: the token stands in its data, and may in annotations.
            for secret in await self._by_name(key, SECRETS, secret_name(cluster)):
                kind = {"apiVersion": secret["apiVersion"], "kind": secret["kind"]}
                children.append(freeze({**kind, "metadata": {"name": secret["metadata"]["name"]}}))
        if cluster.spec.gcs_fault_tolerance_options.storage.claim_name and just_edited(cluster):
            children += await self._by_name(key, PERSISTENT_VOLUME_CLAIMS, claim_name(cluster))
        return Observed(owner, children)

    async def _by_name(self, key: Key, resource: Resource, name: str) -> list[Mapping[str, Any]]:
        """An object that is in no cache, if it is there."""
        try:
            return [freeze(await self._client.get(resource, name, key.namespace, owner=key))]
        except NotFound:
            return []


def selectors(config: Config, kinds: Kinds, *, routes: bool) -> dict[Resource, str | None]:
    """What to watch, and by which labels: our own kinds as far as they are used, and those of plugins."""
    unused = {ROUTES} if not routes else set()
    if not config.gates.enabled("GCSFaultToleranceEmbeddedStorage"):
        unused.add(PERSISTENT_VOLUME_CLAIMS)
    chosen = {resource: selector for resource, selector in SELECTORS.items() if resource not in unused}
    for resource in kinds.served:
        if resource != PODS:  # plugins make none
            # Only what plugins made: a cache of all ConfigMaps, say, would be no use and much memory. Where
            # we have a selector of our own no single one finds both.
            gate = COMPANIONS.get(resource)
            ours = resource in chosen or (gate is not None and config.gates.enabled(gate))
            chosen[resource] = None if ours else labels.PLUGIN
    if JOBS in chosen:
        chosen[JOBS] = OUR_JOBS
    return chosen


def _owned_by(obj: Mapping[str, Any], uid: str) -> bool:
    return any(owner["uid"] == uid for owner in obj["metadata"].get("ownerReferences") or ())


def _is_pod_of(pod: Mapping[str, Any], cluster: RayCluster) -> bool:
    """Whether a Pod is the cluster's: ours to control, and not taken out by changing its label."""
    marks = pod["metadata"].get("labels") or {}
    return marks.get(labels.CLUSTER) == cluster.name and is_ours(dict(pod), cluster.metadata.uid)
