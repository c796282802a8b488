"""Patches: how a plugin changes an object that the core is building.

A plugin never edits what it is given; it answers with a patch, so that ``kuberay-op plan`` can say who
changed what, and each plugin sees the work of those before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import jsonpatch

from kuberay_op.api import labels
from kuberay_op.errors import OperatorError
from kuberay_op.frozen import thaw

Manifest = Mapping[str, Any]

#: What makes an object the one it is: a patch that touches these would make the core lose it.
IDENTITY: Final = (
    ("apiVersion",),
    ("kind",),
    ("metadata", "name"),
    ("metadata", "generateName"),
    ("metadata", "namespace"),
    ("metadata", "ownerReferences"),
    ("metadata", "uid"),
    ("metadata", "labels", labels.PLUGIN),
)


class BadPatch(OperatorError):
    """The patch cannot be applied, or would change what no plugin may change."""


@dataclass(frozen=True, slots=True)
class Merge:
    """A JSON merge patch (RFC 7386): objects are merged, null removes, everything else replaces."""

    patch: Manifest
    #: Named in plans and errors, for plugins with several steps.
    step: str = ""


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """A JSON patch (RFC 6902): a list of operations, all of them or none."""

    operations: Sequence[Manifest] = field(default_factory=tuple)
    #: Named in plans and errors, for plugins with several steps.
    step: str = ""


Patch = Merge | JsonPatch


@dataclass(frozen=True, slots=True)
class Made:
    """An object that a plugin asks for, and the step that did; a hook that gives objects may give these."""

    obj: Manifest
    #: Named in plans, for plugins with several steps.
    step: str = ""
    #: The server does not let it be changed: where it differs it is deleted, and made again when it is gone.
    replace: bool = False
    #: Others' finalizers that would hold such a deletion, and are taken off.
    releases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """Who changed an object, in which step, and how."""

    plugin: str
    hook: str
    patch: Patch


def apply_patch(obj: Manifest, patch: Patch) -> Manifest:
    """The object with the patch applied; the input stays as it is."""
    if isinstance(patch, Merge):
        if not isinstance(patch.patch, Mapping):
            raise BadPatch(f"a merge patch must be an object, not {type(patch.patch).__name__}")
        result: Manifest = merge(obj, patch.patch)
    else:
        try:
            result = jsonpatch.apply_patch(thaw(obj), [dict(op) for op in patch.operations])
        except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError, ValueError) as error:
            raise BadPatch(f"the JSON patch does not apply: {error}") from error
        if not isinstance(result, Mapping):
            raise BadPatch("the JSON patch replaces the whole object by something else")
    for path in IDENTITY:
        if _at(obj, path) != _at(result, path):
            raise BadPatch(f"a plugin may not change {'.'.join(path)}")
    return result


def merge(target: Any, patch: Any) -> Any:
    """``target`` with a JSON merge patch applied. Parts that do not change are shared, not copied."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def _at(obj: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        obj = obj.get(key) if isinstance(obj, Mapping) else None
    return obj
