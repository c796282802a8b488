"""NetworkPolicies of a RayCluster: one for the head and one for each worker group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from kuberay_op.api import labels
from kuberay_op.api.raycluster import NetworkPolicyRules, RayCluster
from kuberay_op.api.view import Json
from kuberay_op.build import metadata
from kuberay_op.build.probes import dashboard_port
from kuberay_op.frozen import thaw

Direction = Literal["Ingress", "Egress"]

#: The directions that a mode closes.
_CLOSED: Final[dict[str, tuple[Direction, ...]]] = {
    "DenyAll": ("Ingress", "Egress"),
    "DenyAllIngress": ("Ingress",),
    "DenyAllEgress": ("Egress",),
}
#: How each direction names the other side.
_OTHER_SIDE: Final[dict[Direction, str]] = {"Ingress": "from", "Egress": "to"}


def network_policies(cluster: RayCluster) -> list[Json]:
    """The policies that the spec asks for; none when it asks for none. DNS is for the user to allow."""
    config = cluster.spec.network_policy
    if not config:
        return []
    special = {entry.group_name: entry for entry in config.worker_groups}
    made = [_policy(cluster, f"{cluster.name}-head", labels.HEAD, labels.HEAD_GROUP, config.head)]
    for group in cluster.spec.worker_group_specs:
        name = f"{cluster.name}-workers-{group.group_name}"
        rules = special.get(group.group_name, config.worker)
        made.append(_policy(cluster, name, labels.WORKER, group.group_name, rules))
    return made


def _policy(cluster: RayCluster, name: str, node_type: str, group: str, rules: NetworkPolicyRules) -> Json:
    selector = {labels.CLUSTER: cluster.name, labels.NODE_TYPE: node_type}
    if node_type == labels.WORKER:
        selector[labels.GROUP] = group
    closed = _CLOSED[cluster.spec.network_policy.mode or "DenyAll"]
    spec: Json = {"podSelector": {"matchLabels": selector}, "policyTypes": list(closed)}
    if "Ingress" in closed:
        submitter = _submitter_rules(cluster) if node_type == labels.HEAD else []
        spec["ingress"] = [_within(cluster, "Ingress"), *submitter, *_explicit(rules.ingress_rules)]
    if "Egress" in closed:
        spec["egress"] = [_within(cluster, "Egress"), *_explicit(rules.egress_rules)]
    own = {**metadata.common_labels(cluster), labels.GROUP: group}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata.child_metadata(cluster, name, own),
        "spec": spec,
    }


def _within(cluster: RayCluster, direction: Direction) -> Json:
    """Traffic between the Pods of the cluster."""
    return {_OTHER_SIDE[direction]: [{"podSelector": {"matchLabels": {labels.CLUSTER: cluster.name}}}]}


def _submitter_rules(cluster: RayCluster) -> list[Json]:
    """Traffic from the Pod that submits the RayJob this cluster was made for."""
    if cluster.metadata.labels.get(labels.JOB_SUBMISSION_MODE) != "K8sJobMode":
        return []
    jobs = (
        owner.name
        for owner in cluster.metadata.owner_references
        if owner.controller and owner.kind == "RayJob" and owner.api_version.startswith("ray.io/")
    )
    port = dashboard_port(dict(cluster.spec.head_group_spec.ray_start_params))
    return [
        {
            "from": [
                {
                    "podSelector": {
                        "matchLabels": {
                            labels.ORIGINATED_FROM_NAME: job,
                            labels.ORIGINATED_FROM_KIND: "RayJob",
                        }
                    }
                }
            ],
            "ports": [{"protocol": "TCP", "port": port}],
        }
        for job in jobs
    ]


def _explicit(rules: Iterable[Json]) -> list[Any]:
    """The user's rules, with the protocol that the server would fill in."""
    found: list[Any] = thaw(list(rules))
    for rule in found:
        for port in rule.get("ports") or ():
            port.setdefault("protocol", "TCP")
    return found
