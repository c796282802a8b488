"""Makes the chosen plugins ready to be asked: imports what must be, registers, checks."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pluggy

from kuberay_op.declarative.manifest import PluginManifest
from kuberay_op.declarative.options import checked_options
from kuberay_op.declarative.plugin import DeclarativePlugin
from kuberay_op.errors import Misconfigured, OperatorError
from kuberay_op.features import Gates
from kuberay_op.hooks import specs
from kuberay_op.hooks.dispatch import Dispatcher, Meter
from kuberay_op.hooks.typed import Hooks
from kuberay_op.loader.choose import Chosen, Wanted, choose
from kuberay_op.loader.discover import Available, discover


@dataclass(frozen=True, slots=True)
class Plugins:
    """The plugins of this process: what is on and why, and the hooks to ask them."""

    chosen: Chosen
    hooks: Hooks
    #: Manifests of those that are installed and off, as far as they can be read.
    off: Mapping[str, PluginManifest] = field(default_factory=dict)


def load_plugins(
    wanted: Wanted,
    gates: Gates,
    *,
    folders: Iterable[Path] = (),
    meter: Meter | None = None,
    complete: bool = True,
) -> Plugins:
    """Discover, choose, import and register. Any mistake raises Misconfigured and names the plugin.

    Without ``complete`` required options may be missing, for tools that only look at plugins.
    """
    available = discover(folders)
    chosen = choose(available, lambda name: available[name].manifest(), wanted, gates.enabled)
    manager = pluggy.PluginManager(specs.PROJECT)
    manager.add_hookspecs(specs)
    options: dict[str, Mapping[str, Any]] = {}
    # pluggy calls the last registered first, so that the first in our order is registered last.
    for name, manifest in reversed(list(chosen.manifests.items())):
        options[name] = checked_options(manifest, wanted.options.get(name, {}), complete=complete)
        register(manager, manifest)
    dispatcher = Dispatcher(manager, options=options, meter=meter)
    others = {name: plugin for name, plugin in available.items() if name not in chosen.manifests}
    return Plugins(chosen, Hooks(dispatcher, scheduler=chosen.scheduler), _readable(others))


def _readable(plugins: Mapping[str, Available]) -> dict[str, PluginManifest]:
    found: dict[str, PluginManifest] = {}
    for name, plugin in plugins.items():
        try:
            found[name] = plugin.manifest()
        except Misconfigured:
            continue  # reported when somebody switches it on
    return found


def register(manager: pluggy.PluginManager, manifest: PluginManifest) -> None:
    """Register the YAML of a plugin, and its Python module if it names one."""
    name = manifest.name
    try:
        instance = DeclarativePlugin(manifest)
    except OperatorError as error:
        raise Misconfigured(f"plugin {name!r}: {error}") from error
    mistakes = instance.mistakes()
    if mistakes:
        raise Misconfigured(f"plugin {name!r}: {'; '.join(mistakes)}")
    if manifest.hooks:  # first, and so asked after the YAML
        try:
            module = importlib.import_module(manifest.hooks)
        except Exception as error:
            raise Misconfigured(f"plugin {name!r}: cannot import {manifest.hooks!r}: {error!r}") from error
        register_module(manager, module, name)
    manager.register(instance, name)


def register_module(manager: pluggy.PluginManager, module: Any, name: str) -> None:
    """Register a module or object with hook functions, refusing wrappers and misspelt hooks."""
    # pluggy wants a name per registration; the dispatcher shows the part before the colon.
    try:
        manager.register(module, f"{name}:python")
        manager.check_pending()
    except (pluggy.PluginValidationError, ValueError) as error:
        raise Misconfigured(f"plugin {name!r}: {error}") from error
    for hook in specs.FAMILIES:
        for implementation in getattr(manager.hook, hook).get_hookimpls():
            if implementation.plugin is not module:
                continue
            if implementation.wrapper or implementation.hookwrapper:
                raise Misconfigured(
                    f"plugin {name!r}: {hook} is a pluggy wrapper; wrappers are not called here, "
                    "write a plain implementation"
                )
            if hook not in specs.AWAITED and inspect.iscoroutinefunction(implementation.function):
                raise Misconfigured(f"plugin {name!r}: {hook} cannot be async; write a plain function")
