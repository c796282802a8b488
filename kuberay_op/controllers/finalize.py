"""What happens when an object is deleted: each finalizer on its own, and none for ever.

Handled before anything else in a pass, whatever else is broken about the object. Children go by garbage
collection; only what a finalizer stands for is done here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from kuberay_op.api import conditions, finalizers, reasons
from kuberay_op.controllers.act import Actor
from kuberay_op.controllers.hold import Hold
from kuberay_op.errors import OperatorError
from kuberay_op.hooks.dispatch import PluginError
from kuberay_op.hooks.scope import Gang, Scope
from kuberay_op.hooks.typed import Hooks
from kuberay_op.hooks.verdicts import Done, Refuse, Ruling, Verdict, Wait
from kuberay_op.kube.events import Recorder
from kuberay_op.kube.resource import Key
from kuberay_op.plan.actions import Delete

#: Seconds until a finalizer whose plugin fails or refuses is asked again.
AGAIN: Final = 10.0

#: Pods are deleted several at a time.
PODS_LANE: Final = "Pods of a deleted owner"


#: Whether what a finalizer stands for is done; None for one that is a plugin's.
Own = Callable[[Scope, str], Verdict | None]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the clean-up has come: one finalizer is released per pass, or the objections are listed."""

    released: str = ""
    holds: tuple[Hold, ...] = ()
    #: What finalizers of our own wait for.
    waits: tuple[Wait, ...] = ()


class Finalization:
    """Asks plugins to clean up, and takes their finalizers off; ``own`` knows those that are no plugin's."""

    def __init__(self, *, hooks: Hooks, actor: Actor, recorder: Recorder, own: Own) -> None:
        self._hooks = hooks
        self._actor = actor
        self._recorder = recorder
        self._own = own

    async def run(self, key: Key, scope: Scope, gang: Callable[[], Gang]) -> Progress:
        """One step for each of our finalizers."""
        waiting = await self._release_gang(scope, gang)
        if waiting:
            return Progress(holds=waiting)
        holds, waits = [], []
        for finalizer in scope.owner["metadata"].get("finalizers") or ():
            if not finalizer.startswith(finalizers.OURS):
                continue  # somebody else's; they will take it off
            verdict = self._own(scope, finalizer)
            if isinstance(verdict, Wait):
                waits.append(verdict)
                continue
            done = verdict if isinstance(verdict, Done) else await self._step(key, scope, finalizer)
            if not isinstance(done, Done):
                holds.append(done)
                continue
            await self._actor.remove_finalizer(key, scope.owner, finalizer, done)
            return Progress(released=finalizer)
        return Progress(holds=tuple(holds), waits=tuple(waits))

    async def _step(self, key: Key, scope: Scope, finalizer: str) -> Done | Hold:
        """Why the finalizer can go, or why it cannot."""
        try:
            ruling = await self._hooks.finalize(scope, finalizer)
        except PluginError as error:
            return Hold(conditions.PLUGIN_FAILED, f"{finalizer}: {error}", AGAIN)
        match ruling:
            case None:
                return Done("no enabled plugin claims it")
            case Ruling(plugin, Done() as done):
                return replace(done, reason=done.reason or f"plugin {plugin} is done")
            case Ruling(plugin, Wait() as wait):
                failed = await self._stop_pods(key, scope, plugin) if wait.stop_pods else None
                failed = failed or await self._actor.make_for(key, scope, ruling)
                # Not later than the plugin wants: it may have a deadline.
                return Hold.failed(failed, min(AGAIN, wait.seconds)) if failed else Hold.of(ruling)
            case Ruling(plugin, Refuse(reason=reason)):
                return Hold(conditions.PLUGIN_REFUSES, f"{finalizer}: plugin {plugin}: {reason}", AGAIN)
        raise OperatorError(f"{finalizer}: {ruling} is no answer")

    async def _stop_pods(self, key: Key, scope: Scope, plugin: str) -> OperatorError | None:
        """Delete the owner's Pods, which would otherwise go on until the owner itself is gone."""
        plan = [
            Delete(pod, f"plugin {plugin} waits for the Pods to go", lane=PODS_LANE)
            for pod in scope.children.get("Pod", ())
            if "deletionTimestamp" not in pod["metadata"]
        ]
        errors = [outcome.error for outcome in await self._actor.act(key, plan) if outcome.error]
        return OperatorError(f"plugin {plugin}: a Pod cannot be deleted: {errors[0]}") if errors else None

    async def _release_gang(self, scope: Scope, gang: Callable[[], Gang]) -> tuple[Hold, ...]:
        """Let the scheduler free the gang; its failure must not hold the deletion of the object."""
        if not self._hooks.scheduler:
            return ()
        try:
            rulings = await self._hooks.release_gang(scope, gang())
        except Exception as error:  # noqa: BLE001 (a spec may be broken in any way, and must go all the same)
            self._recorder.warning(
                scope.owner, reasons.FAILED_TO_CLEANUP_BATCH_SCHEDULER, reasons.ACTION_CLEANUP, str(error)
            )
            return ()
        return tuple(Hold.of(ruling) for ruling in rulings if isinstance(ruling.verdict, Wait))
