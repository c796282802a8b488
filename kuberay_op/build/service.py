"""Services of a RayCluster: to the head, between the hosts of a replica, and to Serve."""

from __future__ import annotations

from kuberay_op.api import annotations as notes
from kuberay_op.api import labels, names, ports, replicas
from kuberay_op.api.podtemplate import ray_container
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.view import Json
from kuberay_op.build import metadata
from kuberay_op.config import Config
from kuberay_op.errors import Invalid
from kuberay_op.frozen import thaw


def head_ports(cluster: RayCluster) -> dict[str, int]:
    """Ports of the head by name: those of its container, or the usual ones if it names none."""
    declared = ray_container(cluster.spec.head_group_spec.template).get("ports") or ()
    named = {port.get("name") or f"{port['containerPort']}-port": port["containerPort"] for port in declared}
    return {ports.METRICS: ports.DEFAULTS[ports.METRICS]} | (named or ports.DEFAULTS)


def dashboard_port(cluster: RayCluster) -> int:
    """Port of the head Service that leads to the dashboard."""
    return head_ports(cluster).get(ports.DASHBOARD, ports.DEFAULTS[ports.DASHBOARD])


def head_service(cluster: RayCluster, config: Config) -> Json:
    """The Service to the head: ours, or the user's with what Ray needs."""
    head = cluster.spec.head_group_spec
    own: Json = thaw(head.head_service)
    meta, spec = own.get("metadata") or {}, own.get("spec") or {}
    kind = spec.get("type") or head.service_type
    service: Json = {
        **own,
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            **meta,
            **metadata.child_metadata(cluster, metadata.head_service_name(cluster), {}),
            "labels": {**(meta.get("labels") or {}), **_head_labels(cluster)},
        },
        "spec": {
            **spec,
            "selector": _head_selector(cluster),
            "ports": [*(spec.get("ports") or ()), *_head_service_ports(cluster)],
        },
    }
    annotations = {**(meta.get("annotations") or {}), **cluster.spec.head_service_annotations}
    if annotations:
        service["metadata"]["annotations"] = annotations
    if kind:
        service["spec"]["type"] = kind
    ours = not head.is_set("head_service")
    if ours and kind in ("", "ClusterIP") and not config.enable_head_cluster_ip_service:
        # One Pod is behind it; its address is wanted however it feels.
        service["spec"] |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    return service


def headless_service(cluster: RayCluster) -> Json | None:
    """The Service by which the hosts of a replica find each other; None without such replicas."""
    if not any(replicas.hosts(group) > 1 for group in cluster.spec.worker_group_specs):
        return None
    own = {labels.HEADLESS_WORKER_SERVICE: cluster.name}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata.child_metadata(cluster, names.headless_service(cluster.name), own),
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {labels.CLUSTER: cluster.name, labels.NODE_TYPE: labels.WORKER},
        },
    }


def serve_service(cluster: RayCluster) -> Json | None:
    """The Service to Serve; None unless an annotation asks for it. Raises Invalid when no port serves."""
    if cluster.metadata.annotations.get(notes.ENABLE_SERVE_SERVICE) != "true":
        return None
    found = serve_ports(cluster)
    if not found:
        raise Invalid(
            f"the annotation {notes.ENABLE_SERVE_SERVICE} asks for a Service to Serve, but no port of the "
            f"head's Ray container is named {ports.SERVE!r} or begins with '{ports.SERVE}-'; name one"
        )
    own = {
        labels.ORIGINATED_FROM_NAME: cluster.name,
        labels.ORIGINATED_FROM_KIND: "RayCluster",
        labels.SERVE: names.serve_label(cluster.name),
    }
    spec: Json = {"selector": {labels.CLUSTER: cluster.name}, "ports": found}
    if cluster.spec.head_group_spec.service_type:
        spec["type"] = cluster.spec.head_group_spec.service_type
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata.child_metadata(cluster, names.serve_service(cluster.name), own),
        "spec": spec,
    }


def serve_ports(cluster: RayCluster) -> list[Json]:
    """The ports of the head that serve: ``serve`` and those that begin with ``serve-``."""
    return [
        {"name": name, "port": number}
        for name, number in sorted(head_ports(cluster).items())
        if name == ports.SERVE or name.startswith(f"{ports.SERVE}-")
    ]


def _head_service_ports(cluster: RayCluster) -> list[Json]:
    return [
        {"name": name, "port": number, "appProtocol": ports.APP_PROTOCOL}
        for name, number in sorted(head_ports(cluster).items())
    ]


def _head_labels(cluster: RayCluster) -> dict[str, str]:
    """The labels by which clients find the Service. Of them only the application's name is the user's."""
    application = metadata.template_labels(cluster.spec.head_group_spec.template).get(labels.APP_NAME)
    return {
        **metadata.common_labels(cluster),
        labels.NODE_TYPE: labels.HEAD,
        labels.IDENTIFIER: names.identifier(cluster.name, labels.HEAD),
        **({labels.APP_NAME: application} if application is not None else {}),
    }


def _head_selector(cluster: RayCluster) -> dict[str, str]:
    """The same keys with the values that the head Pod has, so that it is found whatever the user changed."""
    pod = metadata.head_pod_labels(cluster)
    return {key: pod[key] for key in _head_labels(cluster)}
