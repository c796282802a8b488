"""An API server in memory, as far as passes need one: objects, versions, owners, finalizers, merge patches.

Takes the place of the client, so that whole passes can be made thousands of times. What a real server makes
of what we write is tested elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kuberay_op.frozen import thaw
from kuberay_op.hooks.patches import merge
from kuberay_op.kube.apply import controller_uid
from kuberay_op.kube.client import PatchKind
from kuberay_op.kube.errors import AlreadyExists, Conflict, NotFound
from kuberay_op.kube.resource import Object, Resource

Place = tuple[str, str, str]


class MemoryServer:
    """All objects, and every write that anybody made through it."""

    def __init__(self) -> None:
        self.objects: dict[Place, Object] = {}
        self.writes: list[str] = []
        #: UIDs of owners that are not here.
        self.elsewhere: set[str] = set()
        self._version = 0
        self._names = 0

    # --- what the client offers

    async def get(self, resource: Resource, name: str, namespace: str | None = None, **_: Any) -> Object:
        """Read one object."""
        return _copy(self._found(resource, namespace, name))

    async def create(self, resource: Resource, obj: Mapping[str, Any], *, reason: str, **_: Any) -> Object:
        """Make an object."""
        made = self._complete(resource, thaw(obj))
        place = resource.kind, made["metadata"]["namespace"], made["metadata"]["name"]
        if place in self.objects:
            raise AlreadyExists(f"{place} exists")
        self.objects[place] = made
        self._wrote("create", place, reason)
        return _copy(made)

    async def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str | None,
        body: Mapping[str, Any],
        *,
        kind: PatchKind = PatchKind.MERGE,
        subresource: str | None = None,
        reason: str,
        **_: Any,
    ) -> Object:
        """Merge a patch into an object; the status only when it is named."""
        assert kind is PatchKind.MERGE
        before = self._found(resource, namespace, name)
        patch = thaw(body)
        wanted = patch.get("metadata", {}).pop("resourceVersion", None)
        if wanted not in (None, before["metadata"]["resourceVersion"]):
            raise Conflict(f"{name} has changed")
        assert ("status" in patch) == (subresource == "status"), "a status goes to its own place"
        after = merge(before, patch)
        place = resource.kind, namespace or "", name
        self._put(place, after, generation=after.get("spec") != before.get("spec"))
        self._wrote("patch", place, reason)
        return _copy(self.objects.get(place, after))

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None,
        *,
        uid: str | None = None,
        reason: str,
        **_: Any,
    ) -> Object:
        """Begin the deletion of an object; Pods go when their kubelet says so, others at once."""
        found = self._found(resource, namespace, name)
        if uid not in (None, found["metadata"]["uid"]):
            raise Conflict(f"{name} is another one")
        place = resource.kind, namespace or "", name
        self._wrote("delete", place, reason)
        self.remove(place, graceful=resource.kind == "Pod")
        return {}

    # --- what else happens

    def remove(self, place: Place, *, graceful: bool = False) -> None:
        """Delete an object, or begin to: when something holds it, it stays for now."""
        metadata = self.objects[place]["metadata"]
        if graceful or metadata.get("finalizers"):
            metadata.setdefault("deletionTimestamp", "2026-01-01T00:00:00Z")
            self._touch(place)
        else:
            del self.objects[place]

    def put(self, place: Place, **fields: Any) -> None:
        """Somebody else changes an object: fields are merged into it."""
        before = self.objects[place]
        after = merge(before, fields)
        self._put(place, after, generation=after.get("spec") != before.get("spec"))

    def kubelets(self) -> None:
        """Let kubelets and the garbage collector catch up."""
        owners = {*self.elsewhere, *(obj["metadata"]["uid"] for obj in self.objects.values())}
        for place, obj in list(self.objects.items()):
            owner = controller_uid(obj)
            if "deletionTimestamp" in obj["metadata"] and place[0] == "Pod":
                del self.objects[place]
            elif owner and owner not in owners:
                self.remove(place)
            elif place[0] == "Pod" and obj["status"]["phase"] == "Pending":
                ready = {"type": "Ready", "status": "True"}
                self.put(place, status={"phase": "Running", "podIP": "10.0.0.1", "conditions": [ready]})

    def of(self, uid: str) -> list[Object]:
        """The objects that an owner controls."""
        return [thaw(obj) for obj in self.objects.values() if controller_uid(obj) == uid]

    # --- inside

    def _found(self, resource: Resource, namespace: str | None, name: str) -> Object:
        place = resource.kind, namespace or "", name
        if place not in self.objects:
            raise NotFound(f"there is no {place}")
        return self.objects[place]

    def _complete(self, resource: Resource, obj: Object) -> Object:
        metadata = obj["metadata"]
        self._names += 1
        if "name" not in metadata:
            metadata["name"] = f"{metadata['generateName']}{self._names}"
        metadata["uid"] = f"uid-{self._names}"
        metadata["creationTimestamp"] = f"2026-01-01T00:{self._names // 60 % 60:02}:{self._names % 60:02}Z"
        self._version += 1
        metadata |= {"resourceVersion": str(self._version), "generation": 1}
        if resource.kind == "Pod":
            obj["status"] = {"phase": "Pending"}
        elif resource.kind == "Service":
            obj["spec"].setdefault("clusterIP", "10.1.0.1")
        return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}

    def _put(self, place: Place, obj: Object, *, generation: bool) -> None:
        metadata = obj["metadata"]
        if "deletionTimestamp" in metadata and not metadata.get("finalizers") and place[0] != "Pod":
            del self.objects[place]
            return
        self.objects[place] = obj
        if generation:
            metadata["generation"] += 1
        self._touch(place)

    def _touch(self, place: Place) -> None:
        self._version += 1
        self.objects[place]["metadata"]["resourceVersion"] = str(self._version)

    def _wrote(self, verb: str, place: Place, reason: str) -> None:
        self.writes.append(f"{verb} {'/'.join(place)}: {reason}")


def _copy(obj: Object) -> Object:
    made: Object = thaw(obj)
    return made
