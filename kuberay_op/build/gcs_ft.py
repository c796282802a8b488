"""Fault tolerance of the control store: Redis or a volume, as the Pods see it, and the volume's claim."""

from __future__ import annotations

from typing import Final

from kuberay_op.api import annotations as notes
from kuberay_op.api import env as names_of
from kuberay_op.api import labels, names
from kuberay_op.api import volumes as fixed
from kuberay_op.api.podtemplate import env_value
from kuberay_op.api.predicates import gcs_ft_embedded, gcs_ft_enabled
from kuberay_op.api.raycluster import RayCluster, RedisCredential
from kuberay_op.api.view import Json
from kuberay_op.build import env
from kuberay_op.build.draft import Draft
from kuberay_op.build.metadata import child_metadata
from kuberay_op.build.volumes import add_volume, mount, mounts_path
from kuberay_op.frozen import thaw

#: The policy under which the claim outlives the cluster.
RETAIN: Final = "Retain"


def add_fault_tolerance(draft: Draft) -> None:
    """Tell Ray where the control store keeps its state, and how long to wait for a lost one."""
    spec = draft.cluster.spec
    enabled = gcs_ft_enabled(spec, draft.cluster.metadata.annotations)
    if draft.is_head:
        draft.annotate(notes.FT_ENABLED, "true" if enabled else "false")
    if not enabled:
        return
    if not draft.is_head:
        patience = names_of.WORKER_GCS_RECONNECT_TIMEOUT
        env.add_absent(draft.ray, env.variable(names_of.RAY_GCS_RPC_SERVER_RECONNECT_TIMEOUT_S, patience))
    elif gcs_ft_embedded(spec):
        _use_volume(draft)
    else:
        _use_redis(draft)


def storage_namespace(cluster: RayCluster) -> str:
    """The prefix of the cluster's keys in Redis."""
    own = cluster.spec.gcs_fault_tolerance_options.external_storage_namespace
    # An annotation counts even when it is empty: it may be what the keys are stored under.
    return own or cluster.metadata.annotations.get(notes.EXTERNAL_STORAGE_NAMESPACE, cluster.metadata.uid)


def _use_redis(draft: Draft) -> None:
    prefix = env.variable(names_of.RAY_EXTERNAL_STORAGE_NAMESPACE, storage_namespace(draft.cluster))
    env.add_absent(draft.ray, prefix)
    # A prefix in the user's own environment counts, so that is the one to show.
    shown = env_value(draft.ray, names_of.RAY_EXTERNAL_STORAGE_NAMESPACE) or prefix["value"]
    draft.annotate(notes.EXTERNAL_STORAGE_NAMESPACE, shown)
    options = draft.cluster.spec.gcs_fault_tolerance_options
    if not options:
        if "redis-password" in draft.params:
            password = env.variable(names_of.REDIS_PASSWORD, draft.params["redis-password"])
            env.add_absent(draft.ray, password)  # for the Job that empties Redis
        return
    env.add(draft.ray, env.variable(names_of.RAY_REDIS_ADDRESS, options.redis_address))
    credentials = (
        ("redis-username", names_of.REDIS_USERNAME, options.redis_username),
        ("redis-password", names_of.REDIS_PASSWORD, options.redis_password),
    )
    for flag, name, credential in credentials:
        if credential:
            draft.params[flag] = f"${name}"
            env.add(draft.ray, _credential(name, credential))


def _credential(name: str, credential: RedisCredential) -> Json:
    if credential.value_from:
        return {"name": name, "valueFrom": thaw(credential.value_from)}
    return env.variable(name, credential.value)


def _use_volume(draft: Draft) -> None:
    env.add_absent(
        draft.ray,
        env.variable(names_of.RAY_GCS_STORAGE, fixed.GCS_STORAGE_ROCKSDB),
        env.variable(names_of.RAY_GCS_STORAGE_PATH, fixed.GCS_STORAGE_PATH),
    )
    storage = draft.cluster.spec.gcs_fault_tolerance_options.storage
    if not mounts_path(draft.ray, fixed.GCS_STORAGE_PATH):
        folder = {"subPath": storage.sub_path} if storage.sub_path else {}
        mount(draft.ray, fixed.GCS_STORAGE_VOLUME, fixed.GCS_STORAGE_PATH, **folder)
    claim = {"claimName": claim_name(draft.cluster)}
    add_volume(draft, {"name": fixed.GCS_STORAGE_VOLUME, "persistentVolumeClaim": claim})


# --- the claim


def claim_name(cluster: RayCluster) -> str:
    """The volume claim of the control store: the user's, or ours."""
    own = cluster.spec.gcs_fault_tolerance_options.storage.claim_name
    return own or names.gcs_claim(cluster.name)


def storage_claim(cluster: RayCluster) -> Json | None:
    """The volume claim that we make; None when the cluster needs none or the user brings one.

    With ``deletionPolicy: Retain`` it has no owner and stays when the cluster goes.
    """
    storage = cluster.spec.gcs_fault_tolerance_options.storage
    if not gcs_ft_embedded(cluster.spec) or storage.claim_name:
        return None
    metadata = child_metadata(cluster, claim_name(cluster), {labels.CLUSTER: cluster.name})
    if storage.deletion_policy == RETAIN:
        del metadata["ownerReferences"]
    spec: Json = {
        "accessModes": list(storage.access_modes) or ["ReadWriteOnce"],
        "resources": {"requests": {"storage": storage.size or fixed.GCS_STORAGE_SIZE}},
    }
    if storage.is_set("storage_class_name"):
        spec["storageClassName"] = storage.storage_class_name
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
