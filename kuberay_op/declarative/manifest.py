"""The manifest of a plugin, ``plugin.yaml``: what may stand in it, key by key.

Every plugin has one, also those written in Python: it is read without importing anything, so that a plugin
can be listed, documented and checked before it is trusted. The views here are the single source of its
schema, its reference page and ``kuberay-op plugin lint``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from kuberay_op.api.fields import Flag, Integer, Nested, NestedList, NestedMap, Text, TextList
from kuberay_op.api.problems import Problem
from kuberay_op.api.schema import view_problems
from kuberay_op.api.view import UNSET, Field, Json, View
from kuberay_op.errors import Misconfigured
from kuberay_op.hooks.specs import CONTRACT

API_VERSION: Final = f"kuberay-op/{CONTRACT}"
KIND: Final = "Plugin"

#: Kinds that a plugin can be asked about.
OWNERS: Final = ("RayCluster", "RayJob", "RayService", "RayCronJob")


class Anything(Field[Any]):
    """Any YAML; None when unset."""

    type_name = "any"

    def read(self, value: Any) -> Any:
        """The value itself."""
        return value

    def type_schema(self) -> Json:
        """No limits."""
        return {}


class Words(Field[Sequence[str]]):
    """A text, or a list of texts; empty when unset."""

    type_name = "text or list of texts"

    def read(self, value: Any) -> Sequence[str]:
        """Always a list."""
        if isinstance(value, str):
            return (value,)
        return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list | tuple) else ()

    def type_schema(self) -> Json:
        """Checked by the linter, since a schema cannot say it simply."""
        return {}


class Provides(View):
    """Roles that the plugin can fill; each role is filled by one plugin."""

    batch_scheduler = Text("batchScheduler", "Name of the batch scheduler, as users configure it.")


class Gate(View):
    """A feature gate of the plugin's own; the plugin does nothing while it is off."""

    name = Text("name", "Name of the gate.", required=True)
    stage = Text("stage", "How ready it is.", choices=("alpha", "beta", "stable"), default="alpha")
    since = Text("since", "Version of the plugin that brought it.", default="")
    default = Flag("default", "Whether it is on when nobody says otherwise.", default=False)
    description = Text("description", "What it switches on.", required=True)


class Option(View):
    """One option of the plugin, set by the operator's administrator."""

    type = Text("type", "Its type.", choices=("str", "int", "float", "bool", "list", "map"), required=True)
    description = Text("description", "What it does, for the person who sets it.", required=True)
    default = Anything("default", "Value when it is not set; null when there is none.")
    choices = TextList("choices", "The only values allowed.")
    required = Flag("required", "Must be set: there is no sensible default.", default=False)
    secret = Flag("secret", "Never printed.", default=False)


class Rbac(View):
    """One rule of the operator's role."""

    api_groups = TextList("apiGroups", 'API groups; "" is the core group.', required=True)
    resources = TextList("resources", "Resources, in the plural.", required=True)
    verbs = TextList("verbs", "Verbs.", required=True)
    resource_names = TextList("resourceNames", "Only objects of these names.")


class Watched(View):
    """A kind of child object whose changes wake the owner."""

    api_version = Text(
        "apiVersion", "Group and version, such as scheduling.volcano.sh/v1beta1.", required=True
    )
    kind = Text("kind", "The kind.", required=True)
    plural = Text("plural", "Its name in URLs.", required=True)
    optional = Flag("optional", "The plugin can do without it.", default=False)


class Match(View):
    """To what a step applies; everything given must match."""

    owner = Words("owner", "Kinds of owners: RayCluster, RayJob, RayService, RayCronJob.")
    object = Words("object", "Kinds of objects: Pod, PodTemplate, Service, Job, ...")
    role = Words("role", "Roles of Pods: head, worker, submitter.")


class Step(View):
    """What all steps have."""

    name = Text("name", "What the step does; shown in plans, logs and errors.", required=True)
    match = Nested("match", "To what it applies.", Match)
    when = Words("when", "Expressions that must all be true.")


class Value(Step):
    """Gives names to values for the steps after it."""

    loop = Text(
        "loop",
        "An expression that gives a list; each name then stands for the list of its values, as `item`.",
    )
    set = Anything("set", "Names and their values.", required=True)


class Check(Step):
    """Refuses or warns when its ``when`` holds."""

    fail = Text("fail", "Why the object is refused.")
    warn = Text("warn", "What the user should know.")
    field = Text("field", "The field at fault, such as spec.submissionMode.", default="")


