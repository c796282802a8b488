"""The Ingress to the dashboard."""

from __future__ import annotations

from typing import Final

from kuberay_op.api import labels, names
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.view import Json
from kuberay_op.build import metadata
from kuberay_op.build.service import dashboard_port
from kuberay_op.frozen import thaw

#: On a RayCluster: the class of its Ingress.
CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"

#: Whole manifests that kubectl keeps; of no use on another object.
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def head_ingress(cluster: RayCluster) -> Json:
    """The Ingress to the dashboard. Annotations of the RayCluster are passed on, for ingress controllers."""
    options = cluster.spec.head_group_spec.ingress_options
    service = {"name": metadata.head_service_name(cluster), "port": {"number": dashboard_port(cluster)}}
    rule: Json = {
        "http": {
            "paths": [
                {
                    "path": options.path or "/",
                    "pathType": options.path_type or "Prefix",
                    "backend": {"service": service},
                }
            ]
        }
    }
    if options.host:
        rule["host"] = options.host
    spec: Json = {"rules": [rule]}
    if options.tls:
        spec["tls"] = thaw(list(options.tls))
    if CLASS_ANNOTATION in cluster.metadata.annotations:
        spec["ingressClassName"] = cluster.metadata.annotations[CLASS_ANNOTATION]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {
            **metadata.child_metadata(cluster, names.ingress(cluster.name), dashboard_labels(cluster)),
            "annotations": passed_on(cluster, CLASS_ANNOTATION),
        },
        "spec": spec,
    }


def dashboard_labels(cluster: RayCluster) -> dict[str, str]:
    """Labels of what leads to the dashboard from outside."""
    return {
        **metadata.common_labels(cluster),
        labels.IDENTIFIER: names.identifier(cluster.name, labels.HEAD),
    }


def passed_on(cluster: RayCluster, *without: str) -> dict[str, str]:
    """Annotations of the RayCluster that its Ingress or Route gets too."""
    left_out = {_LAST_APPLIED, *without}
    return {key: value for key, value in cluster.metadata.annotations.items() if key not in left_out}
