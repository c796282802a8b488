"""Names, labels and owner references of the objects of a RayCluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kuberay_op import __version__
from kuberay_op.api import labels, names
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.view import Json
from kuberay_op.config import Config

#: Who made a Pod, in annotations and in Ray's statistics. Like no release of KubeRay: hashes of specs are
#: only comparable between Pods of the same maker.
OPERATOR_VERSION: Final = f"kuberay-op-{__version__}"

#: Labels that a template cannot change: Pods are found by them.
_FIXED: Final = (labels.CLUSTER, labels.NODE_TYPE, labels.GROUP)


def owner_reference(owner: Mapping[str, Any]) -> Json:
    """The reference by which a child is the owner's, and goes with it."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"].get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def child_metadata(cluster: RayCluster, name: str, labels_: Mapping[str, str]) -> Json:
    """Metadata of an object that belongs to the cluster."""
    return {
        "name": name,
        "namespace": cluster.namespace,
        "labels": dict(labels_),
        "ownerReferences": [owner_reference(cluster.raw)],
    }


def common_labels(cluster: RayCluster) -> dict[str, str]:
    """Labels of most objects of a cluster: whose they are and who made them."""
    return {
        labels.CLUSTER: cluster.name,
        labels.APP_NAME: labels.APPLICATION,
        labels.CREATED_BY: labels.COMPONENT,
    }


def pod_labels(
    cluster: RayCluster, node_type: str, group: str, own: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Labels of a Ray Pod. ``own`` are those of the user; they win except over the ones we find Pods by."""
    ours = {
        **common_labels(cluster),
        labels.IS_RAY_NODE: labels.YES,
        labels.NODE_TYPE: node_type,
        labels.GROUP: group,
        labels.IDENTIFIER: names.identifier(cluster.name, node_type),
    }
    return {**ours, **(own or {}), **{key: ours[key] for key in _FIXED}}


def head_pod_labels(cluster: RayCluster) -> dict[str, str]:
    """Labels of the head Pod, as far as the RayCluster decides them."""
    head = cluster.spec.head_group_spec
    own = {**template_labels(head.template), **head.labels}
    return pod_labels(cluster, labels.HEAD, labels.HEAD_GROUP, own)


def template_labels(template: Json) -> dict[str, str]:
    """Labels in a Pod template."""
    return dict((template.get("metadata") or {}).get("labels") or {})


def made_for(cluster: RayCluster) -> names.OriginKind:
    """The kind of object the cluster was made for; RayCluster when a user made it."""
    return names.origin_kind(cluster.metadata.labels.get(labels.ORIGINATED_FROM_KIND))


def head_service_name(cluster: RayCluster) -> str:
    """Name of the head Service: the user's, or ours."""
    own = (cluster.spec.head_group_spec.head_service.get("metadata") or {}).get("name")
    return str(own) if own else names.head_service(cluster.name)


def head_host(cluster: RayCluster, config: Config) -> str:
    """Full DNS name of the head Service."""
    return names.fqdn(head_service_name(cluster), cluster.namespace, config.cluster_domain)
