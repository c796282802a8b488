"""What can be said about a manifest without running it: ``kuberay-op plugin lint``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kuberay_op.api.problems import Path, Problem
from kuberay_op.declarative.manifest import (
    API_VERSION,
    OWNERS,
    Match,
    PluginManifest,
    Step,
    manifest_problems,
    option_default,
)
from kuberay_op.declarative.options import option_mistake
from kuberay_op.declarative.plugin import DeclarativePlugin
from kuberay_op.errors import OperatorError

#: Sections that hold steps.
SECTIONS = ("values", "checks", "patches", "objects", "finalizers")


def lint(raw: Any) -> list[Problem]:
    """Every mistake and every doubtful thing in a manifest; the first kind stops it from loading."""
    if not isinstance(raw, dict):
        return [Problem((), "must be a mapping with apiVersion, kind and name")]
    if raw.get("apiVersion") != API_VERSION:
        return [Problem(("apiVersion",), f"must be {API_VERSION}, not {raw.get('apiVersion')!r}")]
    problems = manifest_problems(raw)
    if problems:
        return problems
    manifest = PluginManifest(raw)
    problems += [
        *_steps(manifest),
        *_one_of(manifest),
        *_options(manifest),
        *_objects(manifest),
        *_manners(manifest),
    ]
    try:
        problems += [Problem((), mistake) for mistake in DeclarativePlugin(manifest).mistakes()]
    except OperatorError as error:
        problems.append(Problem((), str(error)))
    return problems


def _all_steps(manifest: PluginManifest) -> Iterator[tuple[Path, Step]]:
    for section in SECTIONS:
        for index, step in enumerate(getattr(manifest, section)):
            yield (section, index), step


def _steps(manifest: PluginManifest) -> Iterator[Problem]:
    for path, step in _all_steps(manifest):
        for key in ("when",):
            yield from _words(step.raw.get(key), (*path, key))
        match = step.match
        for field in Match.fields().values():
            yield from _words(match.raw.get(field.json), (*path, "match", field.json))
        for kind in match.owner:
            if kind not in OWNERS:
                yield Problem((*path, "match", "owner"), f"must be among {', '.join(OWNERS)}, not {kind!r}")
        for role in match.role:
            if role not in ("head", "worker", "submitter"):
                yield Problem((*path, "match", "role"), f"must be head, worker or submitter, not {role!r}")
    for name, times in Counter(step.name for _, step in _all_steps(manifest)).items():
        if times > 1:
            yield Problem((), f"{times} steps are named {name!r}; names tell steps apart in plans and logs")


def _words(value: Any, path: Path) -> Iterator[Problem]:
    words = [value] if isinstance(value, str) else value
    if words is not None and (
        not isinstance(words, Sequence) or not all(isinstance(word, str) for word in words)
    ):
        yield Problem(path, "must be a text or a list of texts")


def _one_of(manifest: PluginManifest) -> Iterator[Problem]:
    for index, check in enumerate(manifest.checks):
        if bool(check.fail) == bool(check.warn):
            yield Problem(("checks", index), "needs either fail or warn")
    for index, patch in enumerate(manifest.patches):
        if (patch.merge is None) == (patch.json_patch is None):
            yield Problem(("patches", index), "needs either merge or jsonPatch")
        elif patch.merge is not None and not isinstance(patch.merge, dict):
            yield Problem(("patches", index, "merge"), "must be a mapping")
        elif patch.json_patch is not None and not isinstance(patch.json_patch, list):
            yield Problem(("patches", index, "jsonPatch"), "must be a list of operations")
    for index, value in enumerate(manifest.values):
        if not isinstance(value.set, dict):
            yield Problem(("values", index, "set"), "must be a mapping of names to values")


def _options(manifest: PluginManifest) -> Iterator[Problem]:
    used = {name for e in _expressions(manifest) for name in e.options}
    for name, option in manifest.options.items():
        default = option_default(option)
        mistake = option_mistake(option, default) if default is not None else ""
        if mistake:
            yield Problem(("options", name, "default"), mistake)
        if option.required and default is not None:
            yield Problem(("options", name), "is required and has a default; one of them is meant")
        if not manifest.hooks and name not in used and not _computed_use(manifest):
            yield Problem(("options", name), "is not used by any step", severity="warning")


def _expressions(manifest: PluginManifest) -> list[Any]:
    try:
        return DeclarativePlugin(manifest).expressions()
    except OperatorError:
        return []  # reported elsewhere


def _computed_use(manifest: PluginManifest) -> bool:
    """Whether some expression uses ``options`` as a whole, so that uses cannot be told by name."""
    return any("options" in e.names and not e.options for e in _expressions(manifest))


def _objects(manifest: PluginManifest) -> Iterator[Problem]:
    for index, step in enumerate(manifest.objects):
        template = step.template
        path: Path = ("objects", index, "template")
        if not isinstance(template, Mapping):
            yield Problem(path, "must be an object with apiVersion, kind and metadata.name")
            continue
        for key in ("apiVersion", "kind"):
            if not template.get(key):
                yield Problem((*path, key), "is required")
        metadata = template.get("metadata")
        if not isinstance(metadata, Mapping) or not metadata.get("name"):
            yield Problem((*path, "metadata", "name"), "is required: the core finds the object by its name")
        group = str(template.get("apiVersion", "")).rpartition("/")[0]
        if not any(group in rule.api_groups for rule in manifest.rbac):
            yield Problem(path, f"the rbac section grants nothing in the API group {group!r}")


def _manners(manifest: PluginManifest) -> Iterator[Problem]:
    if not manifest.examples and any(True for _ in _all_steps(manifest)):
        yield Problem(("examples",), "there are none: nothing shows that the steps work", severity="warning")
    if not manifest.summary.endswith("."):
        yield Problem(("summary",), "should be a sentence that ends with a full stop", severity="warning")
