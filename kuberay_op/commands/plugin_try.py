"""``kuberay-op plugin try``: what a plugin would do to an object of yours, as a diff. Nothing is written."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pluggy
import yaml

from kuberay_op.api.defaults import with_defaults
from kuberay_op.config import Config
from kuberay_op.controllers.raycluster.desired import RayClusterKind
from kuberay_op.declarative.manifest import PluginManifest
from kuberay_op.declarative.options import checked_options
from kuberay_op.errors import Misconfigured
from kuberay_op.features import Gates
from kuberay_op.frozen import freeze, thaw
from kuberay_op.hooks import Scope, specs
from kuberay_op.hooks.dispatch import Dispatcher
from kuberay_op.hooks.typed import Extra, Hooks
from kuberay_op.loader.load import register
from kuberay_op.plan.actions import Cause, Manifest

#: The only kind with a controller so far.
KIND = "RayCluster"


@dataclass(frozen=True, slots=True)
class Tried:
    """One thing that the plugin would do."""

    #: ``refused``, ``warning``, ``changed`` or ``added``.
    what: str
    #: The object or the message.
    title: str
    diff: str = ""
    steps: tuple[str, ...] = ()


def read_owner(path: Path) -> Manifest:
    """The RayCluster in a file, completed as the API server would."""
    try:
        owner = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Misconfigured(f"{path}: cannot be read: {error}") from error
    if not isinstance(owner, dict) or owner.get("kind") != KIND:
        raise Misconfigured(f"{path}: must hold one {KIND}")
    metadata = {"namespace": "default", "uid": "", "generation": 1, **(owner.get("metadata") or {})}
    completed: Manifest = freeze(with_defaults({**owner, "metadata": metadata}))
    return completed


def read_settings(manifest: PluginManifest, settings: Mapping[str, str]) -> Mapping[str, Any]:
    """Options from the command line; what is not a text is read as YAML."""
    given = {
        name: text
        if name in manifest.options and manifest.options[name].type == "str"
        else yaml.safe_load(text)
        for name, text in settings.items()
    }
    return checked_options(manifest, given)


def try_plugin(manifest: PluginManifest, options: Mapping[str, Any], owner: Manifest) -> Iterator[Tried]:
    """Everything the plugin would do when the operator made the children of a new object."""
    with_it, without = _hooks(manifest, options), _hooks(None, {})
    for _, problem in with_it.validate(owner):
        yield Tried("refused" if problem.severity == "error" else "warning", str(problem))
    defaulted = with_it.default(owner)
    if defaulted.changes:
        causes = tuple(Cause(change.plugin, change.hook, change.patch.step) for change in defaulted.changes)
        yield _changed(owner, defaulted.obj, causes)
        owner = freeze(defaulted.obj)
    scope = Scope(owner=owner, now=datetime.now(UTC), gate=Gates.default().enabled)
    kind = RayClusterKind(Config(), rng=Random(0))  # noqa: S311 (the same names every time)
    scope = replace(scope, gang=kind.gang(scope))
    for before, after in zip(_made(kind, scope, without), _made(kind, scope, with_it), strict=True):
        if before[0] != after[0]:
            yield _changed(before[0], after[0], after[1])
    for extra in _extras(scope, with_it):
        yield Tried("added", _title(extra.obj), _diff({}, extra.obj))


def _hooks(manifest: PluginManifest | None, options: Mapping[str, Any]) -> Hooks:
    manager = pluggy.PluginManager(specs.PROJECT)
    manager.add_hookspecs(specs)
    if manifest is None:
        return Hooks(Dispatcher(manager))
    register(manager, manifest)
    scheduler = manifest.name if manifest.provides.batch_scheduler else ""
    return Hooks(Dispatcher(manager, options={manifest.name: options}), scheduler=scheduler)


def _made(kind: RayClusterKind, scope: Scope, hooks: Hooks) -> list[tuple[Manifest, tuple[Cause, ...]]]:
    wanted = kind.wanted(scope, hooks)
    return [(item.obj, item.causes) for item in (*wanted.objects, *wanted.actions)]


def _extras(scope: Scope, hooks: Hooks) -> list[Extra]:
    return [*hooks.extra_objects(scope), *hooks.gang_objects(scope, scope.gang)]


def _changed(before: Manifest, after: Manifest, causes: tuple[Cause, ...]) -> Tried:
    steps = tuple(dict.fromkeys(cause.step for cause in causes if cause.step))
    return Tried("changed", _title(after), _diff(before, after), steps)


def _title(obj: Manifest) -> str:
    metadata = obj.get("metadata") or {}
    return f"{obj.get('kind')} {metadata.get('name') or metadata.get('generateName')}"


def _diff(before: Manifest, after: Manifest) -> str:
    lines = difflib.unified_diff(_lines(before), _lines(after), lineterm="", n=2)
    return "\n".join([*lines][2:])  # the first two would name files


def _lines(obj: Manifest) -> list[str]:
    text: str = yaml.safe_dump(thaw(obj), sort_keys=True, default_flow_style=False) if obj else ""
    return text.splitlines()
