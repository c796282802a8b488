"""Runs the examples of a manifest: ``kuberay-op plugin test``.

An example is a custom resource and, if it is about a patch, an object. All checks, patches and objects of the
plugin are applied to it, and what comes out must be what the example says, to the last field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.rayjob import RayJob
from kuberay_op.declarative.manifest import Example, PluginManifest
from kuberay_op.declarative.options import checked_options
from kuberay_op.declarative.plugin import DeclarativePlugin
from kuberay_op.errors import OperatorError
from kuberay_op.frozen import freeze
from kuberay_op.hooks.gangs import cluster_gang, job_gang
from kuberay_op.hooks.patches import Manifest, Patch, apply_patch
from kuberay_op.hooks.scope import Gang, GangMember, Group, Scope

#: Examples must come out the same every day.
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)

#: The gang that examples see whose owner has no spec to count from.
GANG: Final = Gang(
    "example",
    (
        GangMember(Group("headgroup", "head"), 1, {"cpu": "1", "memory": "2Gi"}),
        GangMember(Group("workers", "worker"), 2, {"cpu": "2", "memory": "4Gi"}),
    ),
)


@dataclass(frozen=True, slots=True)
class Ran:
    """How one example went."""

    name: str
    #: What differs, one sentence each; empty when it passed.
    differences: tuple[str, ...]


def run_examples(manifest: PluginManifest) -> list[Ran]:
    """Run every example."""
    return [
        Ran(example.name or f"example {index}", tuple(_run(manifest, example)))
        for index, example in enumerate(manifest.examples, 1)
    ]


def _run(manifest: PluginManifest, example: Example) -> list[str]:
    try:
        plugin = DeclarativePlugin(manifest)
        options = checked_options(manifest, example.options or {})
        owner = freeze(example.owner)
        scope = Scope(owner=owner, now=NOW, gate=lambda _: True, gang=_gang(owner))
        differences = _checked(plugin, owner, options, example)
        if "spec" in example.raw:
            filled = owner
            for patch in plugin.kuberay_default(obj=owner, options=options):
                filled = apply_patch(filled, patch)
            differences += _compared("spec", filled.get("spec"), example.spec)
        if example.object is not None:
            differences += _compared("gives", _patched(plugin, scope, example, options), example.gives)
        if "objects" in example.raw:
            differences += _compared("objects", _objects(plugin, scope, options), example.objects)
    except OperatorError as error:
        return [str(error)]
    return differences


def _gang(owner: Manifest) -> Gang:
    """The owner's own gang if the example says enough about it."""
    spec = owner.get("spec") or {}
    if owner.get("kind") == "RayJob" and "rayClusterSpec" in spec:
        return job_gang(RayJob(dict(owner)), None)
    return cluster_gang(RayCluster(dict(owner))) if "headGroupSpec" in spec else GANG


def _checked(plugin: DeclarativePlugin, owner: Manifest, options: Any, example: Example) -> list[str]:
    problems = list(plugin.kuberay_validate(obj=owner, options=options))
    differences = []
    for severity, expected in (("error", example.fails), ("warning", example.warns)):
        said = [problem.message for problem in problems if problem.severity == severity]
        key = "fails" if severity == "error" else "warns"
        differences += [f"{key}: {text!r} was expected" for text in expected if text not in said]
        differences += [f"{key}: {text!r} was not expected" for text in said if text not in expected]
    return differences


def _patched(plugin: DeclarativePlugin, scope: Scope, example: Example, options: Any) -> Manifest:
    obj: Manifest = freeze(example.object)
    patches: list[Patch]
    if obj.get("kind") in ("Pod", "PodTemplate"):
        group = Group(example.role or "headgroup", example.role or "head")  # type: ignore[arg-type]  # linted
        patches = list(plugin.kuberay_patch_pod(scope=scope, group=group, pod=obj, options=options) or ())
    else:
        patches = list(plugin.kuberay_patch_object(scope=scope, obj=obj, options=options) or ())
    for patch in patches:
        obj = apply_patch(obj, patch)
    return obj


def _objects(plugin: DeclarativePlugin, scope: Scope, options: Any) -> list[Manifest]:
    if plugin.schedules:
        made = plugin.kuberay_gang_objects(scope=scope, gang=scope.gang, options=options)
    else:
        made = plugin.kuberay_extra_objects(scope=scope, options=options)
    return [each.obj for each in made]


def _compared(path: str, got: Any, expected: Any) -> list[str]:
    """Differences, field by field, so that a reader sees the one that matters."""
    if isinstance(got, Mapping) and isinstance(expected, Mapping):
        return [
            line
            for key in sorted({*got, *expected})
            for line in _compared(f"{path}.{key}", got.get(key), expected.get(key))
        ]
    if isinstance(got, list) and isinstance(expected, list) and len(got) == len(expected):
        pairs = enumerate(zip(got, expected, strict=True))
        return [line for index, (a, b) in pairs for line in _compared(f"{path}[{index}]", a, b)]
    return [] if got == expected else [f"{path}: {expected!r} was expected, not {got!r}"]
