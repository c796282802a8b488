"""A preview for people and for programs. Secrets are never shown: neither options nor what a Secret holds."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import click
import yaml

from kuberay_op.api import labels
from kuberay_op.controllers.preview import NO_UID, Planned, Preview
from kuberay_op.frozen import thaw
from kuberay_op.hooks.patches import JsonPatch, Merge
from kuberay_op.kube.merge import overlay
from kuberay_op.plan.actions import Action, Cause, Create, Delete, Manifest, Update

HIDDEN: Final = "<hidden>"

#: Labels that say which of several equal Pods one is.
_PLACE: Final = (labels.REPLICA_INDEX, labels.REPLICA_NAME, labels.HOST_INDEX)

_COLOURS: Final = {"create": "green", "change": "yellow", "delete": "red"}


class Shown:
    """Turns actions into texts and JSON; ``secrets`` are words that must not appear."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        self._secrets = sorted((word for word in secrets if word), key=len, reverse=True)

    # --- for programs

    def as_json(self, previews: Mapping[str, Preview]) -> list[dict[str, Any]]:
        """Every object with what would be done about it."""
        return [
            {
                "object": name,
                "refused": self.clean(preview.refused),
                "warnings": self.clean(preview.warnings),
                "defaults": [self._cause(c) for causes in preview.defaults.values() for c in causes],
                "actions": [self._action(planned) for planned in preview.planned],
            }
            for name, preview in previews.items()
        ]

    def _action(self, planned: Planned) -> dict[str, Any]:
        action = planned.action
        said: dict[str, Any] = {
            "action": word(action),
            "owner": planned.owner,
            "apiVersion": action.obj.get("apiVersion"),
            "kind": action.obj.get("kind"),
            "name": _name(action.obj),
            "reason": action.reason,
            "causes": [self._cause(cause) for cause in action.causes],
        }
        match action:
            case Create():
                said["object"] = self.manifest(action.obj)
            case Update():
                said["patch"] = self.clean(hidden({**action.patch, "kind": action.obj.get("kind")}))
        return said

    def _cause(self, cause: Cause) -> dict[str, Any]:
        said = {"plugin": cause.plugin, "hook": cause.hook, "step": cause.step}
        match cause.patch:
            case Merge(patch=patch):
                said["merge"] = self.clean(thaw(patch))
            case JsonPatch(operations=operations):
                said["jsonPatch"] = self.clean(thaw(list(operations)))
        return said

    # --- for people

    def as_text(self, previews: Mapping[str, Preview]) -> str:
        """Every object with what would be done about it, as a diff."""
        return "\n".join(line for name, preview in previews.items() for line in self._preview(name, preview))

    def _preview(self, name: str, preview: Preview) -> Iterator[str]:
        yield click.style(f"{name}: {summary(preview)}", bold=True)
        yield from (click.style(f"refused: {text}", fg="red") for text in self.clean(preview.refused))
        yield from (click.style(f"warning: {text}", fg="yellow") for text in self.clean(preview.warnings))
        for owner, causes in preview.defaults.items():
            yield f"fill in {owner}"
            yield from self._causes(causes)
        for planned, times in _counted(preview.planned):
            action = planned.action
            what = word(action)
            often = f" ×{times}" if times > 1 else ""
            title = f"{what} {action.obj.get('kind')} {_name(action.obj)}{often}"
            yield f"\n{click.style(title, fg=_COLOURS[what], bold=True)}: {action.reason}"
            yield from self._causes(action.causes)
            yield from self._diff(action)

    def _causes(self, causes: Sequence[Cause]) -> Iterator[str]:
        for cause in causes:
            step = f", step {cause.step!r}" if cause.step else ""
            yield click.style(f"  plugin {cause.plugin}{step}{self._patch(cause)}", fg="cyan")

    def _patch(self, cause: Cause) -> str:
        match cause.patch:
            case Merge(patch=patch):
                return f": {_flow(self.clean(thaw(patch)))}"
            case JsonPatch(operations=operations):
                return f": {_flow(self.clean(thaw(list(operations))))}"
        return ""

    def _diff(self, action: Action) -> Iterator[str]:
        match action:
            case Create():
                before, after = {}, self.manifest(action.obj)
            case Update():
                before = self.manifest(action.observed)
                after = self.manifest(overlay(thaw(action.observed), thaw(action.patch)))
            case Delete():
                return
        lines = [*difflib.unified_diff(_lines(before), _lines(after), lineterm="", n=3)][2:]
        for line in lines:
            if not line.startswith("@@"):
                colour = {"+": "green", "-": "red"}.get(line[:1])
                yield click.style(f"  {line}", fg=colour) if colour else f"  {line}"

    # --- what both need

    def manifest(self, obj: Manifest) -> dict[str, Any]:
        """The object as one would write it: without what the server adds, and without secrets."""
        plain = hidden(thaw(obj))
        metadata = plain.get("metadata") or {}
        for key in ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp"):
            metadata.pop(key, None)
        owners = [each for each in metadata.get("ownerReferences") or () if each.get("uid") != NO_UID]
        if not owners:
            metadata.pop("ownerReferences", None)
        plain.pop("status", None)
        cleaned: dict[str, Any] = self.clean(plain)
        return cleaned

    def clean(self, value: Any) -> Any:
        """The value with every secret word hidden."""
        if isinstance(value, str):
            for secret in self._secrets:
                value = value.replace(secret, HIDDEN)
            return value
        if isinstance(value, Mapping):
            return {self.clean(key): self.clean(item) for key, item in value.items()}
        return [self.clean(item) for item in value] if isinstance(value, list | tuple) else value


def hidden(obj: dict[str, Any]) -> dict[str, Any]:
    """A Secret without what it holds; others as they are."""
    if obj.get("kind") != "Secret":
        return obj
    return {
        key: dict.fromkeys(value, HIDDEN) if key in ("data", "stringData") and value else value
        for key, value in obj.items()
    }


def word(action: Action) -> str:
    """What an action does."""
    match action:
        case Create():
            return "create"
        case Update():
            return "change"
        case Delete():
            return "delete"


def summary(preview: Preview) -> str:
    """How many of each."""
    if preview.refused:
        return "refused"
    counts = dict.fromkeys(_COLOURS, 0)
    for planned in preview.planned:
        counts[word(planned.action)] += 1
    return ", ".join(f"{count} to {what}" for what, count in counts.items() if count) or "nothing to do"


def _counted(planned: Sequence[Planned]) -> Iterator[tuple[Planned, int]]:
    """Things that follow each other and are alike, once and how often: the workers of a group, mostly."""
    for _, alike in groupby(planned, _likeness):
        first, *others = alike
        yield first, 1 + len(others)


def _likeness(planned: Planned) -> tuple[Any, ...]:
    """What workers of a group have in common: all but their place in it."""
    obj = planned.action.obj
    metadata = obj.get("metadata") or {}
    marks = {key: value for key, value in (metadata.get("labels") or {}).items() if key not in _PLACE}
    like = {**obj, "metadata": {**metadata, "labels": marks}}
    return planned.owner, type(planned.action), planned.action.reason, like


def _name(obj: Manifest) -> str:
    metadata = obj.get("metadata") or {}
    return str(metadata.get("name") or f"{metadata.get('generateName', '')}*")


def _flow(value: Any) -> str:
    return str(yaml.safe_dump(value, default_flow_style=True, width=10**6, sort_keys=False)).strip()


def _lines(obj: Mapping[str, Any]) -> list[str]:
    text = yaml.safe_dump(dict(obj), sort_keys=False, default_flow_style=False) if obj else ""
    return str(text).splitlines()
