"""What happens when an object is deleted: each finalizer on its own, and none for ever.

Handled before anything else in a pass, whatever else is broken about the object. Children go by garbage
collection; only what a finalizer stands for is done here.
"""

from __future__ import annotations

from typing import Final

from kuberay_op.api import finalizers, reasons
from kuberay_op.controllers.act import Actor
from kuberay_op.controllers.owner import owned
from kuberay_op.errors import Retry
from kuberay_op.hooks.dispatch import PluginError
from kuberay_op.hooks.scope import Gang, Scope
from kuberay_op.hooks.typed import Hooks
from kuberay_op.hooks.verdicts import Done, Refuse, Wait
from kuberay_op.kube.events import Recorder
from kuberay_op.kube.resource import Key
from kuberay_op.plan.actions import Create, Manifest
from kuberay_op.runtime.result import Result

#: Seconds until a finalizer whose plugin fails is asked again.
AGAIN: Final = 10.0


class Finalization:
    """Asks plugins to clean up, and takes their finalizers off."""

    def __init__(self, *, hooks: Hooks, actor: Actor, recorder: Recorder) -> None:
        self._hooks = hooks
        self._actor = actor
        self._recorder = recorder

    async def run(self, key: Key, scope: Scope, gang: Gang) -> Result:
        """One step for each finalizer; comes back for those that wait."""
        waiting = await self._release_gang(scope, gang)
        owner = scope.owner
        for finalizer in owner["metadata"].get("finalizers") or ():
            try:
                ruling = await self._hooks.finalize(scope, finalizer)
            except PluginError as error:
                self._recorder.warning(
                    owner, reasons.PLUGIN_FAILED, reasons.ACTION_CLEANUP, f"{finalizer}: {error}"
                )
                waiting.append(AGAIN)
                continue
            if ruling is None:
                if finalizer.startswith(finalizers.OURS):
                    await self._release(key, owner, finalizer, "no enabled plugin claims it")
                    return Result.after(0.0).saying(released=finalizer)
                continue  # somebody else's; they will take it off
            match ruling.verdict:
                case Done(reason=reason):
                    await self._release(key, owner, finalizer, reason or f"plugin {ruling.plugin} is done")
                    return Result.after(0.0).saying(released=finalizer)
                case Wait(seconds=seconds, objects=objects):
                    await self._make(key, scope, objects, ruling.plugin)
                    waiting.append(seconds)
                case Refuse(reason=reason):
                    note = f"{finalizer}: plugin {ruling.plugin} refuses: {reason}"
                    self._recorder.warning(owner, reasons.PLUGIN_REFUSES, reasons.ACTION_CLEANUP, note)
                    waiting.append(AGAIN)
        if waiting:
            raise Retry("waiting for finalizers", after=min(waiting))
        return Result.done()

    async def _release_gang(self, scope: Scope, gang: Gang) -> list[float]:
        """Let the scheduler free the gang; its failure must not hold the deletion of the object."""
        try:
            rulings = await self._hooks.release_gang(scope, gang)
        except PluginError as error:
            self._recorder.warning(
                scope.owner, reasons.FAILED_TO_CLEANUP_BATCH_SCHEDULER, reasons.ACTION_CLEANUP, str(error)
            )
            return []
        return [r.verdict.seconds for r in rulings if isinstance(r.verdict, Wait)]

    async def _release(self, key: Key, owner: Manifest, finalizer: str, why: str) -> None:
        await self._actor.remove_finalizer(key, owner, finalizer, why)

    async def _make(self, key: Key, scope: Scope, objects: tuple[Manifest, ...], plugin: str) -> None:
        there = {(c.get("kind"), c["metadata"]["name"]) for group in scope.children.values() for c in group}
        plan = [
            Create(owned(obj, scope.owner, plugin), f"plugin {plugin} cleans up")
            for obj in objects
            if (obj.get("kind"), obj.get("metadata", {}).get("name")) not in there
        ]
        for outcome in await self._actor.act(key, plan):
            if outcome.error is not None:
                raise outcome.error
