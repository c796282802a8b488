"""What there should be: the head Pod. Pure."""

from __future__ import annotations

from kuberay_op.api import labels
from kuberay_op.api.names import check_label, pod_name
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.frozen import thaw
from kuberay_op.kube.resource import PODS, Object


def head_pod(cluster: RayCluster) -> Object:
    """The head Pod of a cluster, from its template."""
    name, namespace = cluster.metadata.name, cluster.metadata.namespace
    template = thaw(cluster.spec.head_group_spec.template)
    metadata = template.get("metadata") or {}
    ours = {
        labels.IS_RAY_NODE: "yes",
        labels.CLUSTER: name,
        labels.NODE_TYPE: labels.HEAD,
        labels.GROUP: labels.HEAD_GROUP,
        labels.IDENTIFIER: check_label(f"{name}-{labels.HEAD}"),
        labels.APP_NAME: labels.APPLICATION,
        labels.CREATED_BY: labels.COMPONENT,
    }
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": metadata
        | {
            "generateName": pod_name(name, labels.HEAD, generate=True),
            "namespace": namespace,
            "labels": (metadata.get("labels") or {}) | ours,
            "ownerReferences": [
                {
                    "apiVersion": "ray.io/v1",
                    "kind": "RayCluster",
                    "name": name,
                    "uid": cluster.metadata.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": template.get("spec") or {},
    }