class PatchStep(Step):
    """Changes an object that is about to be made."""

    loop = Text("loop", "An expression that gives a list; the step is done for each, as `item`.")
    merge = Anything("merge", "A JSON merge patch; values may hold ${expressions}.")
    json_patch = Anything("jsonPatch", "A list of JSON patch operations.")


class ObjectStep(Step):
    """Makes a further child object."""

    loop = Text("loop", "An expression that gives a list; the step is done for each, as `item`.")
    template = Anything("template", "The object; values may hold ${expressions}.", required=True)
    replace = Flag(
        "replace",
        "Its spec cannot be changed: where it differs the object is deleted, and made again when it is gone.",
        default=False,
    )
    releases = TextList(
        "releases", "Finalizers of others that would hold such a deletion; they are taken off."
    )


class Finalizer(Step):
    """Cleans up with a Job when the owner is deleted. ``name`` is the finalizer itself, ``ray.io/NAME``."""

    job = Anything("job", "The Job; values may hold ${expressions}.", required=True)
    deadline_seconds = Integer(
        "deadlineSeconds",
        "Seconds after the deletion at which the finalizer is released whatever became of the Job.",
        minimum=1,
        default=300,
    )


class Example(View):
    """A case that ``kuberay-op plugin test`` runs: what goes in, and what must come out."""

    name = Text("name", "What it shows.", default="")
    owner = Anything("owner", "The custom resource.", required=True)
    object = Anything("object", "The object to patch.")
    role = Text("role", "Role of the Pod: head, worker or submitter.", default="")
    options = Anything("options", "Options that differ from the defaults.")
    spec = Anything("spec", "The owner's spec after all defaults.")
    gives = Anything("gives", "The object after all patches.")
    objects = Anything("objects", "The further objects, in order.")
    fails = TextList("fails", "Texts of the checks that refuse it.")
    warns = TextList("warns", "Texts of the checks that warn.")


class PluginManifest(View):
    """A plugin: its name, what it needs, and what it does."""

    api_version = Text("apiVersion", f"Version of this contract: {API_VERSION}.", required=True)
    kind = Text("kind", "Plugin.", required=True, choices=(KIND,))
    name = Text(
        "name",
        "Name by which it is enabled; 63 characters at most.",
        required=True,
        pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
    )
    summary = Text("summary", "One sentence for lists.", required=True)
    description = Text("description", "More about it, for its page.", default="")
    provides = Nested("provides", "Roles that it can fill.", Provides)
    feature_gate = Nested("featureGate", "A gate that switches it.", Gate)
    after = TextList("after", "Plugins whose work it must see.")
    options = NestedMap("options", "Options by name.", Option)
    rbac = NestedList("rbac", "What the operator's role needs for it.", Rbac)
    watches = NestedList("watches", "Kinds of child objects to watch.", Watched)
    values = NestedList("values", "Named values for the steps below, in order.", Value)
    checks = NestedList("checks", "What is refused or warned about.", Check)
    defaults = NestedList(
        "defaults", "What is filled into the owner's spec, in memory, before anything else.", PatchStep
    )
    patches = NestedList("patches", "How objects are changed before they are made.", PatchStep)
    objects = NestedList("objects", "Further child objects.", ObjectStep)
    finalizers = NestedList("finalizers", "Clean-up on deletion.", Finalizer)
    hooks = Text("hooks", "Python module with hook functions, where YAML is not enough.", default="")
    examples = NestedList("examples", "Cases that run as tests.", Example)


def read_manifest(path: Path) -> PluginManifest:
    """Read ``plugin.yaml``; raises Misconfigured that names the file and every mistake."""
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Misconfigured(f"plugin manifest {path}: cannot be read: {error}") from error
    return parse_manifest(raw, str(path))


def parse_manifest(raw: Any, source: str) -> PluginManifest:
    """Check the structure of a manifest; raises Misconfigured with every mistake."""
    if not isinstance(raw, dict):
        raise Misconfigured(f"plugin manifest {source}: must be a mapping with apiVersion, kind and name")
    version = raw.get("apiVersion")
    if version != API_VERSION:
        raise Misconfigured(
            f"plugin manifest {source}: apiVersion is {version!r}, this operator speaks {API_VERSION!r}; "
            "install a version of the plugin made for it"
        )
    problems = manifest_problems(raw)
    if problems:
        lines = "".join(f"\n  {problem}" for problem in problems)
        raise Misconfigured(f"plugin manifest {source}:{lines}")
    return PluginManifest(raw)


def manifest_problems(raw: Json) -> list[Problem]:
    """Mistakes in the structure of a manifest."""
    return view_problems(PluginManifest, raw)


def option_default(option: Option) -> Any:
    """The value of an option that is not set."""
    return None if option.raw.get("default", UNSET) is UNSET else option.default
