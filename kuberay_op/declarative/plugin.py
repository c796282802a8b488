"""A YAML plugin as an object with hook implementations: the manifest, compiled and ready to be asked.

What each section of the manifest does:

=============  ==========================================================================================
values         evaluated before each of the others, in order; later steps see the names they set
defaults       ``kuberay_default``
checks         ``kuberay_validate``
patches        ``kuberay_patch_pod`` and ``kuberay_patch_object``; for a batch scheduler, Pods go through
               ``kuberay_schedule_child``, so that only the chosen scheduler touches them
objects        ``kuberay_extra_objects``; for a batch scheduler ``kuberay_gang_objects``, with ``gang``
finalizers     ``kuberay_finalizers`` and ``kuberay_finalize``
=============  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from kuberay_op.api.problems import Problem
from kuberay_op.declarative.expr import Expression
from kuberay_op.declarative.manifest import PatchStep, PluginManifest
from kuberay_op.declarative.steps import CompiledStep, Subject
from kuberay_op.declarative.template import Budget, Template
from kuberay_op.hooks.patches import JsonPatch, Made, Manifest, Merge, Patch
from kuberay_op.hooks.scope import Gang, Group, PolicyRule, Scope, Watch
from kuberay_op.hooks.specs import Options, hookimpl
from kuberay_op.hooks.verdicts import Done, Verdict, Wait

#: Names that steps may use besides those they set themselves.
VARIABLES: Final[dict[str, str]] = {
    "owner": "the custom resource",
    "object": "the object to be patched",
    "group": "its group: name, role, spec",
    "gang": "for a batch scheduler: name, count, requests, and members, each with group, role, spec, count, "
    "requests of one Pod and total of all",
    "children": "for objects: what the owner has already, lists by kind: children.Role",
    "containers": "for objects: names of the containers in the owner's Pods",
    "options": "the plugin's options",
    "item": "the current item of a loop",
    "index": "its place in the loop, from 0",
}

#: Conditions of a Job that mean it is over.
_FINISHED: Final = ("Complete", "Failed", "FailureTarget")


class DeclarativePlugin:
    """Hook implementations made from a manifest. Raises when an expression or template is not valid."""

    #: Expressions end by construction, so the dispatcher needs no thread to guard against this plugin.
    kuberay_bounded: Final = True

    def __init__(self, manifest: PluginManifest) -> None:
        self.manifest = manifest
        self.schedules = bool(manifest.provides.batch_scheduler)
        self._values = [CompiledStep(step, loop=step.loop, makes=step.set) for step in manifest.values]
        self._checks = [
            (CompiledStep(check), check, Template(check.fail or check.warn)) for check in manifest.checks
        ]
        self._defaults = [_compiled(step) for step in manifest.defaults]
        self._patches = [_compiled(step) for step in manifest.patches]
        self._objects = [
            (CompiledStep(step, loop=step.loop, makes=step.template), step) for step in manifest.objects
        ]
        self._finalizers = [(CompiledStep(step, makes=step.job), step) for step in manifest.finalizers]
        self._values_see_object = any(
            "object" in expression.names for step in self._values for expression in step.expressions
        )
        self._remembered = _Remembered()

    @property
    def kuberay_hooks(self) -> frozenset[str]:
        """The hooks that the manifest has something for; the dispatcher skips the others."""
        found = {"kuberay_rbac_rules", "kuberay_watches"}
        if self._patches:
            found |= {"kuberay_patch_object"}
            found |= {"kuberay_schedule_child" if self.schedules else "kuberay_patch_pod"}
        if self._objects:
            found |= {"kuberay_gang_objects" if self.schedules else "kuberay_extra_objects"}
        if self._defaults:
            found |= {"kuberay_default"}
        if self._checks:
            found |= {"kuberay_validate"}
        if self._finalizers:
            found |= {"kuberay_finalizers", "kuberay_finalize"}
        return frozenset(found)

    def expressions(self) -> list[Expression]:
        """Every expression of the manifest."""
        steps = [*self._values, *(step for step, _ in self._objects), *(step for step, *_ in self._checks)]
        steps += [step for step, _ in (*self._defaults, *self._patches)]
        steps += [step for step, _ in self._finalizers]
        texts = [expression for _, _, text in self._checks for expression in text.expressions]
        return texts + [expression for step in steps for expression in step.expressions]

    def mistakes(self) -> list[str]:
        """Names that expressions read and nobody sets: misspelt variables and options."""
        known = set(VARIABLES)
        for value in self.manifest.values:
            known |= set(value.set or ())
        found = set()
        for expression in self.expressions():
            found |= {f"{expression.text}: nobody sets {name!r}" for name in expression.names - known}
            missing = expression.options - set(self.manifest.options)
            found |= {f"{expression.text}: there is no option {name!r}" for name in missing}
        return sorted(found)

    # -- registration ----------------------------------------------------------------------------------------

    @hookimpl
    def kuberay_rbac_rules(self) -> Iterable[PolicyRule]:
        """The ``rbac`` section."""
        return [
            PolicyRule(tuple(r.api_groups), tuple(r.resources), tuple(r.verbs), tuple(r.resource_names))
            for r in self.manifest.rbac
        ]

    @hookimpl
    def kuberay_watches(self) -> Iterable[Watch]:
        """The ``watches`` section."""
        return [Watch(w.api_version, w.kind, w.plural, optional=w.optional) for w in self.manifest.watches]

    # -- building --------------------------------------------------------------------------------------------

    @hookimpl
    def kuberay_patch_pod(
        self, scope: Scope, group: Group, pod: Manifest, options: Options
    ) -> Sequence[Patch] | None:
        """The ``patches`` section, for Pods."""
        return self._patch(scope, pod, options, group)

    @hookimpl
    def kuberay_schedule_child(
        self, scope: Scope, child: Manifest, group: Group, options: Options
    ) -> Sequence[Patch] | None:
        """The ``patches`` section, for Pods, when this plugin is the batch scheduler."""
        return self._patch(scope, child, options, group)

    @hookimpl
    def kuberay_patch_object(self, scope: Scope, obj: Manifest, options: Options) -> Sequence[Patch] | None:
        """The ``patches`` section, for other objects."""
        return self._patch(scope, obj, options, None)

    @hookimpl
    def kuberay_extra_objects(self, scope: Scope, options: Options) -> Iterable[Made]:
        """The ``objects`` section."""
        return self._make_objects(scope, options, {})

    @hookimpl
    def kuberay_gang_objects(self, scope: Scope, gang: Gang, options: Options) -> Iterable[Made]:
        """The ``objects`` section, when this plugin is the batch scheduler."""
        return self._make_objects(scope, options, {"gang": _bound_gang(gang)})

    # -- admission -------------------------------------------------------------------------------------------

    @hookimpl
    def kuberay_default(self, obj: Manifest, options: Options) -> Sequence[Patch]:
        """The ``defaults`` section."""
        subject, budget = Subject(owner=obj), Budget()
        variables = self._variables(subject, options, budget)
        return list(_patched(self._defaults, subject, variables, budget))

    @hookimpl
    def kuberay_validate(self, obj: Manifest, options: Options) -> Iterable[Problem]:
        """The ``checks`` section."""
        subject, budget = Subject(owner=obj), Budget()
        variables = self._variables(subject, options, budget)
        problems = []
        for step, check, text in self._checks:
            if step.applies(subject, variables, budget):
                path = tuple(check.field.split(".")) if check.field else ()
                severity = "error" if check.fail else "warning"
                rule = f"plugin.{self.manifest.name}"
                problems.append(Problem(path, str(text(variables, budget)), severity=severity, rule=rule))  # type: ignore[arg-type]  # one of the two
        return problems

    # -- finalization ----------------------------------------------------------------------------------------

    @hookimpl
    def kuberay_finalizers(self, scope: Scope, options: Options) -> Iterable[str]:
        """The finalizers whose conditions hold."""
        subject, budget = Subject(owner=scope.owner), Budget()
        variables = self._variables(subject, options, budget)
        return [step.name for step, _ in self._finalizers if step.applies(subject, variables, budget)]

    @hookimpl
    def kuberay_finalize(self, scope: Scope, finalizer: str, options: Options) -> Verdict | None:
        """Make the Job, wait for its end, and give up at the deadline: the owner always goes."""
        for step, declared in self._finalizers:
            if step.name == finalizer:
                return self._finalize(scope, step, declared.deadline_seconds or 300, options)
        return None

    def _finalize(self, scope: Scope, step: CompiledStep, deadline: int, options: Options) -> Verdict:
        subject, budget = Subject(owner=scope.owner), Budget()
        made = list(step.results(subject, self._variables(subject, options, budget), budget))
        if not made:
            return Done("nothing to clean up")
        waited = _seconds_since_deletion(scope)
        if waited >= deadline:
            return Done(f"gave up cleaning up after {waited:.0f} s")
        name = made[0].get("metadata", {}).get("name")
        for job in scope.children.get("Job", ()):
            if job.get("metadata", {}).get("name") == name and (ended := _ended(job)):
                return Done(f"Job {name} ended: {ended}")
        return Wait(f"waiting for Job {name} to clean up", min(10.0, deadline - waited), tuple(made))

    # -- how -------------------------------------------------------------------------------------------------

    def _variables(self, subject: Subject, options: Options, budget: Budget, **more: Any) -> dict[str, Any]:
        variables: dict[str, Any] = {
            "owner": subject.owner, "object": subject.object, "options": options, **more,
        }  # fmt: skip
        for step in self._values:
            if step.loops:
                variables |= _gathered(step.makes_names, step.results(subject, variables, budget))
            else:
                for names in step.results(subject, variables, budget):
                    variables.update(names)
        return variables

    def _patch(
        self, scope: Scope, obj: Manifest, options: Options, group: Group | None
    ) -> Sequence[Patch] | None:
        subject, budget = Subject(scope.owner, obj, group.role if group else ""), Budget()
        if self._values_see_object:
            variables = self._for_group(scope, subject, options, budget, group)
        else:
            # The Pods of a group are many and alike: what does not depend on the Pod is computed once.
            known = self._remembered.of(scope, options)
            like = (obj.get("kind"), subject.role, group.name if group else None)
            if like not in known:
                known[like] = self._for_group(scope, subject, options, budget, group)
            variables = {**known[like], "object": obj}
        return list(_patched(self._patches, subject, variables, budget))

    def _for_group(
        self, scope: Scope, subject: Subject, options: Options, budget: Budget, group: Group | None
    ) -> dict[str, Any]:
        bound = {"name": group.name, "role": group.role, "spec": group.spec} if group else None
        gang = _bound_gang(scope.gang) if self.schedules else None
        return self._variables(subject, options, budget, group=bound, gang=gang)

    def _make_objects(self, scope: Scope, options: Options, more: Mapping[str, Any]) -> list[Made]:
        subject, budget = Subject(owner=scope.owner), Budget()
        more = {"children": scope.children, "containers": _containers(scope), **more}
        variables = self._variables(subject, options, budget, **more)
        return [
            Made(obj, step.name, said.replace, tuple(said.releases))
            for step, said in self._objects
            for obj in step.results(subject, variables, budget)
        ]


class _Remembered:
    """Variables by what they were computed for, while the owner, its gang and the options are the same."""

    def __init__(self) -> None:
        self._last: tuple[tuple[Any, ...], dict[Any, dict[str, Any]]] = ((None, None, None), {})

    def of(self, scope: Scope, options: Options) -> dict[Any, dict[str, Any]]:
        """What is known about this owner; another one's is forgotten."""
        now = (scope.owner, scope.gang, options)
        same, known = self._last
        if not all(a is b for a, b in zip(same, now, strict=True)):
            known = {}
            self._last = now, known  # at once, since other threads may be at work
        return known


