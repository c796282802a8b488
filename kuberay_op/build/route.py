"""The OpenShift Route to the dashboard."""

from __future__ import annotations

from kuberay_op.api import names
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.view import Json
from kuberay_op.build import metadata
from kuberay_op.build.ingress import dashboard_labels, passed_on
from kuberay_op.build.service import dashboard_port


def head_route(cluster: RayCluster) -> Json:
    """The Route to the dashboard. Annotations of the RayCluster are passed on."""
    name = names.route_name(cluster.name, cluster.namespace)
    return {
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {
            **metadata.child_metadata(cluster, name, dashboard_labels(cluster)),
            "annotations": passed_on(cluster),
        },
        "spec": {
            "to": {"kind": "Service", "name": metadata.head_service_name(cluster), "weight": 100},
            "port": {"targetPort": dashboard_port(cluster)},
            "wildcardPolicy": "None",
        },
    }
