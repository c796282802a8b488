"""Carries out a plan: the only place that writes children, finalizers and status."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from kuberay_op.api import reasons
from kuberay_op.controllers.lanes import carry_out
from kuberay_op.controllers.owner import owned
from kuberay_op.errors import OperatorError
from kuberay_op.frozen import freeze
from kuberay_op.hooks.scope import Scope
from kuberay_op.hooks.verdicts import Done as Finished
from kuberay_op.hooks.verdicts import Ruling, Wait
from kuberay_op.kube.apply import Action as Done
from kuberay_op.kube.apply import Applied, Applier
from kuberay_op.kube.cache import Store
from kuberay_op.kube.client import Client, PatchKind
from kuberay_op.kube.errors import AlreadyExists, NotFound
from kuberay_op.kube.events import Recorder
from kuberay_op.kube.merge import exact_patch, merge_patch
from kuberay_op.kube.resource import PODS, SECRETS, Key, Object, Resource
from kuberay_op.plan.actions import Action, Create, Delete, Manifest, Outcome, Update
from kuberay_op.plan.diff import identity
from kuberay_op.runtime.expectations import Expectations

#: Fields of a status that are written along with a change and are never a reason to write.
TIMES = ("lastUpdateTime", "stateTransitionTimes")


class Actor:
    """Writes for one controller, and remembers what the caches must show before the next pass.

    ``whole`` are the fields of the status that become what is given, not only get it: copies of something.
    """

    def __init__(
        self,
        client: Client,
        *,
        owner: Resource,
        resources: Mapping[tuple[str, str], Resource],
        stores: Mapping[Resource, Store],
        expectations: Expectations,
        recorder: Recorder,
        whole: Sequence[str] = (),
    ) -> None:
        self._client = client
        self._applier = Applier(client)
        self._owner = owner
        self._resources = resources
        self._stores = stores
        self._expectations = expectations
        self._recorder = recorder
        self._whole = frozenset(whole)

    async def act(self, key: Key, plan: Sequence[Action]) -> list[Outcome]:
        """Do it lane by lane; an action that fails keeps only those from being done that need it."""
        return await carry_out(plan, lambda action: self._one(key, action))

    async def _one(self, key: Key, action: Action) -> Outcome:
        try:
            resource = self.resource(action.obj)
            match action:
                case Create(seal=None):
                    done = await self._applier.apply(
                        resource, action.obj, reason=action.reason, owner=key, once=action.once
                    )
                    self._expect("created", key, resource, done.object)
                case Create():
                    done = await self._create_sealed(key, resource, action)
                case Update():
                    done = await self._applier.apply(
                        resource,
                        action.obj,
                        action.observed,
                        previous=action.previous,
                        reason=action.reason,
                        owner=key,
                    )
                    self._expect("changed", key, resource, done.object)
                case Delete():
                    if action.releases:
                        await self._take_off(key, resource, action)
                    done = await self._applier.delete(resource, action.obj, reason=action.reason, owner=key)
                    self._expect("deleted", key, resource, action.obj)
                    done = done._replace(object={})
            return Outcome(action, freeze(done.object), changed=done.action is not Done.UNCHANGED)
        except OperatorError as error:
            return Outcome(action, error=error)

    async def _take_off(self, key: Key, resource: Resource, action: Delete) -> None:
        """Take finalizers off an object that is to go; whose they were has nothing left to wait for."""
        metadata = action.obj["metadata"]
        there = list(metadata.get("finalizers") or ())
        left = [each for each in there if each not in action.releases]
        if left != there:
            body = {"metadata": {"finalizers": left, "resourceVersion": metadata["resourceVersion"]}}
            with suppress(NotFound):
                await self._client.patch(
                    resource, metadata["name"], metadata["namespace"], body, reason=action.reason, owner=key
                )

    async def _create_sealed(self, key: Key, resource: Resource, action: Create) -> Applied:
        """Make an object with a fresh secret in it. If there is one by now it stays: others may use it."""
        obj = action.seal(action.obj) if action.seal else action.obj
        try:
            made = await self._client.create(resource, obj, reason=action.reason, owner=key)
        except AlreadyExists:
            return Applied(Done.UNCHANGED, {})
        # What no plan may show, no outcome may show either.
        return Applied(Done.CREATED, {name: made[name] for name in ("apiVersion", "kind", "metadata")})

    async def make_for(self, key: Key, scope: Scope, ruling: Ruling) -> OperatorError | None:
        """Make the objects that a plugin waits for, as far as they are missing; gives what went wrong."""
        objects = ruling.verdict.objects if isinstance(ruling.verdict, Wait) else ()
        there = {identity(child) for children in scope.children.values() for child in children}
        plan = [
            Create(
                owned(obj, scope.owner, ruling.plugin, waited_for=True),
                f"plugin {ruling.plugin} waits for it",
                once=True,
            )
            for obj in objects
            if identity(obj) not in there
        ]
        for outcome in await self.act(key, plan):
            made = outcome.action.obj
            what = getattr(ruling.verdict, "called", "") or str(made["kind"])
            word = "".join(part[:1].upper() + part[1:] for part in what.split())
            place = f"{what} {scope.namespace}/{made['metadata']['name']}"
            if outcome.error is not None:
                note = f"Failed to create {place}, {outcome.error}"
                self._recorder.warning(scope.owner, f"FailedToCreate{word}", reasons.ACTION_CREATE, note)
                return OperatorError(f"plugin {ruling.plugin}: {named(made)}: {outcome.error}")
            if outcome.changed:
                note = f"Created {place}"
                self._recorder.normal(scope.owner, f"Created{word}", reasons.ACTION_CREATE, note)
        return None

    async def secret(self, key: Key, name: str) -> Mapping[str, bytes]:
        """What a Secret in the owner's namespace holds."""
        found = await self._client.get(SECRETS, name, key.namespace, owner=key)
        return {field: base64.b64decode(text) for field, text in (found.get("data") or {}).items()}

    def resource(self, obj: Manifest) -> Resource:
        """Where objects of this kind live; kinds that nobody watches are refused."""
        found = self._resources.get(kind_of(obj))
        if found is None:
            raise OperatorError(unwatched(obj))
        return found

    def refuses(self, obj: Manifest) -> str:
        """Why a plugin's object cannot be made here, "" if it can."""
        if obj.get("kind") == PODS.kind:
            return f"{named(obj)}: Pods are not made this way; let a Job make it"
        return "" if self._resources.get(kind_of(obj)) in self._stores else unwatched(obj)

    async def publish(self, key: Key, owner: Manifest, status: Object) -> bool:
        """Write the status if it says something new; times alone are not news."""
        before = owner.get("status") or {}
        apart = {"conditions", *self._whole}
        patch = merge_patch(before, {name: value for name, value in status.items() if name not in apart})
        patch = patch or {}
        copies = {name: status[name] for name in self._whole if name in status}
        patch |= exact_patch({name: before.get(name) for name in copies}, copies)
        # As a whole: a merge patch replaces lists, and one that is not said any more must go.
        conditions = status.get("conditions")
        if conditions is not None and list(conditions) != list(before.get("conditions") or ()):
            patch["conditions"] = conditions
        if not set(patch) - set(TIMES):
            return False
        try:
            written = await self._client.patch(
                self._owner,
                key.name,
                key.namespace,
                {"status": patch},
                subresource="status",
                reason="the status has changed",
                owner=key,
            )
        except NotFound:
            return False  # gone meanwhile, and with it whoever would read this
        self._expect("changed", key, self._owner, written)
        return True

    async def add_finalizers(self, key: Key, owner: Manifest, wanted: Sequence[str]) -> bool:
        """Put the finalizers on the owner that it lacks; others' stay."""
        there = list(owner["metadata"].get("finalizers") or ())
        missing = [finalizer for finalizer in wanted if finalizer not in there]
        if not missing:
            return False
        await self._set_finalizers(key, owner, [*there, *missing], f"adding {', '.join(missing)}")
        return True

    async def remove_finalizer(self, key: Key, owner: Manifest, finalizer: str, done: Finished) -> None:
        """Take one finalizer off the owner, and say why in an event."""
        there = [other for other in owner["metadata"].get("finalizers") or () if other != finalizer]
        note = f"{finalizer}: {done.reason}"
        try:
            await self._set_finalizers(key, owner, there, note)
        except NotFound:
            return
        say = self._recorder.warning if done.warning else self._recorder.normal
        say(owner, done.event or reasons.FINALIZER_RELEASED, reasons.ACTION_CLEANUP, note)

    async def _set_finalizers(self, key: Key, owner: Manifest, finalizers: list[str], reason: str) -> None:
        # With the version, so that a finalizer that somebody adds meanwhile is not lost.
        body = {
            "metadata": {"finalizers": finalizers, "resourceVersion": owner["metadata"]["resourceVersion"]}
        }
        written = await self._client.patch(
            self._owner, key.name, key.namespace, body, kind=PatchKind.MERGE, reason=reason, owner=key
        )
        self._expect("changed", key, self._owner, written)

    def _expect(self, what: str, key: Key, resource: Resource, obj: Mapping[str, Any]) -> None:
        store = self._stores.get(resource)
        if store is not None and obj.get("metadata", {}).get("uid"):
            getattr(self._expectations, what)(key, store, obj)


def kind_of(obj: Manifest) -> tuple[str, str]:
    """The apiVersion and kind of an object."""
    return str(obj.get("apiVersion")), str(obj.get("kind"))


def named(obj: Manifest) -> str:
    """An object as a sentence names it."""
    metadata = obj.get("metadata") or {}
    return f"{obj.get('kind')} {metadata.get('name') or metadata.get('generateName')}"


def unwatched(obj: Manifest) -> str:
    """What to say about a kind that no plugin has announced."""
    version, kind = kind_of(obj)
    return f"{kind} of {version} is not watched: a plugin that makes it must name it under watches"
