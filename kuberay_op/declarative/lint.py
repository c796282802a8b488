"""What can be said about a manifest without running it: ``kuberay-op plugin lint``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kuberay_op.api.problems import Path, Problem
from kuberay_op.declarative.expr import CONSTANTS, FUNCTIONS
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
from kuberay_op.declarative.plugin import VARIABLES, DeclarativePlugin
from kuberay_op.errors import OperatorError
from kuberay_op.hooks.answers import finalizer_mistake

#: What the operator does with children that a plugin makes, whatever their kind.
VERBS = ("create", "delete", "get", "list", "patch", "watch")

#: Sections that hold steps.
SECTIONS = ("values", "defaults", "checks", "patches", "objects", "finalizers")


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
        *_values(manifest),
        *_objects(manifest),
        *_finalizers(manifest),
        *_watches(manifest),
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
        yield from _words(step.raw.get("when"), (*path, "when"))
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
    for section in ("defaults", "patches"):
        for index, patch in enumerate(getattr(manifest, section)):
            if (patch.merge is None) == (patch.json_patch is None):
                yield Problem((section, index), "needs either merge or jsonPatch")
            elif patch.merge is not None and not isinstance(patch.merge, dict):
                yield Problem((section, index, "merge"), "must be a mapping")
            elif patch.json_patch is not None and not isinstance(patch.json_patch, list):
                yield Problem((section, index, "jsonPatch"), "must be a list of operations")


def _values(manifest: PluginManifest) -> Iterator[Problem]:
    for index, value in enumerate(manifest.values):
        path: Path = ("values", index, "set")
        if not isinstance(value.set, dict):
            yield Problem(path, "must be a mapping of names to values")
            continue
        for name in value.set:
            if not str(name).isidentifier():
                yield Problem((*path, str(name)), "must be a name: letters, digits and '_'")
            elif name in VARIABLES or name in CONSTANTS or name in FUNCTIONS:
                yield Problem((*path, name), "is a name that the language has already")


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
        yield from _made(manifest, step.template, ("objects", index, "template"))


def _finalizers(manifest: PluginManifest) -> Iterator[Problem]:
    for index, step in enumerate(manifest.finalizers):
        if mistake := finalizer_mistake(step.name):
            yield Problem(("finalizers", index, "name"), mistake)
        path: Path = ("finalizers", index, "job")
        yield from _made(manifest, step.job, path)
        if isinstance(step.job, Mapping) and step.job.get("kind") not in (None, "Job"):
            yield Problem((*path, "kind"), "must be Job: the operator waits for its end")


def _made(manifest: PluginManifest, template: Any, path: Path) -> Iterator[Problem]:
    """What is wrong with the template of an object that the operator is to make."""
    if not isinstance(template, Mapping):
        yield Problem(path, "must be an object with apiVersion, kind and metadata.name")
        return
    for key in ("apiVersion", "kind"):
        if not template.get(key):
            yield Problem((*path, key), "is required")
    metadata = template.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("name"):
        yield Problem((*path, "metadata", "name"), "is required: the core finds the object by its name")
    version, kind = str(template.get("apiVersion")), str(template.get("kind"))
    if kind == "Pod":
        yield Problem((*path, "kind"), "cannot be Pod; let a Job make it")
    elif "$" not in version + kind and not any(
        (watch.api_version, watch.kind) == (version, kind) for watch in manifest.watches
    ):
        yield Problem(path, f"makes {kind} of {version}, which is not under watches")


def _watches(manifest: PluginManifest) -> Iterator[Problem]:
    for index, watch in enumerate(manifest.watches):
        group = watch.api_version.rpartition("/")[0]
        granted = {
            verb
            for rule in manifest.rbac
            if group in rule.api_groups and watch.plural in rule.resources and not rule.resource_names
            for verb in rule.verbs
        }
        missing = sorted({*VERBS} - granted)
        if missing and "*" not in granted:
            yield Problem(
                ("watches", index),
                f"the rbac section does not grant {', '.join(missing)} on {watch.plural} in the API group "
                f"{group!r}",
            )


def _manners(manifest: PluginManifest) -> Iterator[Problem]:
    if not manifest.examples and any(True for _ in _all_steps(manifest)):
        yield Problem(("examples",), "there are none: nothing shows that the steps work", severity="warning")
    if not manifest.summary.endswith("."):
        yield Problem(("summary",), "should be a sentence that ends with a full stop", severity="warning")
