"""The difference between what is and what should be, as actions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kuberay_op.api import labels
from kuberay_op.kube.merge import merge_patch
from kuberay_op.plan.actions import Action, Cause, Create, Delete, Desired, Manifest, Update
from kuberay_op.plan.fields import fields_of, padded

#: What identifies an object among the children of one owner.
Identity = tuple[str, str, str]


def identity(obj: Manifest) -> Identity:
    """API group, kind and name: the version may differ between what we write and what we read."""
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    return group, str(obj.get("kind", "")), str(obj.get("metadata", {}).get("name", ""))


def diff(desired: Iterable[Desired], observed: Iterable[Manifest]) -> list[Action]:
    """What must be done: make what is missing, change what differs, remove what no plugin wants any more.

    Only children that plugins asked for (they carry a label) are removed; what else the owner has is the
    business of whoever plans it.
    """
    there = {identity(obj): obj for obj in observed}
    wanted = list(desired)
    return [*_make_and_change(wanted, there), *_prune(wanted, there)]


def _make_and_change(wanted: list[Desired], there: dict[Identity, Manifest]) -> Iterator[Action]:
    for item in wanted:
        found = there.get(identity(item.obj)) if item.obj.get("metadata", {}).get("name") else None
        if found is None:
            yield Create(item.obj, item.reason, item.causes, item.seal, once=item.once)
        elif found.get("metadata", {}).get("deletionTimestamp"):
            if set(item.releases) & set(found["metadata"].get("finalizers") or ()):
                yield _anew(item, found)
        elif not item.once:
            before = fields_of(found)
            obj = padded(item.obj, before) if before else item.obj
            patch = merge_patch(found, obj, before)
            if patch is not None and item.replace and set(patch) != {"metadata"}:
                yield _anew(item, found)
            elif patch is not None:
                yield Update(obj, found, patch, item.reason, item.causes, before)


def _anew(item: Desired, found: Manifest) -> Delete:
    return Delete(found, "it must be made anew", item.causes, releases=item.releases)


def _prune(wanted: list[Desired], there: dict[Identity, Manifest]) -> Iterator[Action]:
    kept = {identity(item.obj) for item in wanted}
    for name, obj in there.items():
        metadata = obj.get("metadata", {})
        marks = metadata.get("labels", {})
        plugin = marks.get(labels.PLUGIN)
        if not plugin or labels.WAITED_FOR in marks or metadata.get("deletionTimestamp"):
            continue
        if name not in kept:
            yield Delete(obj, f"plugin {plugin} does not want it any more", (Cause(plugin),))
