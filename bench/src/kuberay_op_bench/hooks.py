"""What a hook call costs: nobody listening, one plugin, one YAML plugin; and what a hanging one costs."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pluggy

from kuberay_op.declarative.manifest import API_VERSION, parse_manifest
from kuberay_op.declarative.plugin import DeclarativePlugin
from kuberay_op.frozen import freeze
from kuberay_op.hooks import Merge, Scope, hookimpl, specs
from kuberay_op.hooks.dispatch import Dispatcher
from kuberay_op.hooks.isolation import Workshop
from kuberay_op.hooks.meter import PluginMeter
from kuberay_op.hooks.typed import Hooks
from kuberay_op.metrics import Metrics
from kuberay_op_bench import hanging
from kuberay_op_bench.report import Measure, Report

YAML_PLUGIN = {
    "apiVersion": API_VERSION,
    "kind": "Plugin",
    "name": "labels",
    "summary": "Label Services.",
    "patches": [
        {
            "name": "label",
            "when": 'owner.kind == "RayCluster"',
            "merge": {"metadata": {"labels": {"team": "${owner.metadata.labels.team}"}}},
        }
    ],
}

OWNER = {"kind": "RayCluster", "metadata": {"name": "a", "labels": {"team": "ml"}}}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a-head-svc"}, "spec": {}}


def run(*, rounds: int = 5, calls: int = 20_000, bad: int = 16, good: int = 10) -> Report:
    """Measure one call of a hook, in microseconds of CPU, the median of the rounds; then hanging plugins."""
    silent = SimpleNamespace(kuberay_finalizers=hookimpl(lambda: None))
    patching = SimpleNamespace(
        kuberay_patch_object=hookimpl(lambda obj: Merge({"metadata": {"labels": {"a": "b"}}}))
    )
    yaml_plugin = DeclarativePlugin(parse_manifest(YAML_PLUGIN, "bench"))
    scope = Scope(owner=freeze(OWNER), now=datetime.now(UTC), gate=lambda _: True)
    cases: dict[str, tuple[Callable[[], Any], float | None]] = {
        "hook call, no implementation": (_finalizers(scope), 5.0),
        "hook call, one implementation": (_finalizers(scope, silent), 20.0),
        "object patched by one Python plugin": (_patched(scope, patching), None),
        "object patched by one YAML plugin": (_patched(scope, yaml_plugin), None),
    }
    measures = []
    for name, (call, target) in cases.items():
        taken = [_microseconds(call, calls) for _ in range(rounds)]
        measures.append(Measure(name, round(statistics.median(taken), 2), "µs", at_most=target))
    hops = [asyncio.run(_hops(calls // 10)) for _ in range(rounds)]
    measures.append(Measure("hop to a thread and back", round(statistics.median(hops), 1), "µs"))
    measures += hanging.measures(bad, good)
    settings = {"calls": calls, "rounds": rounds, "objects for which a plugin hangs": bad}
    return Report("hooks", tuple(measures), settings)


def _hooks(plugins: tuple[Any, ...]) -> Hooks:
    manager = pluggy.PluginManager(specs.PROJECT)
    manager.add_hookspecs(specs)
    for number, plugin in enumerate(plugins):
        manager.register(plugin, f"plugin-{number}")
    return Hooks(Dispatcher(manager, meter=PluginMeter(Metrics(process=False))))


def _finalizers(scope: Scope, *plugins: Any) -> Callable[[], Any]:
    hooks = _hooks(plugins)
    return lambda: hooks.finalizers(scope)


def _patched(scope: Scope, *plugins: Any) -> Callable[[], Any]:
    hooks = _hooks(plugins)
    return lambda: hooks.patch_object(scope, SERVICE)


async def _hops(calls: int) -> float:
    workshop = Workshop()
    began = time.process_time()
    for _ in range(calls):
        await workshop.run(int)
    workshop.close()
    return (time.process_time() - began) / calls * 1e6


def _microseconds(call: Callable[[], Any], calls: int) -> float:
    began = time.process_time()
    for _ in range(calls):
        call()
    return (time.process_time() - began) / calls * 1e6
