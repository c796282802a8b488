"""The Pods that a batch scheduler should start together, counted from the spec of their owner. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kuberay_op.api import conditions, labels, replicas
from kuberay_op.api.predicates import autoscaling_enabled
from kuberay_op.api.raycluster import RayCluster, RayClusterSpec
from kuberay_op.api.rayjob import RayJob
from kuberay_op.api.resources import pod_resources
from kuberay_op.api.validation.rayjob import K8S_JOB_MODE, SIDECAR_MODE
from kuberay_op.hooks.scope import Gang, GangMember, Group

Json = Mapping[str, Any]

#: What a submitter asks for when the user brings no template.
DEFAULT_SUBMITTER: Final[Json] = {
    "spec": {"containers": [{"resources": {"requests": {"cpu": "500m", "memory": "200Mi"}}}]}
}

#: States of a job whose Pods are going or gone for good, or until somebody resumes it.
_OVER: Final = frozenset(
    {
        conditions.DEPLOYMENT_COMPLETE,
        conditions.DEPLOYMENT_FAILED,
        conditions.DEPLOYMENT_SUSPENDING,
        conditions.DEPLOYMENT_SUSPENDED,
        conditions.DEPLOYMENT_RETRYING,
    }
)


def cluster_gang(cluster: RayCluster) -> Gang:
    """The head and its workers; nobody while the cluster is suspended."""
    members = () if cluster.spec.suspend else tuple(spec_members(cluster.spec))
    return Gang(cluster.name, members)


def job_gang(job: RayJob, cluster: RayCluster | None) -> Gang:
    """The Pods of a job: those of its cluster, as it is now or as it is about to be made, and the submitter.

    A job that runs on somebody else's cluster has no gang. After the end there is nobody left but what its
    cluster, if it was not deleted, still has.
    """
    if job.spec.cluster_selector:
        return Gang(job.name, ())
    over = job.status.job_deployment_status in _OVER
    if cluster is not None and "deletionTimestamp" not in cluster.raw["metadata"]:
        members = [] if cluster.spec.suspend else list(spec_members(cluster.spec))
    elif over or job.spec.suspend or cluster is not None:
        return Gang(job.name, ())
    else:
        members = list(spec_members(job.spec.ray_cluster_spec, with_sidecar=_sidecar(job)))
    if not over and members and (job.spec.submission_mode or K8S_JOB_MODE) == K8S_JOB_MODE:
        template = job.spec.submitter_pod_template or DEFAULT_SUBMITTER
        spec = {"template": template}
        group = Group(labels.SUBMITTER_GROUP, "submitter", spec)
        members.append(GangMember(group, 1, requests(template)))
    return Gang(job.name, tuple(members))


def spec_members(spec: RayClusterSpec, *, with_sidecar: Json | None = None) -> Iterator[GangMember]:
    """The head and the workers that must start with it: the minimum when groups scale by themselves.

    Groups without a Pod are listed with none, but for suspended ones: a scheduler may reserve nothing for
    them, and still hear which resources they know.
    """
    head = spec.head_group_spec
    template = head.template if with_sidecar is None else _and(head.template, with_sidecar)
    yield GangMember(Group(labels.HEAD_GROUP, "head", head.raw), 1, requests(template))
    scales = autoscaling_enabled(spec)
    for group in spec.worker_group_specs:
        if not group.suspend:
            count = replicas.group_desired_pods(group)
            if scales:
                count = replicas.group_min_pods(group)
            yield GangMember(Group(group.group_name, "worker", group.raw), count, requests(group.template))


def requests(template: Json) -> dict[str, str]:
    """What one Pod of a template asks for."""
    return {name: str(amount) for name, amount in pod_resources(dict(template)).items()}


def _sidecar(job: RayJob) -> Json | None:
    """The container that submits beside the head, before the cluster with it is made."""
    return DEFAULT_SUBMITTER if job.spec.submission_mode == SIDECAR_MODE else None


def _and(template: Json, more: Json) -> Json:
    spec = template.get("spec") or {}
    containers = [*(spec.get("containers") or ()), *more["spec"]["containers"]]
    return {**template, "spec": {**spec, "containers": containers}}
