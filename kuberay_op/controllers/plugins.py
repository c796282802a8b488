"""From the configuration to plugins, and from what they watch to what the cluster serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from kuberay_op.config import Config
from kuberay_op.errors import Misconfigured
from kuberay_op.hooks.meter import PluginMeter
from kuberay_op.hooks.scope import Watch
from kuberay_op.hooks.typed import Hooks
from kuberay_op.kube.discovery import Discovery
from kuberay_op.kube.resource import Resource
from kuberay_op.loader.choose import Wanted
from kuberay_op.loader.load import Plugins, load_plugins
from kuberay_op.logs import get_logger
from kuberay_op.metrics import Metrics

log = get_logger("setup")


def wanted(config: Config) -> Wanted:
    """What the configuration says about plugins; the flag counts over the file."""
    enabled = {name: bool(plugin.get("enabled", True)) for name, plugin in config.plugins.items()}
    for word in _words(config.enable_plugins):
        enabled[word.removeprefix("-")] = not word.startswith("-")
    return Wanted(
        enabled=enabled,
        options={name: plugin.get("options") or {} for name, plugin in config.plugins.items()},
        batch_scheduler=config.batch_scheduler,
        enable_batch_scheduler=config.enable_batch_scheduler,
    )


def plugins_of(config: Config, metrics: Metrics) -> Plugins:
    """Load the plugins; raises Misconfigured when that is not possible."""
    folders = [Path(folder) for folder in _words(config.plugin_folders)]
    return load_plugins(wanted(config), config.gates, folders=folders, meter=PluginMeter(metrics))


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kinds of objects that plugins make, as far as this cluster has them."""

    served: tuple[Resource, ...] = ()
    #: By apiVersion and kind.
    missing: Mapping[tuple[str, str], Watch] = field(default_factory=dict)


async def find_kinds(hooks: Hooks, discovery: Discovery) -> Kinds:
    """Look for the kinds that plugins want watched; what the cluster lacks is said once, here."""
    served: dict[Resource, None] = {}
    missing: dict[tuple[str, str], Watch] = {}
    for plugin, watch in await hooks.dispatcher.in_thread(hooks.watches):
        resource = await discovery.find(watch.api_version, watch.kind)
        if resource is None:
            say = log.info if watch.optional else log.warning
            say(
                "the cluster lacks an API that a plugin uses",
                plugin=plugin,
                api=watch.api_version,
                kind=watch.kind,
            )
            missing[watch.api_version, watch.kind] = watch
        elif not resource.namespaced:
            raise Misconfigured(
                f"plugin {plugin!r} watches {watch.kind} of {watch.api_version}, which does not live in "
                "namespaces and so cannot belong to a Ray object"
            )
        else:
            served[resource] = None
    return Kinds(tuple(served), MappingProxyType(missing))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