def _bound_gang(gang: Gang) -> dict[str, Any]:
    """The gang as steps see it."""
    members = [
        {
            "group": member.group.name,
            "role": member.group.role,
            "spec": member.group.spec,
            "count": member.count,
            "requests": dict(member.requests),
            "total": member.total,
        }
        for member in gang.members
    ]
    return {"name": gang.name, "count": gang.count, "requests": gang.requests, "members": members}


def _gathered(names: Iterable[str], rounds: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """What the rounds of a loop set, as a list for each name; null is left out."""
    made = list(rounds)
    return {name: [each[name] for each in made if name in each] for name in names}


def _compiled(step: PatchStep) -> tuple[CompiledStep, bool]:
    """The step, and whether it makes a JSON patch."""
    is_json_patch = step.merge is None
    makes = step.json_patch if is_json_patch else step.merge
    return CompiledStep(step, loop=step.loop, makes=makes), is_json_patch


def _patched(
    steps: Iterable[tuple[CompiledStep, bool]],
    subject: Subject,
    variables: Mapping[str, Any],
    budget: Budget,
) -> Iterator[Patch]:
    for step, is_json_patch in steps:
        for made in step.results(subject, variables, budget):
            yield JsonPatch(made, step.name) if is_json_patch else Merge(made, step.name)


def _containers(scope: Scope) -> list[str]:
    pods = scope.children.get("Pod", ())
    return sorted({str(c.get("name")) for pod in pods for c in pod.get("spec", {}).get("containers", ())})


def _seconds_since_deletion(scope: Scope) -> float:
    stamp = scope.owner.get("metadata", {}).get("deletionTimestamp")
    return (scope.now - datetime.fromisoformat(stamp)).total_seconds() if stamp else 0.0


def _ended(job: Manifest) -> str:
    for condition in job.get("status", {}).get("conditions", ()):
        if condition.get("type") in _FINISHED and condition.get("status") == "True":
            return str(condition["type"])
    return ""
