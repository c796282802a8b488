"""A whole operator inside a test: caches, controllers and the plugins you give it, on a real API server.

::

    class Mine:
        @hookimpl
        def kuberay_patch_pod(self, pod):
            return Merge({"metadata": {"labels": {"team": "ml"}}})

    async with running_operator(plane.kubeconfig, namespaces=[here], plugins={"mine": Mine()}) as operator:
        cluster = make.raycluster("a", make.namespace(here))
        await operator.client.create(RAY_CLUSTERS, cluster, reason="a test")

A plugin is an object or module with hooks, or a manifest (a dict, as read from ``plugin.yaml``).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Any, Final

import pluggy

from kuberay_op.clock import Clock, SystemClock
from kuberay_op.config import Config
from kuberay_op.controllers.all import add_controllers
from kuberay_op.declarative.manifest import parse_manifest
from kuberay_op.declarative.options import checked_options
from kuberay_op.features import Gates
from kuberay_op.hooks import specs
from kuberay_op.hooks.dispatch import Dispatcher, Meter
from kuberay_op.hooks.isolation import Workshop
from kuberay_op.hooks.meter import PluginMeter
from kuberay_op.hooks.typed import Hooks
from kuberay_op.kube.client import Client
from kuberay_op.loader.load import register, register_module
from kuberay_op.metrics import Metrics
from kuberay_op.ray.client import Transport
from kuberay_op.runtime.manager import Manager

#: Longest wait for something that is about to happen; only a failing test waits this long.
PATIENCE: Final = 60.0

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RunningOperator:
    """An operator at work."""

    client: Client
    manager: Manager
    metrics: Metrics
    hooks: Hooks

    def calls(self, plugin: str, outcome: str = "") -> float:
        """How often the plugin was called, from the metric; with this ``outcome`` or any."""
        return sum(
            sample.value
            for family in self.metrics.registry.collect()
            for sample in family.samples
            if sample.name == "kuberay_op_plugin_calls_total"
            and sample.labels["plugin"] == plugin
            and outcome in ("", sample.labels["outcome"])
        )


def make_hooks(
    plugins: Mapping[str, Any],
    *,
    options: Mapping[str, Mapping[str, Any]] = _NOTHING,
    scheduler: str = "",
    workshop: Workshop | None = None,
    meter: Meter | None = None,
) -> Hooks:
    """The hooks of these plugins, asked in this order; ``scheduler`` names the batch scheduler among them."""
    manager = pluggy.PluginManager(specs.PROJECT)
    manager.add_hookspecs(specs)
    checked: dict[str, Mapping[str, Any]] = {}
    for name, plugin in reversed(list(plugins.items())):
        if isinstance(plugin, dict):
            manifest = parse_manifest(plugin, name)
            checked[name] = checked_options(manifest, options.get(name, _NOTHING))
            register(manager, manifest)
        else:
            checked[name] = options.get(name, _NOTHING)
            register_module(manager, plugin, name)
    dispatcher = Dispatcher(manager, options=checked, workshop=workshop, meter=meter)
    return Hooks(dispatcher, scheduler=scheduler)


@asynccontextmanager
async def running_operator(
    kubeconfig: str | os.PathLike[str],
    *,
    namespaces: Sequence[str] = (),
    plugins: Mapping[str, Any] = _NOTHING,
    options: Mapping[str, Mapping[str, Any]] = _NOTHING,
    scheduler: str = "",
    gates: Gates | None = None,
    concurrency: int = 8,
    requeue: float = 300.0,
    clock: Clock | None = None,
    config: Config | None = None,
    ray: Transport | None = None,
) -> AsyncIterator[RunningOperator]:
    """Run the operator, without leader election, until the block is left. The CRDs must be installed.

    ``clock`` must go on by itself, since the API server's does; it may be set, as a wall clock may. ``ray``
    is where Ray is found instead of on the network, such as ``FakeRay(auto=True).transport()``.
    """
    rng, metrics, workshop = Random(), Metrics(process=False), Workshop()  # noqa: S311 (jitter)
    clock = clock or SystemClock()
    hooks = make_hooks(
        plugins, options=options, scheduler=scheduler, workshop=workshop, meter=PluginMeter(metrics)
    )
    async with await Client.connect(kubeconfig, qps=0, clock=clock, rng=rng) as client:
        manager = Manager(
            client, clock=clock, rng=rng, metrics=metrics, namespaces=namespaces, concurrency=concurrency
        )
        await add_controllers(
            manager,
            hooks=hooks,
            gates=gates or Gates.default(),
            clock=clock,
            metrics=metrics,
            requeue=requeue,
            config=config,
            ray=ray,
        )
        running = asyncio.create_task(manager.run(), name="manager")
        try:
            yield RunningOperator(client, manager, metrics, hooks)
        finally:
            manager.stop.set()
            await running
            workshop.close()


async def eventually(question: Callable[[], Awaitable[Any]], patience: float = PATIENCE) -> Any:
    """Ask until the answer is true, and give it; a test that waits in vain fails with a timeout."""
    async with asyncio.timeout(patience):
        while not (answer := await question()):  # noqa: ASYNC110 (the answer is on the server)
            await asyncio.sleep(0.05)
    return answer
