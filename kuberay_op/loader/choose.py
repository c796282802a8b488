"""Which plugins are on, and in which order: a pure decision from the configuration and what is installed."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from kuberay_op.config import WORKLOAD_AWARE, scheduler_name
from kuberay_op.declarative.manifest import PluginManifest
from kuberay_op.errors import Misconfigured

#: On unless switched off, when installed.
DEFAULT_PLUGINS: Final = ("autoscaler-rbac", "gcs-ft-redis")

#: What the reference's batch schedulers are called, and the package that brings each.
SCHEDULER_PACKAGES: Final[dict[str, str]] = {
    "volcano": "kuberay-op-volcano",
    "yunikorn": "kuberay-op-yunikorn",
    "scheduler-plugins": "kuberay-op-scheduler-plugins",
    "kai-scheduler": "kuberay-op-kai",
    WORKLOAD_AWARE: "kuberay-op-kubernetes-was",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the configuration says about plugins."""

    #: ``True`` switches a plugin on, ``False`` off; what is not named keeps its default.
    enabled: Mapping[str, bool] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: ``batchScheduler`` (or the flag ``--batch-scheduler``).
    batch_scheduler: str = ""
    #: The deprecated ``enableBatchScheduler``.
    enable_batch_scheduler: bool = False


@dataclass(frozen=True, slots=True)
class Chosen:
    """The plugins that are on, in the order in which they are asked."""

    manifests: Mapping[str, PluginManifest]
    #: The plugin that provides the batch scheduler, if there is one.
    scheduler: str = ""
    #: Why each is on or off, for the start-up summary.
    reasons: Mapping[str, str] = field(default_factory=dict)


def choose(
    available: Collection[str],
    manifest_of: Callable[[str], PluginManifest],
    wanted: Wanted,
    gate: Callable[[str], bool],
) -> Chosen:
    """Decide which plugins are on. Reads the manifests of those, and of all when a scheduler is wanted."""
    refuse_unknown("plugin", [*wanted.enabled, *wanted.options], available)
    reasons = {}
    for name in sorted(available):
        if name in wanted.enabled:
            reasons[name] = "on: configured" if wanted.enabled[name] else "off: configured"
        elif name in DEFAULT_PLUGINS:
            reasons[name] = "on: default"
        else:
            reasons[name] = "off: default"
    for name in DEFAULT_PLUGINS:
        if name not in available:
            reasons[name] = f"missing: not installed; the package is kuberay-op-{name}"

    if wanted.batch_scheduler == WORKLOAD_AWARE:
        raise Misconfigured(
            f"the batch scheduler {WORKLOAD_AWARE!r} is not chosen by name; turn on the feature gate "
            "KubernetesWAS"
        )
    scheduler = ""
    name = scheduler_name(
        wanted.batch_scheduler,
        legacy=wanted.enable_batch_scheduler,
        workload_aware=gate("KubernetesWAS"),
    )
    if name:
        scheduler = _provider(name, available, manifest_of, wanted)
        reasons[scheduler] = f"on: provides the batch scheduler {name!r}"

    on = {name: manifest_of(name) for name, reason in reasons.items() if reason.startswith("on")}
    for name, manifest in list(on.items()):
        feature = manifest.feature_gate.name
        if feature and not gate(feature):
            reasons[name] = f"off: gate {feature} is off"
            del on[name]
    for name, manifest in on.items():
        role = manifest.provides.batch_scheduler
        if role and name != scheduler:
            because = f"{scheduler!r} is the batch scheduler" if scheduler else f"set batchScheduler: {role}"
            raise Misconfigured(f"plugin {name!r} provides the batch scheduler {role!r}, but {because}")
    return Chosen({name: on[name] for name in _ordered(on)}, scheduler, reasons)


def _provider(
    scheduler: str,
    available: Collection[str],
    manifest_of: Callable[[str], PluginManifest],
    wanted: Wanted,
) -> str:
    by_scheduler: dict[str, list[str]] = {}
    for name in sorted(available):
        provided = manifest_of(name).provides.batch_scheduler
        if provided and wanted.enabled.get(name, True):
            by_scheduler.setdefault(provided, []).append(name)
    providers = by_scheduler.get(scheduler, [])
    if len(providers) > 1:
        raise Misconfigured(
            f"the batch scheduler {scheduler!r} is provided by {' and '.join(map(repr, providers))}; "
            "switch off all but one"
        )
    if not providers:
        package = SCHEDULER_PACKAGES.get(scheduler)
        if package:
            raise Misconfigured(f"the batch scheduler {scheduler!r} is not installed; install {package!r}")
        refuse_unknown("batch scheduler", [scheduler], [*by_scheduler, *SCHEDULER_PACKAGES])
    return providers[0]


def refuse_unknown(what: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise Misconfigured for a name that is not known, with the nearest one and all of them."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ";"
            listed = ", ".join(sorted(known)) or "none"
            raise Misconfigured(f"there is no {what} {name!r}{hint} known are: {listed}")


def _ordered(manifests: Mapping[str, PluginManifest]) -> list[str]:
    """By ``after``, then by name. A plugin named in ``after`` that is off does not matter."""
    graph = {
        name: sorted(other for other in manifest.after if other in manifests)
        for name, manifest in sorted(manifests.items())
    }
    sorter = TopologicalSorter(graph)
    try:
        sorter.prepare()
    except CycleError as error:
        raise Misconfigured(
            f"plugins are after each other in a circle: {' → '.join(error.args[1])}"
        ) from None
    order: list[str] = []
    ready: list[str] = []
    while sorter.is_active():
        ready = sorted([*ready, *sorter.get_ready()])
        first = ready.pop(0)
        order.append(first)
        sorter.done(first)
    return order
