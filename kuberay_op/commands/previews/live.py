"""What is on a cluster, read with the caller's own rights: for ``kuberay-op plan --live``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kuberay_op import __version__
from kuberay_op.api import labels
from kuberay_op.api.predicates import on_openshift
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.rayjob import RayJob
from kuberay_op.build.auth import needs_secret, secret_name
from kuberay_op.clock import SystemClock
from kuberay_op.commands.previews.setting import Setting
from kuberay_op.controllers.plugins import Kinds, find_kinds
from kuberay_op.controllers.raycluster.reconciler import selectors
from kuberay_op.controllers.resources import RAY_CLUSTERS, RAY_CRON_JOBS, RAY_JOBS, ROUTES
from kuberay_op.errors import Misconfigured
from kuberay_op.frozen import freeze
from kuberay_op.hooks.scope import Watch
from kuberay_op.kube.client import Client
from kuberay_op.kube.discovery import Discovery
from kuberay_op.kube.errors import Forbidden, NotFound
from kuberay_op.kube.merge import exact_patch
from kuberay_op.kube.resource import JOBS, PODS, SECRETS, SERVICES, Resource

#: Seconds for each call: somebody waits for the answer.
DEADLINE: Final = 15.0

_OWNERS: Final = {each.kind: each for each in (RAY_CLUSTERS, RAY_JOBS, RAY_CRON_JOBS)}

#: What each makes, where caches do not select.
_MADE: Final[dict[str, tuple[Resource, ...]]] = {
    RAY_JOBS.kind: (RAY_CLUSTERS, JOBS, SERVICES),
    RAY_CRON_JOBS.kind: (RAY_JOBS,),
}

#: What a job looks at besides what it has made: the way to the head of its cluster.
_HEADS: Final = f"{labels.NODE_TYPE}={labels.HEAD}"


@dataclass(frozen=True, slots=True)
class Live:
    """Objects as they will be when the files are applied, each with its children as they are now."""

    owners: list[tuple[dict[str, Any], list[Mapping[str, Any]] | None]]
    missing: Mapping[tuple[str, str], Watch] = field(default_factory=dict)
    routes: bool = False


async def look(
    setting: Setting, owners: Sequence[dict[str, Any]], *, kubeconfig: str | None, context: str | None
) -> Live:
    """Read the objects and all that belongs to them. One that is not there has None for children."""
    async with await Client.connect(
        kubeconfig, context=context, user_agent=f"kuberay-op-plan/{__version__}", deadline=DEADLINE
    ) as client:
        discovery = Discovery(client, SystemClock())
        kinds = await find_kinds(setting.plugins.hooks, discovery)
        openshift = on_openshift(await discovery.groups()) and await discovery.serves(ROUTES)
        routes = openshift and not setting.config.use_ingress_on_openshift
        found = [await _one(client, setting, owner, kinds, routes=routes) for owner in owners]
        return Live(found, kinds.missing, routes)


async def everything(
    setting: Setting, namespaces: Sequence[str], *, kubeconfig: str | None, context: str | None
) -> Live:
    """Read all our objects in these namespaces (in all when none is named) and all that belongs to them."""
    owners: list[dict[str, Any]] = []
    async with await Client.connect(kubeconfig, context=context, deadline=DEADLINE) as client:
        for resource in _OWNERS.values():
            for namespace in namespaces or (None,):
                try:
                    listed = await client.list(resource, namespace)
                except NotFound:
                    continue  # its CRD is not installed
                except Forbidden as error:
                    raise Misconfigured(f"all objects must be seen to be sure: {error}") from error
                kind = {"apiVersion": resource.api_version, "kind": resource.kind}
                owners += [{**kind, **obj} for obj in listed.items]
    return await look(setting, owners, kubeconfig=kubeconfig, context=context)


async def _one(
    client: Client, setting: Setting, owner: dict[str, Any], kinds: Kinds, *, routes: bool
) -> tuple[dict[str, Any], list[Mapping[str, Any]] | None]:
    resource, metadata = _OWNERS[owner["kind"]], owner["metadata"]
    try:
        live = await client.get(resource, metadata["name"], metadata["namespace"])
    except NotFound:
        return owner, None
    except Forbidden as error:
        raise Misconfigured(f"a plan needs to read the object itself: {error}") from error
    if owner["kind"] in _MADE:
        chosen: dict[Resource, str | None] = dict.fromkeys((*_MADE[owner["kind"]], *kinds.served))
    else:
        chosen = selectors(setting.config, kinds, routes=routes)
    children: list[Mapping[str, Any]] = []
    for each, selector in chosen.items():
        children += await _owned(client, each, selector, live["metadata"])
    if owner["kind"] == RAY_JOBS.kind:
        children += await _around(client, RayJob(live), children)
    cluster = RayCluster(owner)
    if owner["kind"] == RAY_CLUSTERS.kind and needs_secret(cluster):
        children += await _named(client, SECRETS, secret_name(cluster), metadata["namespace"])
    return _applied(owner, live), children


async def _around(
    client: Client, job: RayJob, children: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The cluster that the job runs on, if it is not its own, and what leads to the head."""
    name = job.status.ray_cluster_name
    own = [obj for obj in children if obj["kind"] == RAY_CLUSTERS.kind and obj["metadata"]["name"] == name]
    others = [] if own or not name else await _named(client, RAY_CLUSTERS, name, job.namespace, whole=True)
    found: list[Mapping[str, Any]] = list(others)
    for cluster in (*own, *others):
        service = RayCluster(dict(cluster)).status.head.service_name
        if service:
            found += await _named(client, SERVICES, service, job.namespace, whole=True)
        found += await _owned(client, PODS, _HEADS, cluster["metadata"])
    return found


async def _owned(
    client: Client, resource: Resource, selector: str | None, owner: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    try:
        listed = await client.list(resource, owner["namespace"], label_selector=selector)
    except NotFound:
        return []
    except Forbidden as error:
        raise Misconfigured(f"a plan needs to see what there is: {error}") from error
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return [
        freeze({**kind, **obj})
        for obj in listed.items
        if any(each["uid"] == owner["uid"] for each in obj["metadata"].get("ownerReferences") or ())
    ]


async def _named(
    client: Client, resource: Resource, name: str, namespace: str, *, whole: bool = False
) -> list[Mapping[str, Any]]:
    """An object if it is there and may be seen: its name alone, or the ``whole`` of it."""
    try:
        found = await client.get(resource, name, namespace)
    except (NotFound, Forbidden):
        return []
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return [freeze({**kind, **(found if whole else {"metadata": {"name": name}})})]


def _applied(owner: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    """The live object with what the file says."""
    metadata = dict(live["metadata"])
    for part in ("labels", "annotations"):
        metadata[part] = {**(metadata.get(part) or {}), **(owner["metadata"].get(part) or {})}
    if exact_patch(live["spec"], owner["spec"]):
        metadata["generation"] = metadata.get("generation", 1) + 1
    said = {name: owner[name] for name in ("apiVersion", "kind", "spec")}
    return {**live, **said, "metadata": metadata}
