"""The hooks as ordinary methods, so that core code calls them without strings and gets checked answers.

One method per hook, with the rule of its family built in: building, scheduling and admission raise
:class:`~kuberay_op.hooks.dispatch.PluginError`; watching hooks are counted and logged; see ``specs.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from kuberay_op import logs
from kuberay_op.api.problems import Problem
from kuberay_op.frozen import freeze
from kuberay_op.hooks import answers
from kuberay_op.hooks.dispatch import Dispatcher, Implementation, PluginError
from kuberay_op.hooks.patches import Change, Made, Manifest, Patch, apply_patch
from kuberay_op.hooks.scope import Gang, Group, PolicyRule, Scope, Watch
from kuberay_op.hooks.verdicts import Ruling

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

T = TypeVar("T")

log = logs.get_logger("plugins")


@dataclass(frozen=True, slots=True)
class Built:
    """An object after all plugins had their say, and who changed it."""

    obj: Manifest
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Extra:
    """An object that a plugin asked for, and in which hook."""

    plugin: str
    made: Made
    hook: str

    @property
    def obj(self) -> Manifest:
        """The object itself."""
        return self.made.obj


class Hooks:
    """Every hook as a method. ``scheduler`` names the plugin that provides the batch scheduler, if any."""

    def __init__(self, dispatcher: Dispatcher, *, scheduler: str = "") -> None:
        self.dispatcher = dispatcher
        self.scheduler = scheduler

    # -- registration -----------------------------------------------------------------------------------

    def rbac_rules(self) -> list[tuple[str, PolicyRule]]:
        """RBAC rules that plugins need, each with the plugin's name."""
        return self._items("kuberay_rbac_rules", {}, answers.of(PolicyRule))

    def watches(self) -> list[tuple[str, Watch]]:
        """Kinds that plugins want watched, each with the plugin's name."""
        return self._items("kuberay_watches", {}, answers.of(Watch))

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
        scheduled = self.schedule_child(scope, group, built.obj)
        return Built(scheduled.obj, built.changes + scheduled.changes)

    def schedule_child(self, scope: Scope, group: Group, child: Manifest) -> Built:
        """A Pod, a Pod template or the RayCluster of a job as the scheduler wants it."""
        if not self.scheduler:
            return Built(child)
        arguments = {"scope": scope, "group": group}
        return self._patched("kuberay_schedule_child", "child", child, arguments, only=self.scheduler)

    def patch_object(self, scope: Scope, obj: Manifest) -> Built:
        """Any other object with all plugins' patches."""
        return self._patched("kuberay_patch_object", "obj", obj, {"scope": scope})

    def extra_objects(self, scope: Scope) -> list[Extra]:
        """Objects that plugins add to the owner's children."""
        hook = "kuberay_extra_objects"
        found = self._items(hook, {"scope": scope}, answers.made)
        return [Extra(plugin, made, hook) for plugin, made in found]

    def gang_objects(self, scope: Scope, gang: Gang) -> list[Extra]:
        """The scheduler's objects for a gang; none without a scheduler."""
        hook = "kuberay_gang_objects"
        found = self._items(hook, {"scope": scope, "gang": gang}, answers.made, only=self.scheduler)
        return [Extra(plugin, made, hook) for plugin, made in found]

    def finalizers(self, scope: Scope) -> dict[str, str]:
        """Finalizers that the owner must carry, each with the plugin that wants it."""
        found = self._items("kuberay_finalizers", {"scope": scope}, answers.finalizer)
        return {finalizer: name for name, finalizer in found}

    def default(self, obj: Manifest) -> Built:
        """The custom resource with plugins' defaults."""
        return self._patched("kuberay_default", "obj", obj, {}, check=answers.only_spec)

    def validate(self, obj: Manifest) -> list[tuple[str, Problem]]:
        """Problems that plugins see in a custom resource, each with the plugin's name."""
        return self._items("kuberay_validate", {"obj": obj}, answers.problem)

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
        """Ask whose finalizer this is to clean up; None when no plugin claims it.

        One that fails does not keep another from claiming it; its error is raised when none does.
        """
        failed: PluginError | None = None
        for implementation in self._all("kuberay_finalize"):
            try:
                verdict = await self.dispatcher.ask(
                    implementation, {"scope": scope, "finalizer": finalizer}, take=answers.verdict
                )
            except PluginError as error:
                failed = failed or error
                continue
            if verdict is not None:
                return Ruling(implementation.plugin, verdict)
        if failed is not None:
            raise failed
        return None

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
                implementation, arguments, take=lambda answer: [check(item) for item in answers.items(answer)]
            )
            found += [(implementation.plugin, item) for item in value or ()]
        return found

    def _patched(
        self,
        hook: str,
        argument: str,
        obj: Manifest,
        arguments: dict[str, Any],
        *,
        only: str | None = None,
        check: Callable[[Manifest, Manifest], None] | None = None,
    ) -> Built:
        changes: list[Change] = []
        for implementation in self._all(hook, only):
            before = freeze(obj)

            def patched(answer: Any, before: Manifest = before) -> tuple[Manifest, list[Patch]]:
                after, made = before, []
                for patch in answers.patches(answer):
                    patched_so_far = apply_patch(after, patch)
                    if patched_so_far != after:  # a plan names who changed something, not who might have
                        made.append(patch)
                    after = patched_so_far
                if check is not None:
                    check(before, after)
                return after, made

            answer = self.dispatcher.call(implementation, {**arguments, argument: before}, take=patched)
            if answer is not None:
                obj, made = answer
                changes += [Change(implementation.plugin, hook, patch) for patch in made]
        return Built(obj, tuple(changes))

    async def _rulings(
        self, hook: str, arguments: Mapping[str, Any], only: str | None = None
    ) -> list[Ruling]:
        rulings = []
        for implementation in self._all(hook, only):
            value = await self.dispatcher.ask(implementation, arguments, take=answers.verdict)
            if value is not None:
                rulings.append(Ruling(implementation.plugin, value))
        return rulings

    async def _tell(self, hook: str, arguments: Mapping[str, Any]) -> None:
        for implementation in self._all(hook):
            try:
                await self.dispatcher.ask(implementation, arguments)
            except PluginError as error:
                log.warning("plugin failed; ignored", plugin=error.plugin, hook=error.hook, error=str(error))
