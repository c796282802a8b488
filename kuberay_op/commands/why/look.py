"""Reading with the caller's rights: what they may not see is noted, and no reason to give up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

import orjson

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.build.metadata import head_service_name
from kuberay_op.clock import SystemClock
from kuberay_op.controllers.secrets import token_of
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import Forbidden, NotFound
from kuberay_op.kube.resource import EVENTS, PODS, Object, Resource
from kuberay_op.ray.client import Connector
from kuberay_op.ray.dashboard import Dashboard
from kuberay_op.ray.limits import Gates
from kuberay_op.ray.proxied import ProxiedTransport
from kuberay_op.ray.urls import proxied_service

#: Seconds for each call: somebody waits for the answer.
DEADLINE: Final = 15.0

ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def _now() -> datetime:
    return datetime.now(UTC)


class Look:
    """One look around a namespace. ``unseen`` lists what was not allowed, in words for the caller."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        operator_namespace: str | None = None,
        *,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._client = client
        self.namespace = namespace
        self.operator_namespace = operator_namespace
        self.now = now
        self.unseen: list[str] = []

    async def get(self, resource: Resource, name: str) -> Object:
        """An object that the answer cannot do without; raises when it cannot be read."""
        return await self._client.get(resource, name, self.namespace)

    async def find(self, resource: Resource, name: str, namespace: str | None = None) -> Object | None:
        """An object if it is there; raises Forbidden, having noted it, when that cannot be seen."""
        try:
            return await self._client.get(resource, name, namespace or self.namespace)
        except NotFound:
            return None
        except Forbidden:
            self._note("get", resource, namespace or self.namespace)
            raise

    async def all(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        hint: str = "",
    ) -> list[Object] | None:
        """All objects in the namespace (``""`` for all namespaces); None, having noted it, if not allowed."""
        where = self.namespace if namespace is None else namespace
        try:
            listed = await self._client.list(
                resource, where or None, label_selector=label_selector, field_selector=field_selector
            )
        except Forbidden:
            self._note("list", resource, where, hint)
            return None
        return listed.items

    async def warnings(self) -> dict[str, tuple[str, str]]:
        """The last warning about each object of the namespace, by UID: reason and note."""
        events = await self.all(EVENTS, field_selector="type=Warning") or []
        last: dict[str, tuple[str, str]] = {}
        for event in sorted(events, key=_moment):
            uid = (event.get("regarding") or {}).get("uid")
            if uid:
                last[uid] = (str(event.get("reason") or ""), str(event.get("note") or ""))
        return last

    async def allowed(self, user: str, verb: str, resource: Resource, subresource: str = "") -> bool | None:
        """Whether somebody else may do something in the namespace; None if the caller may not ask that."""
        attributes = {
            "namespace": self.namespace,
            "verb": verb,
            "group": resource.group,
            "resource": resource.plural,
            "subresource": subresource,
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": _groups(user), "resourceAttributes": attributes},
        }
        try:
            answer = orjson.loads(await self._client.request("POST", ACCESS_REVIEWS, body=body))
        except Forbidden:
            self._say(f"the rights of {user}: you may not create subjectaccessreviews")
            return None
        return bool((answer.get("status") or {}).get("allowed"))

    async def pod_log(self, pod: str, container: str, lines: int) -> str:
        """The last lines that a container has printed; raises when they cannot be had."""
        path = PODS.path(self.namespace, pod, "log")
        params = {"tailLines": str(lines)} | ({"container": container} if container else {})
        return (await self._client.request("GET", path, params=params)).decode(errors="replace")

    async def ray_log(self, cluster: RayCluster, job_id: str) -> str:
        """What a job has printed, from Ray itself, through the API server; raises when it cannot be had."""
        clock, rng = SystemClock(), Random()  # noqa: S311 (for pauses)
        through = ProxiedTransport(self._client)
        gates = Gates(clock=clock, rng=rng)
        connector = Connector(direct=through, proxied=through, gates=gates, clock=clock)
        service = cluster.status.head.service_name or head_service_name(cluster)
        endpoint = proxied_service(self.namespace, service)
        token = token_of(self._client, cluster, clock)
        client = connector.client(f"{self.namespace}/{cluster.name}", endpoint, token=token)
        return await Dashboard(client).logs(job_id)

    def _note(self, verb: str, resource: Resource, namespace: str, hint: str = "") -> None:
        where = f"in namespace {namespace}" if namespace else "in all namespaces"
        self._say(f"{resource} {where}: you may not {verb} them{f'; {hint}' if hint else ''}")

    def _say(self, text: str) -> None:
        if text not in self.unseen:
            self.unseen.append(text)


def _groups(user: str) -> list[str]:
    """The groups that Kubernetes gives a service account; roles are often bound to those."""
    groups = ["system:authenticated"]
    if user.startswith("system:serviceaccount:"):
        groups += ["system:serviceaccounts", f"system:serviceaccounts:{user.split(':')[2]}"]
    return groups


def _moment(event: Any) -> str:
    """When an event was last seen, whichever of the three ways of saying that it uses."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("deprecatedLastTimestamp"), event.get("eventTime"))
    return max((str(time) for time in times if time), default="")
