"""The RayJob controller: reads what there is, lets Ray be asked, and hands all of it to the pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any, Final

from kuberay_op.api import labels, names
from kuberay_op.api.predicates import externally_managed
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.rayjob import RayJob
from kuberay_op.build.metadata import head_service_name
from kuberay_op.clock import Clock
from kuberay_op.config import Config
from kuberay_op.controllers.act import Actor
from kuberay_op.controllers.pipeline import Observed, Pipeline
from kuberay_op.controllers.plugins import Kinds
from kuberay_op.controllers.rayjob.deadlines import alarm
from kuberay_op.controllers.rayjob.desired import RayJobKind
from kuberay_op.controllers.rayjob.following import Following
from kuberay_op.controllers.rayjob.metrics import JobMetrics
from kuberay_op.controllers.rayjob.running import asked_since
from kuberay_op.controllers.rayjob.situation import RaySays, cluster_key, mine
from kuberay_op.controllers.rayjob.submitter import container_status, ended
from kuberay_op.controllers.resources import OUR_JOBS, RAY_CLUSTERS, RAY_JOBS
from kuberay_op.errors import OperatorError
from kuberay_op.frozen import FrozenDict, freeze
from kuberay_op.hooks.typed import Hooks
from kuberay_op.kube.cache import OWNER
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.events import Events
from kuberay_op.kube.resource import JOBS, PODS, SERVICES, Key, Resource, key_of
from kuberay_op.metrics import Metrics
from kuberay_op.plan.actions import Manifest
from kuberay_op.ray.client import Connector
from kuberay_op.runtime.expectations import View
from kuberay_op.runtime.manager import Manager
from kuberay_op.runtime.result import Result
from kuberay_op.runtime.wiring import edited

NAME: Final = "rayjob"


#: The index of RayJobs by the cluster they run on, their own or another.
CLUSTER: Final = "cluster"

#: Fields of the status that are copies of something else.
COPIES: Final = ("rayClusterStatus", "rayJobInfo")


class RayJobReconciler:
    """Runs jobs on Ray clusters that are made for them, or that are there."""

    def __init__(
        self,
        manager: Manager,
        *,
        clock: Clock,
        hooks: Hooks,
        config: Config,
        events: Events,
        kinds: Kinds,
        rng: Random,
        metrics: Metrics,
        connector: Connector,
    ) -> None:
        self._client = manager.client
        self._clock = clock
        self._jobs = manager.cache(RAY_JOBS)
        self._jobs.add_index(CLUSTER, _cluster_of)
        self._clusters = manager.cache(RAY_CLUSTERS)
        self._pods = manager.cache(PODS)
        self._services = manager.cache(SERVICES)
        self._submitters = manager.cache(JOBS, label_selector=OUR_JOBS)
        ours = (RAY_CLUSTERS, JOBS, SERVICES)
        self._others = {
            resource: manager.cache(resource)
            for resource in kinds.served
            if resource not in (*ours, PODS, RAY_JOBS)
        }
        self._wiring = manager.controller(NAME, RAY_JOBS, self.reconcile, when=edited)
        self._wiring.owns(JOBS, SERVICES, *self._others)
        self._wiring.watches(RAY_CLUSTERS, self._on_cluster)
        self._wiring.watches(PODS, self._with_sidecar, when=_submitter_news)
        self._following = Following(
            connector,
            manager.client,
            wake=self._wiring.wake,
            clock=clock,
            rng=rng,
            proxied=config.use_kubernetes_proxy,
        )
        self._wiring.when_over(self._following.clear)
        manager.on_stop(self._following.close)
        self._metrics = JobMetrics(metrics.registry, self._jobs.list) if config.enable_metrics else None
        recorder = events.recorder(f"{NAME}-controller")
        stores = {
            RAY_CLUSTERS: self._clusters,
            JOBS: self._submitters,
            SERVICES: self._services,
            **self._others,
        }
        self._pipeline = Pipeline(
            RayJobKind(config, rng=rng, metrics=self._metrics),
            hooks=hooks,
            actor=Actor(
                manager.client,
                owner=RAY_JOBS,
                resources={(each.api_version, each.kind): each for each in (*stores, RAY_JOBS)},
                stores={**stores, RAY_JOBS: self._jobs},
                expectations=self._wiring.expectations,
                recorder=recorder,
                whole=COPIES,
            ),
            recorder=recorder,
            gates=config.gates,
            clock=clock,
            missing=kinds.missing,
            rng=rng,
            config=config,
        )

    async def reconcile(self, key: Key) -> Result:
        """One pass over one RayJob."""
        expectations = self._wiring.expectations
        view = expectations.check(key)
        if view is View.BEHIND:
            return Result.after(expectations.limit).saying(waiting="the cache to show what was written")
        owner = self._jobs.get(key)
        if owner is not None and view is View.OVERDUE:
            owner = await self._read(RAY_JOBS, key.name, key)
        if owner is None:
            self._forget(key)
            return Result.forget()
        job = RayJob(dict(owner))
        if externally_managed(job.spec):
            return Result.done()
        observed = await self._observe(key, owner, job, view)
        expectations.forget(key)
        try:
            return await self._pipeline.run(key, observed)
        except OperatorError:
            # The back-off, or the wait for an edit, may be longer than a deadline.
            seconds = alarm(job, self._clock.now())
            if seconds is not None:
                self._wiring.controller.queue.add_after(key, seconds)
            raise

    def _forget(self, key: Key) -> None:
        self._pipeline.forget(key)
        self._following.forget(key)
        if self._metrics is not None:
            self._metrics.forget(key)

    # --- what there is

    async def _observe(self, key: Key, owner: FrozenDict, job: RayJob, view: View) -> Observed:
        """The job and what it has or uses: from the caches, or from the server if they are overdue."""
        reading = self._read if view is View.OVERDUE else self._cached
        children: list[Manifest] = []

        async def add(resource: Resource, name: str, *, own: bool) -> FrozenDict | None:
            found = await reading(resource, name, key) if name else None
            if found is None or (own and not mine(job, found)):
                return None  # what has the name and is not the job's is none of our business
            children.append(_of_kind(resource, found))
            return found

        found = await add(RAY_CLUSTERS, cluster_key(job), own=False)
        await add(JOBS, job.name, own=True)
        service = await add(SERVICES, names.head_service(job.name), own=True)
        cluster = RayCluster(dict(found)) if found is not None else None
        if cluster is not None:
            name = cluster.status.head.service_name or head_service_name(cluster)
            if service is None or name != service["metadata"]["name"]:
                await add(SERVICES, name, own=False)
            heads = self._pods.by_index(OWNER, cluster.metadata.uid)
            children += [_of_kind(PODS, pod) for pod in heads if _is_head(pod)]
        for resource, store in self._others.items():
            children += [_of_kind(resource, obj) for obj in store.by_index(OWNER, job.metadata.uid)]
        says = self._following.look(key, job, cluster)
        self._hurry(key, children, job, says)
        return Observed(_of_kind(RAY_JOBS, owner), children, says)

    def _hurry(self, key: Key, children: Iterable[Manifest], job: RayJob, says: RaySays) -> None:
        """A submitter that has ended says that the job probably has, too: ask."""
        if says.job is None or (says.job.now is not None and says.job.now.terminal):
            return
        finished = ended(children, job.name)
        if finished is not None and not asked_since(finished, says.job):
            self._following.hurry(key)

    async def _cached(self, resource: Resource, name: str, key: Key) -> FrozenDict | None:
        stores = {
            RAY_CLUSTERS: self._clusters,
            JOBS: self._submitters,
            SERVICES: self._services,
        }
        return stores[resource].get(Key(key.namespace, name))

    async def _read(self, resource: Resource, name: str, key: Key) -> FrozenDict | None:
        try:
            found: FrozenDict = freeze(await self._client.get(resource, name, key.namespace, owner=key))
        except NotFound:
            return None
        return found

    # --- whom it concerns

    def _on_cluster(self, cluster: FrozenDict) -> Iterable[Key]:
        """The jobs that run on a cluster."""
        found = self._jobs.by_index(CLUSTER, key_of(cluster))
        return [key_of(job) for job in found]

    def _with_sidecar(self, pod: FrozenDict) -> Iterable[Key]:
        """The job whose submitter is in this head Pod."""
        if not _is_head(pod) or container_status(pod) is None:
            return ()
        name = (pod["metadata"].get("labels") or {}).get(labels.CLUSTER, "")
        key = Key(pod["metadata"].get("namespace") or "", name)
        return [key_of(job) for job in self._jobs.by_index(CLUSTER, key)]


def _cluster_of(job: Mapping[str, Any]) -> Iterable[Key]:
    name = cluster_key(RayJob(dict(job)))
    return (Key(job["metadata"].get("namespace") or "", name),) if name else ()


def _is_head(pod: Mapping[str, Any]) -> bool:
    return (pod["metadata"].get("labels") or {}).get(labels.NODE_TYPE) == labels.HEAD


def _submitter_news(old: FrozenDict, new: FrozenDict) -> bool:
    """Whether a head Pod tells something new about the submitter in it."""
    return container_status(old) != container_status(new)


def _of_kind(resource: Resource, obj: Mapping[str, Any]) -> FrozenDict:
    """Items of watches of one kind may come without it. Frozen, since plugins get to see them."""
    return FrozenDict({"apiVersion": resource.api_version, "kind": resource.kind, **obj})
