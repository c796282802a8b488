"""One pass over one object, the same for every kind: observe, ask, desire, plan, act, report.

::

    observed ──► finalize (when it is being deleted; always first)
        │
        ├─► check      our own rules and plugins' checks
        ├─► ask        plugins may hold or refuse the pass
        ├─► desire     pure; builders and plugins' patches
        ├─► plan       pure; actions with reasons
        ├─► act        the only writes to children
        └─► report     one status patch, if something changed

A kind brings what is its own (:class:`Kind`); the hooks are called here and nowhere else.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from kuberay_op.api import conditions, reasons
from kuberay_op.api.validation import failure
from kuberay_op.clock import Clock
from kuberay_op.controllers.act import Actor
from kuberay_op.controllers.finalize import Finalization
from kuberay_op.controllers.owner import owned
from kuberay_op.errors import Invalid, Retry
from kuberay_op.features import Gates
from kuberay_op.frozen import freeze, thaw
from kuberay_op.hooks.dispatch import PluginError
from kuberay_op.hooks.scope import Gang, Scope
from kuberay_op.hooks.typed import Hooks
from kuberay_op.hooks.verdicts import Refuse, Ruling, Wait, decide
from kuberay_op.kube.events import Recorder
from kuberay_op.kube.resource import Key
from kuberay_op.plan.actions import Action, Cause, Desired, Manifest
from kuberay_op.plan.diff import diff
from kuberay_op.runtime.result import Result


@dataclass(frozen=True, slots=True)
class Observed:
    """An object and the children it has, as read at the beginning of a pass."""

    owner: Manifest
    children: Sequence[Manifest] = ()

    @property
    def uid(self) -> str:
        """UID of the owner."""
        return str(self.owner["metadata"]["uid"])

    @property
    def deleting(self) -> bool:
        """Whether the owner is on its way out."""
        return "deletionTimestamp" in self.owner["metadata"]

    def by_kind(self) -> dict[str, tuple[Manifest, ...]]:
        """The children by their kind, as plugins see them."""
        found: dict[str, list[Manifest]] = {}
        for child in self.children:
            found.setdefault(str(child.get("kind", "")), []).append(child)
        return {kind: tuple(objects) for kind, objects in found.items()}


class Kind(Protocol):
    """What a kind of custom resource brings to the pipeline."""

    def skips(self, owner: Manifest) -> bool:
        """Whether the object is none of our business (managed by somebody else)."""
        ...

    def gang(self, owner: Manifest) -> Gang:
        """The Pods that should be scheduled together."""
        ...

    def desired(self, scope: Scope, hooks: Hooks) -> list[Desired]:
        """The children that should exist. Pure; runs where plugins' code may run."""
        ...

    def status(self, scope: Scope, standing: Sequence[Manifest]) -> dict[str, Any]:
        """The fields of the status, from the owner and its children after acting. Pure."""
        ...


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a pass goes no further, as condition and event show it."""

    reason: str
    message: str

    @classmethod
    def of(cls, ruling: Ruling) -> Hold:
        """From a plugin's answer."""
        verdict = ruling.verdict
        reason = conditions.PLUGIN_REFUSES if isinstance(verdict, Refuse) else conditions.PLUGIN_WAITS
        text = verdict.reason if isinstance(verdict, Refuse | Wait) else ""
        return cls(reason, f"plugin {ruling.plugin}: {text}")


