"""What the cluster serves: is this resource there, which resource has that kind, how old is the server.

Only the group and version in question are asked for, so that an aggregated API that is down elsewhere does
not matter.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from kuberay_op.clock import Clock
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import ApiError, NotFound, Unreachable
from kuberay_op.kube.resource import Object, Resource

#: Seconds after which an answer is asked for again. CRDs come and go, though not often.
FRESH: Final = 300.0


class Discovery:
    """Answers from a cache; ``refresh=True`` asks the server."""

    def __init__(self, client: Client, clock: Clock, *, fresh: float = FRESH) -> None:
        self._client = client
        self._clock = clock
        self._fresh = fresh
        self._known: dict[str, tuple[float, tuple[Resource, ...]]] = {}

    async def serves(self, resource: Resource, *, refresh: bool = False) -> bool:
        """Whether the cluster has this group, version and resource."""
        return any(
            found.plural == resource.plural
            for found in await self.resources(resource.api_version, refresh=refresh)
        )

    async def find(self, api_version: str, kind: str, *, refresh: bool = False) -> Resource | None:
        """The resource of objects with this ``apiVersion`` and ``kind``, if the cluster has it."""
        found = await self.resources(api_version, refresh=refresh)
        return next((resource for resource in found if resource.kind == kind), None)

    async def resources(self, api_version: str, *, refresh: bool = False) -> tuple[Resource, ...]:
        """All resources of ``group/version`` (or ``v1``); none if the cluster does not have it.

        An aggregated API that is down keeps its last answer; if there is none, its error is raised.
        """
        now = self._clock.monotonic()
        asked, known = self._known.get(api_version, (0.0, None))
        if known is not None and not refresh and now - asked < self._fresh:
            return known
        group, _, version = api_version.rpartition("/")
        try:
            answer = await self._read(Resource(group, version, "", "").root)
            known = tuple(_resources(group, version, answer))
        except NotFound:
            known = ()
        except ApiError:
            if known is None:
                raise
        self._known[api_version] = now, known
        return known

    async def groups(self) -> dict[str, list[str]]:
        """All groups with their versions, the preferred one first. The core group is not among them."""
        answer = await self._read("/apis")
        found: dict[str, list[str]] = {}
        for group in answer.get("groups") or ():
            preferred = (group.get("preferredVersion") or {}).get("version")
            versions = [each["version"] for each in group.get("versions") or ()]
            found[group["name"]] = sorted(versions, key=lambda version: version != preferred)
        return found

    async def server_version(self) -> tuple[int, int]:
        """The server's version as (major, minor). Providers write things like ``35+``."""
        answer = await self._read("/version")
        try:
            major, minor = (int(str(answer[name]).rstrip("+")) for name in ("major", "minor"))
        except (KeyError, ValueError) as error:
            raise Unreachable("the API server's /version names no version") from error
        return major, minor

    async def _read(self, path: str) -> Object:
        answer: Any = orjson.loads(await self._client.request("GET", path))
        return answer if isinstance(answer, dict) else {}


def _resources(group: str, version: str, answer: Object) -> list[Resource]:
    return [
        Resource(group, version, each["name"], each["kind"], namespaced=bool(each.get("namespaced")))
        for each in answer.get("resources") or ()
        if "/" not in each["name"]  # those are subresources
    ]
