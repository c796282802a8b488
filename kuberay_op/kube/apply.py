"""Making an object be what we want, with as few writes as that takes.

What to write is decided by :func:`kuberay_op.kube.merge.merge_patch`, which knows no server. The
:class:`Applier` carries it out: it creates what is missing, patches what differs, reads again and retries
when somebody else was faster, and never takes over an object that belongs to another owner.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping
from typing import Any, Final, NamedTuple

from kuberay_op.errors import Retry
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import AlreadyExists, Conflict, NotFound
from kuberay_op.kube.merge import merge_patch
from kuberay_op.kube.resource import Key, Object, Resource

__all__ = ["Action", "Applied", "Applier", "NotOurs", "controller_uid", "merge_patch"]

#: How often an object may change under our hands before the pass is given up.
ATTEMPTS: Final = 5


class Action(enum.Enum):
    """What was done to an object."""

    CREATED = "created"
    PATCHED = "patched"
    DELETED = "deleted"
    UNCHANGED = "unchanged"


class Applied(NamedTuple):
    """What was done, and the object as the server has it now (for a deletion: what it answered)."""

    action: Action
    object: Mapping[str, Any]


class NotOurs(Conflict):
    """The name is taken by an object that somebody else owns; it is left alone."""


def controller_uid(obj: Mapping[str, Any]) -> str | None:
    """The UID of the owner that controls an object, if one does."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            uid: str = owner["uid"]
            return uid
    return None


def owner_uids(obj: Mapping[str, Any]) -> set[str]:
    """The UIDs of all owners of an object, whether they control it or not."""
    return {owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ()}


class Applier:
    """Writes objects through a client. Every method takes the ``reason`` of the write."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def apply(
        self,
        resource: Resource,
        desired: Mapping[str, Any],
        observed: Mapping[str, Any] | None = None,
        *,
        reason: str,
        previous: Mapping[str, Any] | None = None,
        subresource: str | None = None,
        once: bool = False,
        owner: Hashable | None = None,
        deadline: float | None = None,
    ) -> Applied:
        """Create the object, or give the observed one the desired fields.

        With ``once`` an object that was thought to be missing and is there, and ours, stays as it is.
        ``observed`` is usually the cached object; the cache must keep every field that is desired. Raises
        :class:`NotOurs` when the name is taken by an object of another controller, and
        :class:`~kuberay_op.errors.Retry` when an object of that name is still being deleted.
        """
        metadata = desired["metadata"]
        calls: dict[str, Any] = {"owner": owner, "deadline": deadline}
        if not metadata.get("name"):  # generateName: nothing of that name can exist
            return Applied(
                Action.CREATED, await self._client.create(resource, desired, reason=reason, **calls)
            )
        key = Key(metadata.get("namespace") or "", metadata["name"])
        current = observed
        for _ in range(ATTEMPTS):
            try:
                if current is None:
                    if subresource:
                        raise NotFound(f"{resource} {key} has no {subresource} to patch: it does not exist")
                    created = await self._client.create(resource, desired, reason=reason, **calls)
                    return Applied(Action.CREATED, created)
                patch = _locked(merge_patch(current, desired, previous), current)
                if patch is None:
                    return Applied(Action.UNCHANGED, current)
                patched = await self._client.patch(
                    resource, key.name, key.namespace, patch, subresource=subresource, reason=reason, **calls
                )
                return Applied(Action.PATCHED, patched)
            except (AlreadyExists, Conflict):
                current = await self._reread(resource, key, desired, current, calls)
                if once and observed is None and current is not None:
                    return Applied(Action.UNCHANGED, current)
            except NotFound:
                if current is None or subresource:
                    raise  # the namespace or the resource is missing, or there is nothing to patch
                current = None
        raise Conflict(f"{resource} {key} changed {ATTEMPTS} times while we tried to write it: {reason}")

    async def delete(
        self,
        resource: Resource,
        observed: Mapping[str, Any],
        *,
        reason: str,
        propagation: str | None = None,
        grace: int | None = None,
        owner: Hashable | None = None,
        deadline: float | None = None,
    ) -> Applied:
        """Delete this very object; if it is gone, or another has its name by now, there is nothing to do."""
        metadata = observed["metadata"]
        try:
            answer = await self._client.delete(
                resource,
                metadata["name"],
                metadata.get("namespace"),
                uid=metadata["uid"],
                propagation=propagation,
                grace=grace,
                reason=reason,
                owner=owner,
                deadline=deadline,
            )
        except (NotFound, Conflict):
            return Applied(Action.UNCHANGED, observed)
        return Applied(Action.DELETED, answer)

    async def _reread(
        self,
        resource: Resource,
        key: Key,
        desired: Mapping[str, Any],
        current: Mapping[str, Any] | None,
        calls: Mapping[str, Any],
    ) -> Object | None:
        """The object as it is now; None if it is gone. Refuses one that is another's or on its way out."""
        try:
            live = await self._client.get(resource, key.name, key.namespace, **calls)
        except NotFound:
            return None
        if current is not None and live["metadata"]["uid"] == current["metadata"].get("uid"):
            return live
        ours, theirs = controller_uid(desired), controller_uid(live)
        # One that nobody controls and that names our owner was made for it by another program.
        if ours != theirs and (theirs or ours not in owner_uids(live)):
            raise NotOurs(
                f"{resource} {key} exists and is not ours: its controller is {theirs or 'nobody'}; "
                "delete it or choose another name"
            )
        if live["metadata"].get("deletionTimestamp"):
            raise Retry(f"{resource} {key} is still being deleted", after=1.0)
        return live


def _locked(patch: Object | None, current: Mapping[str, Any]) -> Object | None:
    """The patch, valid only for the version it was made from."""
    version = current["metadata"].get("resourceVersion")
    if patch is None or not version:
        return patch
    return {**patch, "metadata": {**(patch.get("metadata") or {}), "resourceVersion": version}}