class Pipeline:
    """Makes passes. One per controller; holds no state between passes."""

    def __init__(
        self,
        kind: Kind,
        *,
        hooks: Hooks,
        actor: Actor,
        recorder: Recorder,
        gates: Gates,
        clock: Clock,
        requeue: float = 0.0,
    ) -> None:
        self._kind = kind
        self._hooks = hooks
        self._actor = actor
        self._recorder = recorder
        self._gates = gates
        self._clock = clock
        self._requeue = requeue
        self._finalization = Finalization(hooks=hooks, actor=actor, recorder=recorder)

    async def run(self, key: Key, observed: Observed) -> Result:
        """One pass; plugins are told how it ended."""
        scope = Scope(
            owner=observed.owner,
            now=self._clock.now(),
            gate=self._gates.enabled,
            children=observed.by_kind(),
        )
        began, outcome = time.monotonic(), "error"
        try:
            result = await self._pass(key, scope, observed)
            outcome = "success"
            return result
        except PluginError as error:
            await self._hooks.on_reconcile_error(scope, error)
            await self._hold(key, scope, observed, Hold(conditions.PLUGIN_FAILED, str(error)))
            raise
        except Retry:
            outcome = "waiting"
            raise
        except Invalid:
            outcome = "refused"
            raise
        except Exception as error:
            await self._hooks.on_reconcile_error(scope, error)
            raise
        finally:
            await self._hooks.after_reconcile(scope, outcome, time.monotonic() - began)

    async def _pass(self, key: Key, scope: Scope, observed: Observed) -> Result:
        if observed.deleting:
            gang = self._kind.gang(scope.owner)
            return await self._finalization.run(key, scope, gang)
        if self._kind.skips(scope.owner):
            return Result.done()
        scope = await self._checked(scope)
        rulings = await self._hooks.before_reconcile(scope)
        scope = replace(scope, rulings=tuple(rulings))
        await self._obey(key, scope, observed, rulings)
        wanted = await self._hooks.dispatcher.build(lambda: self._hooks.finalizers(scope))
        if await self._actor.add_finalizers(key, scope.owner, sorted(wanted)):
            return Result.after(0.0).saying(finalizers="added")  # no child may exist before they do

        gang = self._kind.gang(scope.owner)
        plan: list[Action] = await self._hooks.dispatcher.build(lambda: self._plan(scope, gang, observed))
        if plan:
            rulings = [*await self._hooks.admit_gang(scope, gang), *await self._hooks.before_act(scope, plan)]
            await self._obey(key, scope, observed, rulings)
        outcomes = await self._actor.act(key, plan)
        await self._hooks.after_act(scope, plan, outcomes)
        standing = [*observed.children, *(o.obj for o in outcomes if o.error is None and o.obj)]
        status = self._kind.status(scope, standing)
        written = await self._report(key, scope, status, None)
        for done in outcomes:
            if done.error is not None:
                raise done.error
        result = Result.after(self._requeue) if self._requeue > 0 else Result.done()
        if plan:
            result = result.saying(actions=[f"{type(a).__name__} {a.obj.get('kind')}" for a in plan])
        return result.saying(status="written") if written else result

    async def _checked(self, scope: Scope) -> Scope:
        """The scope with plugins' defaults filled in; raises Invalid when a rule is broken."""

        def check() -> tuple[Manifest, list[str]]:
            built = self._hooks.default(scope.owner)
            problems = self._hooks.validate(built.obj)
            return built.obj, [str(problem) for problem in problems if problem.severity == "error"]

        owner, mistakes = await self._hooks.dispatcher.build(check)
        broken = failure(thaw(owner), self._gates.enabled)
        if broken is not None:
            self._recorder.warning(scope.owner, broken.reason, reasons.ACTION_VALIDATE, broken.message)
            raise Invalid(broken.message)
        if mistakes:
            text = f"The {scope.kind} is refused: {'; '.join(mistakes)}"
            self._recorder.warning(scope.owner, reasons.PLUGIN_REFUSES, reasons.ACTION_VALIDATE, text)
            raise Invalid(text)
        return scope if owner is scope.owner else replace(scope, owner=freeze(owner))

    def _plan(self, scope: Scope, gang: Gang, observed: Observed) -> list[Action]:
        desired = self._kind.desired(scope, self._hooks)
        for extra in [*self._hooks.extra_objects(scope), *self._hooks.gang_objects(scope, gang)]:
            desired.append(
                Desired(
                    owned(extra.obj, scope.owner, extra.plugin),
                    f"plugin {extra.plugin} asks for it",
                    (Cause(extra.plugin),),
                )
            )
        return diff(desired, observed.children)

    async def _obey(self, key: Key, scope: Scope, observed: Observed, rulings: Sequence[Ruling]) -> None:
        """Go on, or say why not and stop the pass."""
        ruling = decide(rulings)
        if ruling is None:
            return
        hold = Hold.of(ruling)
        await self._hold(key, scope, observed, hold)
        if isinstance(ruling.verdict, Wait):
            raise Retry(hold.message, after=ruling.verdict.seconds)
        raise Invalid(hold.message)

    async def _hold(self, key: Key, scope: Scope, observed: Observed, hold: Hold) -> None:
        """Nothing is written for the object but why: an event and a condition."""
        self._recorder.warning(scope.owner, hold.reason, reasons.ACTION_RECONCILE, hold.message)
        await self._report(key, scope, self._kind.status(scope, observed.children), hold)

    async def _report(self, key: Key, scope: Scope, status: dict[str, Any], hold: Hold | None) -> bool:
        if scope.gate("RayClusterStatusConditions"):
            status["conditions"] = _with_agreement(status, scope, hold, scope.now)
        return await self._actor.publish(key, scope.owner, status)


def _with_agreement(
    status: Mapping[str, Any], scope: Scope, hold: Hold | None, now: datetime
) -> list[Mapping[str, Any]]:
    """The conditions with ours on plugins: there once a plugin has objected, true again when none does."""
    before = list(scope.owner.get("status", {}).get("conditions", ()))
    own = [c for c in status.get("conditions", before) if c.get("type") != conditions.PLUGINS_AGREE]
    old = next((c for c in before if c.get("type") == conditions.PLUGINS_AGREE), None)
    if hold is None and old is None:
        return own
    truth = conditions.TRUE if hold is None else conditions.FALSE
    since = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if old is not None and old.get("status") == truth:
        since = str(old.get("lastTransitionTime", since))
    return [
        *own,
        {
            "type": conditions.PLUGINS_AGREE,
            "status": truth,
            "reason": conditions.ALL_AGREE if hold is None else hold.reason,
            "message": "" if hold is None else hold.message[:1000],
            "lastTransitionTime": since,
            "observedGeneration": scope.owner["metadata"].get("generation", 0),
        },
    ]
