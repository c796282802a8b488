"""The hooks as ordinary methods, so that core code calls them without strings and gets checked answers.

One method per hook, with the rule of its family built in: building, scheduling and admission raise
:class:`~kuberay_op.hooks.dispatch.PluginError`; watching hooks are counted and logged; see ``specs.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from kuberay_op import logs
from kuberay_op.frozen import freeze
from kuberay_op.hooks.dispatch import Dispatcher, Implementation, PluginError, Rubbish, items
from kuberay_op.hooks.patches import Change, JsonPatch, Manifest, Merge, Patch, apply_patch
from kuberay_op.hooks.scope import Gang, Group, PolicyRule, Scope, Watch
from kuberay_op.hooks.verdicts import Done, Refuse, Ruling, Verdict, Wait

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from kuberay_op.api.problems import Problem
    from kuberay_op.features import FeatureGate

T = TypeVar("T")

log = logs.get_logger("plugins")


@dataclass(frozen=True, slots=True)
class Built:
    """An object after all plugins had their say, and who changed it."""

    obj: Manifest
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Extra:
    """An object that a plugin asked for."""

    plugin: str
    obj: Manifest


class Hooks:
    """Every hook as a method. ``scheduler`` names the plugin that provides the batch scheduler, if any."""

    def __init__(self, dispatcher: Dispatcher, *, scheduler: str = "") -> None:
        self.dispatcher = dispatcher
        self.scheduler = scheduler

    # -- registration -----------------------------------------------------------------------------------

    def feature_gates(self) -> list[FeatureGate]:
        """Gates that plugins add."""
        from kuberay_op.features import FeatureGate  # late: only needed at start-up

        return [gate for _, gate in self._items("kuberay_feature_gates", {}, _of(FeatureGate))]

    def rbac_rules(self) -> list[tuple[str, PolicyRule]]:
        """RBAC rules that plugins need, each with the plugin's name."""
        return self._items("kuberay_rbac_rules", {}, _of(PolicyRule))

    def watches(self) -> list[tuple[str, Watch]]:
        """Kinds that plugins want watched, each with the plugin's name."""
        return self._items("kuberay_watches", {}, _of(Watch))

    def scheduler_names(self) -> list[tuple[str, str]]:
        """(plugin, scheduler name) pairs."""
        return self._items("kuberay_scheduler_names", {}, _of(str))

    def register_metrics(self, registry: CollectorRegistry) -> None:
        """Let plugins add metrics."""
        for implementation in self._all("kuberay_register_metrics"):
            self.dispatcher.call(implementation, {"registry": registry})

    async def started(self) -> None:
        """Tell plugins that work begins."""
        for implementation in self._all("kuberay_started"):
            await self.dispatcher.ask(implementation, {}, may_leave_tasks=True)

    async def stopping(self) -> None:
        """Tell plugins that work ends."""
        await self._tell("kuberay_stopping", {})

    # -- building (call these inside ``dispatcher.build``) ------------------------------------------------

    def patch_pod(self, scope: Scope, group: Group, pod: Manifest) -> Built:
        """The Pod with all plugins' patches, the scheduler's last."""
        built = self._patched("kuberay_patch_pod", "pod", pod, {"scope": scope, "group": group})
        if not self.scheduler:
            return built
        scheduled = self._patched(
            "kuberay_schedule_child",
            "child",
            built.obj,
            {"scope": scope, "group": group},
            only=self.scheduler,
        )
        return Built(scheduled.obj, built.changes + scheduled.changes)

    def patch_object(self, scope: Scope, obj: Manifest) -> Built:
        """Any other object with all plugins' patches."""
        return self._patched("kuberay_patch_object", "obj", obj, {"scope": scope})

    def extra_objects(self, scope: Scope) -> list[Extra]:
        """Objects that plugins add to the owner's children."""
        return [Extra(*found) for found in self._items("kuberay_extra_objects", {"scope": scope}, _manifest)]

    def gang_objects(self, scope: Scope, gang: Gang) -> list[Extra]:
        """The scheduler's objects for a gang; none without a scheduler."""
        arguments = {"scope": scope, "gang": gang}
        found = self._items("kuberay_gang_objects", arguments, _manifest, only=self.scheduler)
        return [Extra(*item) for item in found]

    def finalizers(self, scope: Scope) -> dict[str, str]:
        """Finalizers that the owner must carry, each with the plugin that wants it."""
        found = self._items("kuberay_finalizers", {"scope": scope}, _of(str))
        return {finalizer: name for name, finalizer in found}

    def default(self, obj: Manifest) -> Built:
        """The custom resource with plugins' defaults."""
        return self._patched("kuberay_default", "obj", obj, {})

    def validate(self, obj: Manifest, old: Manifest | None = None) -> list[Problem]:
        """Problems that plugins see in a custom resource."""
        from kuberay_op.api.problems import Problem  # late: the schema machinery is not needed to plan

        found = self._items("kuberay_validate", {"obj": obj, "old": old}, _of(Problem))
        return [problem for _, problem in found]

    # -- awaited ------------------------------------------------------------------------------------------

    async def before_reconcile(self, scope: Scope) -> list[Ruling]:
        """Ask all plugins whether the pass may go on."""
        return await self._rulings("kuberay_before_reconcile", {"scope": scope})

    async def before_act(self, scope: Scope, plan: Sequence[Any]) -> list[Ruling]:
        """Ask all plugins whether the plan may be carried out."""
        return await self._rulings("kuberay_before_act", {"scope": scope, "plan": plan})

    async def admit_gang(self, scope: Scope, gang: Gang) -> list[Ruling]:
        """Ask the scheduler whether the gang's Pods may be made."""
        return await self._rulings("kuberay_admit_gang", {"scope": scope, "gang": gang}, only=self.scheduler)

    async def release_gang(self, scope: Scope, gang: Gang) -> list[Ruling]:
        """Ask the scheduler to free what the gang holds."""
        return await self._rulings(
            "kuberay_release_gang", {"scope": scope, "gang": gang}, only=self.scheduler
        )

    async def finalize(self, scope: Scope, finalizer: str) -> Ruling | None:
        """Ask whose finalizer this is to clean up; None when no plugin claims it."""
        rulings = await self._rulings("kuberay_finalize", {"scope": scope, "finalizer": finalizer})
        return rulings[0] if rulings else None

    async def after_act(self, scope: Scope, plan: Sequence[Any], outcomes: Sequence[Any]) -> None:
        """Tell plugins what was done."""
        await self._tell("kuberay_after_act", {"scope": scope, "plan": plan, "outcomes": outcomes})

    async def on_reconcile_error(self, scope: Scope, error: Exception) -> None:
        """Tell plugins that the pass failed."""
        await self._tell("kuberay_on_reconcile_error", {"scope": scope, "error": error})

    async def after_reconcile(self, scope: Scope, outcome: str, seconds: float) -> None:
        """Tell plugins how the pass ended."""
        await self._tell("kuberay_after_reconcile", {"scope": scope, "outcome": outcome, "seconds": seconds})

    # -- how ------------------------------------------------------------------------------------------------

    def _all(self, hook: str, only: str | None = None) -> Iterable[Implementation]:
        found = self.dispatcher.implementations(hook)
        if only is None:
            return found
        return [implementation for implementation in found if implementation.plugin == only]

    def _items(
        self, hook: str, arguments: Mapping[str, Any], check: Callable[[Any], T], only: str | None = None
    ) -> list[tuple[str, T]]:
        found: list[tuple[str, T]] = []
        for implementation in self._all(hook, only):
            value = self.dispatcher.call(
                implementation, arguments, take=lambda answer: [check(item) for item in items(answer)]
            )
            found += [(implementation.plugin, item) for item in value or ()]
        return found

    def _patched(
        self, hook: str, argument: str, obj: Manifest, arguments: dict[str, Any], only: str | None = None
    ) -> Built:
        changes: list[Change] = []
        for implementation in self._all(hook, only):
            before = freeze(obj)

            def patched(
                answer: Any, before: Manifest = before, implementation: Implementation = implementation
            ) -> tuple[Manifest, list[Change]]:
                after, made = before, []
                for patch in _patches(answer):
                    after = apply_patch(after, patch)
                    made.append(Change(implementation.plugin, implementation.hook, patch))
                return after, made

            answer = self.dispatcher.call(implementation, {**arguments, argument: before}, take=patched)
            if answer is not None:
                obj, made = answer
                changes += made
        return Built(obj, tuple(changes))

    async def _rulings(
        self, hook: str, arguments: Mapping[str, Any], only: str | None = None
    ) -> list[Ruling]:
        rulings = []
        for implementation in self._all(hook, only):
            value = await self.dispatcher.ask(implementation, arguments, take=_verdict)
            if value is not None:
                rulings.append(Ruling(implementation.plugin, value))
        return rulings

    async def _tell(self, hook: str, arguments: Mapping[str, Any]) -> None:
        for implementation in self._all(hook):
            try:
                await self.dispatcher.ask(implementation, arguments)
            except PluginError as error:
                log.warning("plugin failed; ignored", plugin=error.plugin, hook=error.hook, error=str(error))


def _of(kind: type[T]) -> Callable[[Any], T]:
    def check(value: Any) -> T:
        if not isinstance(value, kind):
            raise Rubbish(f"{kind.__name__} was expected, not {type(value).__name__}")
        return value

    return check


def _manifest(value: Any) -> Manifest:
    if not isinstance(value, Mapping) or not value.get("kind") or not value.get("apiVersion"):
        raise Rubbish("an object with apiVersion and kind was expected")
    return value


def _patches(answer: Any) -> list[Patch]:
    if isinstance(answer, Merge | JsonPatch):
        return [answer]
    found = items(answer)
    for patch in found:
        if not isinstance(patch, Merge | JsonPatch):
            raise Rubbish(f"a Merge or a JsonPatch was expected, not {type(patch).__name__}")
    return found


def _verdict(value: Any) -> Verdict:
    if isinstance(value, Done | Wait | Refuse):
        return value
    raise Rubbish(f"Done, Wait or Refuse was expected, not {type(value).__name__}")
