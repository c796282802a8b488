"""Head and worker Pods of a RayCluster: the steps of their assembly, in order.

The order shows on the wire: it decides which of two variables of one name counts and where containers
stand. Each step is in the module of its subject.
"""

from __future__ import annotations

from typing import Final

from kuberay_op.api import annotations as notes
from kuberay_op.api import labels, names, ports, replicas
from kuberay_op.api.hashes import raycluster_spec_hash
from kuberay_op.api.raycluster import RayCluster, WorkerGroupSpec
from kuberay_op.api.view import Json
from kuberay_op.build import env, metadata, ray_start
from kuberay_op.build.auth import add_auth
from kuberay_op.build.autoscaler import add_autoscaler, set_restart_policy
from kuberay_op.build.collector import add_collector, add_event_export
from kuberay_op.build.draft import Draft, Step, entries, items, named
from kuberay_op.build.gcs_ft import add_fault_tolerance
from kuberay_op.build.init_container import add_wait_for_gcs
from kuberay_op.build.probes import add_probes
from kuberay_op.build.tls import add_tls
from kuberay_op.build.volumes import add_logs, add_shared_memory
from kuberay_op.config import Config
from kuberay_op.frozen import thaw


def head_pod(cluster: RayCluster, config: Config) -> Json:
    """The head Pod. It carries the hash of the spec, for the upgrade strategy Recreate."""
    pod = plain_head_pod(cluster, config)
    pod["metadata"]["annotations"] |= {
        notes.RECREATE_HASH: raycluster_spec_hash(cluster.spec.raw),
        notes.KUBERAY_VERSION: metadata.OPERATOR_VERSION,
    }
    return pod


def plain_head_pod(cluster: RayCluster, config: Config) -> Json:
    """The head Pod as the spec alone gives it; also what the Redis clean-up is made from."""
    draft = Draft.of(cluster, cluster.spec.head_group_spec, config)
    for step in _HEAD:
        step(draft)
    return draft.pod


def worker_pod(
    cluster: RayCluster,
    group: WorkerGroupSpec,
    config: Config,
    *,
    replica_index: int = 0,
    replica_name: str = "",
    host_index: int = 0,
) -> Json:
    """A worker Pod of a group.

    The index and the name of its replica, and its index in it, become labels if multi-host indexing is on;
    name and host index only where a replica has several hosts.
    """
    draft = Draft.of(cluster, group, config)
    for step in _WORKER:
        step(draft)
    if draft.gate("RayMultiHostIndexing"):
        place = {labels.REPLICA_INDEX: str(replica_index)}
        if replicas.hosts(group) > 1:
            place |= {labels.REPLICA_NAME: replica_name, labels.HOST_INDEX: str(host_index)}
        draft.metadata["labels"] |= place
    return draft.pod


def _name_head(draft: Draft) -> None:
    name = draft.cluster.name
    if draft.config.enable_deterministic_head_pod_name:
        draft.metadata["name"] = names.head_pod(name, generate=False)
    else:
        draft.metadata["generateName"] = names.head_pod(name)  # a name in the template wins over it


def _name_worker(draft: Draft) -> None:
    draft.metadata.pop("name", None)  # there may be several
    draft.metadata["generateName"] = names.worker_pod(draft.cluster.name, _group_name(draft))


def _set_labels(draft: Draft) -> None:
    own = {**(draft.metadata.get("labels") or {}), **draft.group.labels}
    draft.metadata["labels"] = metadata.pod_labels(draft.cluster, draft.node_type, _group_name(draft), own)


def _group_name(draft: Draft) -> str:
    return draft.group.group_name if isinstance(draft.group, WorkerGroupSpec) else labels.HEAD_GROUP


def _copy_overwrite_annotation(draft: Draft) -> None:
    if draft.cluster.metadata.annotations.get(notes.OVERWRITE_CONTAINER_CMD, "").lower() == "true":
        draft.annotate(notes.OVERWRITE_CONTAINER_CMD, "true")


def _add_metrics_port(draft: Draft) -> None:
    if not named(draft.ray.get("ports"), ports.METRICS):
        port = {"name": ports.METRICS, "containerPort": ports.DEFAULTS[ports.METRICS]}
        items(draft.ray, "ports").append(port)


def _add_operator_defaults(draft: Draft) -> None:
    """What the operator's configuration adds to every Pod."""
    config = draft.config
    sidecars = config.head_sidecar_containers if draft.is_head else config.worker_sidecar_containers
    draft.spec["containers"].extend(thaw(list(sidecars)))
    for key, defaults in (
        ("annotations", config.default_pod_annotations),
        ("labels", config.default_pod_labels),
    ):
        if defaults:
            draft.metadata[key] = {**defaults, **entries(draft.metadata, key)}


def _mark_serving(draft: Draft) -> None:
    """Whether the Pod takes Serve traffic; for the head of a RayService its controller decides later."""
    if draft.made_for == "RayService":
        draft.metadata["labels"][labels.SERVE] = labels.FALSE if draft.is_head else labels.TRUE


def _start_ray(draft: Draft) -> None:
    ray_start.take_limits(draft)
    command = ray_start.command(draft)
    ray_start.set_command(draft, command)
    env.add_to_init_containers(draft)
    env.add_to_ray(draft, command)


def _set_owner(draft: Draft) -> None:
    items(draft.metadata, "ownerReferences").append(metadata.owner_reference(draft.cluster.raw))


#: What both kinds of Pods get at the end.
_COMMON: Final[tuple[Step, ...]] = (
    _add_operator_defaults,
    _mark_serving,
    add_shared_memory,
    add_logs,
    _start_ray,  # all flags are known now
    add_event_export,
    add_probes,
    _set_owner,
)

_HEAD: Final[tuple[Step, ...]] = (
    _name_head,
    ray_start.take_resources,
    ray_start.take_labels,
    _set_labels,
    ray_start.take_defaults,
    _copy_overwrite_annotation,
    add_autoscaler,
    set_restart_policy,
    add_fault_tolerance,
    _add_metrics_port,
    add_auth,
    add_tls,
    add_collector,
    *_COMMON,
)

_WORKER: Final[tuple[Step, ...]] = (
    add_wait_for_gcs,  # first: it copies the container as the user wrote it
    _name_worker,
    ray_start.take_resources,
    ray_start.take_labels,
    _set_labels,
    ray_start.take_defaults,
    _copy_overwrite_annotation,
    add_fault_tolerance,
    _add_metrics_port,
    set_restart_policy,
    add_auth,
    add_tls,
    add_collector,
    *_COMMON,
)
