"""What the operator would do about an object, without doing it: ``kuberay-op plan`` and ``render``.

The same builders, plugins and decisions as in a pass. What is not asked are the awaited hooks: they may talk
to the outside world, and a preview must not. An object that is not on a cluster is followed further: its
children are taken for made, and theirs are shown as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from random import Random
from types import MappingProxyType
from typing import Any, Final

from kuberay_op.api import conditions
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.raycronjob import RayCronJob
from kuberay_op.api.rayjob import RayJob
from kuberay_op.api.validation.whole import examine
from kuberay_op.build.cronjob import scheduled_rayjob
from kuberay_op.build.metadata import head_service_name
from kuberay_op.build.service import head_service
from kuberay_op.config import Config
from kuberay_op.controllers.pipeline import Kind, Observed, Report
from kuberay_op.controllers.raycluster.desired import RayClusterKind
from kuberay_op.controllers.raycronjob.desired import RayCronJobKind
from kuberay_op.controllers.rayjob.desired import RayJobKind
from kuberay_op.controllers.wishes import causes_of, with_plugins
from kuberay_op.errors import Misconfigured
from kuberay_op.frozen import freeze, thaw
from kuberay_op.hooks.scope import Gang, Scope, Watch
from kuberay_op.hooks.typed import Hooks
from kuberay_op.kube.merge import overlay
from kuberay_op.plan.actions import Action, Cause, Create, Manifest
from kuberay_op.plan.diff import diff

#: Kinds that a preview can be made of.
KINDS: Final = (RayCluster.KIND, RayJob.KIND, RayCronJob.KIND)

#: A new job has made all its children after so many passes, or never will.
MOST_PASSES: Final = 6

#: Stands for the UID of an object that is not on a cluster.
NO_UID: Final = "not-on-a-cluster"


@dataclass(frozen=True, slots=True)
class Planned:
    """One thing that would be done, and for whom."""

    owner: str
    action: Action


@dataclass(slots=True)
class Preview:
    """All that would be done about an object, or why nothing would."""

    refused: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    planned: list[Planned] = field(default_factory=list)
    #: What plugins would fill into the spec of each owner before anything else.
    defaults: dict[str, tuple[Cause, ...]] = field(default_factory=dict)


class Previewer:
    """Makes previews with one configuration and its plugins.

    ``missing`` are kinds that plugins make and the cluster lacks; ``routes`` is whether dashboards get one.
    """

    def __init__(
        self,
        config: Config,
        hooks: Hooks,
        *,
        now: datetime,
        missing: Mapping[tuple[str, str], Watch] = MappingProxyType({}),
        routes: bool = False,
    ) -> None:
        self._config = config
        self._hooks = hooks
        self._now = now
        self._missing = missing
        rng = Random(0)  # noqa: S311 (names in a preview are made up, and the same every time)
        self._kinds: dict[str, Kind] = {
            RayCluster.KIND: RayClusterKind(config, rng=rng, routes=routes),
            RayJob.KIND: RayJobKind(config, rng=rng),
            RayCronJob.KIND: RayCronJobKind(),
        }

    def of(self, owner: Manifest, children: Sequence[Manifest] | None = None) -> Preview:
        """What would be done; with ``children`` as they are on a cluster, else as if there were none."""
        found = Preview()
        self._add(found, owner, children)
        return found

    def _add(self, found: Preview, owner: Manifest, children: Sequence[Manifest] | None) -> None:
        title = _title(owner)
        kind = self._kinds.get(str(owner.get("kind")))
        if kind is None:
            raise Misconfigured(f"{title}: a plan can be made of {', '.join(KINDS)} only")
        if owner.get("kind") == RayCronJob.KIND and not self._config.gates.enabled("RayCronJob"):
            found.warnings.append(f"{title}: the feature gate RayCronJob is off, so nothing is done")
            return
        if kind.skips(owner):
            found.warnings.append(f"{title}: somebody else manages it (spec.managedBy)")
            return
        checked = self._checked(found, owner)
        if checked is None:
            return
        if children is not None:
            for action in self._actions(found, kind, self._scope(kind, checked, children), children):
                found.planned.append(Planned(title, action))
            return
        for actions in self._follow(found, kind, checked):
            for action in actions:
                found.planned.append(Planned(title, action))
                if isinstance(action, Create) and action.obj.get("kind") in self._kinds:
                    self._add(found, stored(action.obj), None)

    def _follow(self, found: Preview, kind: Kind, owner: Manifest) -> Iterator[list[Action]]:
        """The passes over a new object; a job first chooses names, then has a cluster made, then goes on."""
        if owner.get("kind") == RayCronJob.KIND:
            yield from self._next_run(kind, owner)
            return
        children: list[Manifest] = []
        for _ in range(MOST_PASSES if owner.get("kind") == RayJob.KIND else 1):
            scope = self._scope(kind, owner, children)
            actions = self._actions(found, kind, scope, children)
            yield actions
            children += [child for action in actions for child in _carried_out(action)]
            status = kind.status(scope, children, Report())
            before = (owner.get("status") or {}).get("jobDeploymentStatus")
            state = status.get("jobDeploymentStatus")
            if before == state and not actions:
                return
            if state == conditions.DEPLOYMENT_RUNNING and before == state:
                return  # from here on Ray decides
            owner = freeze(overlay(thaw(owner), {"status": status}))

    def _next_run(self, kind: Kind, owner: Manifest) -> Iterator[list[Action]]:
        """The job that a RayCronJob makes when its time has come, which is taken for now."""
        cron = RayCronJob(dict(owner))
        if not cron.spec.suspend:
            scope = self._scope(kind, owner, ())
            built = self._hooks.patch_object(scope, scheduled_rayjob(cron, self._now))
            yield [Create(built.obj, "when its time has come", causes_of(built.changes))]

    def _checked(self, found: Preview, owner: Manifest) -> Manifest | None:
        """The owner with plugins' defaults; None if it is refused."""
        title = _title(owner)
        built = self._hooks.default(owner)
        if built.changes:
            found.defaults[title] = causes_of(built.changes)
        problems = [("", problem) for problem in examine(thaw(built.obj), self._config.gates.enabled)]
        if not any(problem.severity == "error" for _, problem in problems):
            problems += [
                (f"plugin {plugin}: ", problem) for plugin, problem in self._hooks.validate(built.obj)
            ]
        for who, problem in problems:
            said = found.refused if problem.severity == "error" else found.warnings
            said.append(f"{title}: {who}{problem}")
        checked: Manifest = freeze(built.obj)
        return None if any(problem.severity == "error" for _, problem in problems) else checked

    def _scope(self, kind: Kind, owner: Manifest, children: Sequence[Manifest]) -> Scope:
        """What hooks get to see."""
        scope = Scope(
            owner=owner,
            now=self._now,
            gate=self._config.gates.enabled,
            children=Observed(owner, children).by_kind(),
            config=self._config,
        )
        gang = kind.gang(scope) if self._hooks.scheduler else Gang(scope.name, ())
        return replace(scope, gang=gang)

    def _actions(
        self, found: Preview, kind: Kind, scope: Scope, children: Sequence[Manifest]
    ) -> list[Action]:
        wanted, lacking = with_plugins(
            kind.wanted(scope, self._hooks), self._hooks, scope, missing=self._missing, refuses=_nothing
        )
        said = [*lacking, *([wanted.problem] if wanted.problem else [])]
        found.warnings += [text for text in said if text not in found.warnings]
        return [*diff(wanted.objects, children), *wanted.actions]


def _carried_out(action: Action) -> Iterator[Manifest]:
    """What an action would leave behind; a new RayCluster is taken for ready."""
    if not isinstance(action, Create):
        return
    made = stored(action.obj)
    if made["kind"] == RayCluster.KIND:
        cluster = RayCluster(made)
        name = head_service_name(cluster)
        yield freeze({**made, "status": {"state": conditions.STATE_READY, "head": {"serviceName": name}}})
        yield freeze(head_service(cluster, Config()))
    else:
        yield freeze(made)


def stored(obj: Manifest) -> dict[str, Any]:
    """The object as if it had been made."""
    plain: dict[str, Any] = thaw(obj)
    plain["metadata"] = {"uid": NO_UID, "generation": 1, **plain["metadata"]}
    return plain


def _nothing(_: Manifest) -> str:
    return ""


def _title(owner: Manifest) -> str:
    metadata = owner.get("metadata") or {}
    return f"{owner.get('kind')} {metadata.get('name') or metadata.get('generateName')}"
