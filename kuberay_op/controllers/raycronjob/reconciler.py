"""The RayCronJob controller: reads what there is and hands it to the pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from kuberay_op.api import labels
from kuberay_op.api.names import is_ours
from kuberay_op.clock import Clock
from kuberay_op.config import Config
from kuberay_op.controllers.act import Actor
from kuberay_op.controllers.pipeline import Observed, Pipeline
from kuberay_op.controllers.plugins import Kinds
from kuberay_op.controllers.raycronjob.desired import RayCronJobKind
from kuberay_op.controllers.raycronjob.metrics import CronMetrics
from kuberay_op.controllers.raycronjob.runs import job_news
from kuberay_op.controllers.resources import RAY_CRON_JOBS, RAY_JOBS
from kuberay_op.frozen import FrozenDict, freeze
from kuberay_op.hooks.typed import Hooks
from kuberay_op.kube.cache import OWNER
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.events import Events
from kuberay_op.kube.resource import PODS, Key
from kuberay_op.metrics import Metrics
from kuberay_op.runtime.expectations import View
from kuberay_op.runtime.manager import Manager
from kuberay_op.runtime.result import Result
from kuberay_op.runtime.wiring import edited

NAME: Final = "raycronjob"


class RayCronJobReconciler:
    """Makes a RayJob each time the schedule of a RayCronJob says so."""

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
    ) -> None:
        self._client = manager.client
        self._crons = manager.cache(RAY_CRON_JOBS)
        others = [resource for resource in kinds.served if resource not in (PODS, RAY_JOBS)]
        # What plugins make may be watched by another controller already, which then has chosen the selector.
        self._stores = {resource: manager.cache(resource) for resource in (RAY_JOBS, *others)}
        self._wiring = manager.controller(NAME, RAY_CRON_JOBS, self.reconcile, when=edited)
        self._wiring.owns(RAY_JOBS, when=job_news).owns(*others)
        self._metrics = CronMetrics(metrics.registry, self._crons.list) if config.enable_metrics else None
        recorder = events.recorder(f"{NAME}-controller")
        self._pipeline = Pipeline(
            RayCronJobKind(self._metrics),
            hooks=Hooks(hooks.dispatcher),  # without the batch scheduler: the gangs are those of the jobs
            actor=Actor(
                manager.client,
                owner=RAY_CRON_JOBS,
                resources={(resource.api_version, resource.kind): resource for resource in self._stores},
                stores={**self._stores, RAY_CRON_JOBS: self._crons},
                expectations=self._wiring.expectations,
                recorder=recorder,
            ),
            recorder=recorder,
            gates=config.gates,
            clock=clock,
            missing=kinds.missing,
            rng=rng,
        )

    async def reconcile(self, key: Key) -> Result:
        """One pass over one RayCronJob."""
        expectations = self._wiring.expectations
        view = expectations.check(key)
        if view is View.BEHIND:
            return Result.after(expectations.limit).saying(waiting="the cache to show what was written")
        observed = await self._observe(key, view)
        if observed is None:
            self._pipeline.forget(key)
            if self._metrics is not None:
                self._metrics.forget(key)
            return Result.forget()
        expectations.forget(key)
        return await self._pipeline.run(key, observed)

    async def _observe(self, key: Key, view: View) -> Observed | None:
        """The RayCronJob and its children: from the caches, or from the server if the caches are overdue."""
        owner = self._crons.get(key)
        if owner is not None and view is View.OVERDUE:
            try:
                owner = freeze(await self._client.get(RAY_CRON_JOBS, key.name, key.namespace, owner=key))
            except NotFound:
                owner = None
        if owner is None:
            return None
        uid = str(owner["metadata"]["uid"])
        children: list[Mapping[str, Any]] = []
        for resource, store in self._stores.items():
            found: Sequence[Mapping[str, Any]] = store.by_index(OWNER, uid)
            if view is View.OVERDUE:
                marks = f"{labels.CRONJOB_NAME}={key.name}" if resource == RAY_JOBS else labels.PLUGIN
                listed = await self._client.list(resource, key.namespace, label_selector=marks, owner=key)
                found = [freeze(obj) for obj in listed.items]
            # Items of watches of one kind may come without it. Frozen, since plugins get to see them.
            kind = {"apiVersion": resource.api_version, "kind": resource.kind}
            children += [FrozenDict({**kind, **obj}) for obj in found if is_ours(obj, uid)]
        return Observed(owner, children)
