"""What there should be: the head Pod. Pure."""

from __future__ import annotations

from typing import Any

from kuberay_op.api import labels, replicas
from kuberay_op.api.names import check_label, pod_name
from kuberay_op.api.predicates import autoscaling_enabled, externally_managed
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.resources import pod_resources
from kuberay_op.build.metadata import owner_reference
from kuberay_op.controllers.pipeline import causes_of
from kuberay_op.controllers.raycluster.status import live_heads, status_of
from kuberay_op.frozen import thaw
from kuberay_op.hooks.scope import Gang, GangMember, Group, Scope
from kuberay_op.hooks.typed import Hooks
from kuberay_op.plan.actions import Desired, Manifest


class RayClusterKind:
    """The RayCluster's part in the pipeline."""

    def skips(self, owner: Manifest) -> bool:
        """Somebody else manages it."""
        return externally_managed(RayCluster(dict(owner)).spec)

    def gang(self, owner: Manifest) -> Gang:
        """The head and the workers that must start with it: the minimum when groups scale by themselves."""
        spec = RayCluster(dict(owner)).spec
        autoscaling = autoscaling_enabled(spec)
        members = [
            GangMember(head_group(spec.head_group_spec.raw), 1, _requests(spec.head_group_spec.template))
        ]
        for group in spec.worker_group_specs:
            count = replicas.group_desired_pods(group)
            if autoscaling and count:
                count = replicas.min_replicas(group) * replicas.hosts(group)
            if count:
                members.append(
                    GangMember(Group(group.group_name, "worker", group.raw), count, _requests(group.template))
                )
        return Gang(str(owner["metadata"]["name"]), tuple(members))

    def desired(self, scope: Scope, hooks: Hooks) -> list[Desired]:
        """A head Pod, if there is none."""
        if live_heads(scope.children.get("Pod", ())):
            return []
        cluster = RayCluster(dict(scope.owner))
        built = hooks.patch_pod(scope, head_group(cluster.spec.head_group_spec.raw), head_pod(cluster))
        return [Desired(built.obj, "the cluster has no head", causes_of(built.changes), once=True)]

    def status(self, scope: Scope, standing: Any) -> dict[str, Any]:
        """The head and the state."""
        pods = [child for child in standing if child.get("kind") == "Pod"]
        return status_of(RayCluster(dict(scope.owner)), live_heads(pods), scope.now)


def head_group(spec: Manifest) -> Group:
    """The group that plugins see for the head."""
    return Group(labels.HEAD_GROUP, "head", spec)


def head_pod(cluster: RayCluster) -> Manifest:
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
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata
        | {
            "generateName": pod_name(name, labels.HEAD, generate=True),
            "namespace": namespace,
            "labels": (metadata.get("labels") or {}) | ours,
            "ownerReferences": [owner_reference(cluster.raw)],
        },
        "spec": template.get("spec") or {},
    }


def _requests(template: Manifest) -> dict[str, str]:
    return {name: str(amount) for name, amount in pod_resources(dict(template)).items()}
