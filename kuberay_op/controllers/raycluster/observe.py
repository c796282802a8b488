"""What there is: a RayCluster and the head Pods it owns. Reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kuberay_op.api import labels
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.kube.cache import OWNER, Store
from kuberay_op.kube.client import Client
from kuberay_op.kube.resource import PODS, Key
from kuberay_op.runtime.expectations import View


@dataclass(frozen=True, slots=True)
class Observed:
    """A RayCluster as it is now."""

    cluster: RayCluster
    heads: Sequence[Mapping[str, Any]]


async def observe(key: Key, client: Client, clusters: Store, pods: Store, view: View) -> Observed | None:
    """The cluster and its head Pods: from the caches, or from the server if the caches are overdue."""
    obj = clusters.get(key)
    if obj is None:
        return None
    uid = obj["metadata"]["uid"]
    found: Sequence[Mapping[str, Any]] = pods.by_index(OWNER, uid)
    if view is View.OVERDUE:
        selector = f"{labels.CLUSTER}={key.name}"
        listed = await client.list(PODS, key.namespace, label_selector=selector, owner=key)
        found = [pod for pod in listed.items if _owned_by(pod, uid)]
    heads = [pod for pod in found if pod["metadata"].get("labels", {}).get(labels.NODE_TYPE) == labels.HEAD]
    return Observed(RayCluster(obj), [pod for pod in heads if "deletionTimestamp" not in pod["metadata"]])


def _owned_by(pod: Mapping[str, Any], uid: str) -> bool:
    return any(owner["uid"] == uid for owner in pod["metadata"].get("ownerReferences") or ())
