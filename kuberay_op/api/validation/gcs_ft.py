"""Rules 5 to 8 of a cluster spec: fault tolerance of the control store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kuberay_op.api import annotations as notes
from kuberay_op.api import env, volumes
from kuberay_op.api.podtemplate import volumes as pod_volumes
from kuberay_op.api.predicates import gcs_ft_embedded, gcs_ft_enabled
from kuberay_op.api.problems import Path, Problem, show
from kuberay_op.api.validation.rules import Check, Finding, Findings, rule, run
from kuberay_op.api.validation.subjects import HEAD_CONTAINER_AT, ClusterSubject, env_at, mount_at

_OPTIONS: Final = "gcsFaultToleranceOptions"
_EMBEDDED_ONLY: Final = "is not used by the rocksdb backend; remove it"


def _annotation(cluster: ClusterSubject, key: str, message: str) -> Findings:
    """A finding about an annotation of the object around the spec, when it is not empty."""
    value = cluster.annotations.get(key, "")
    if value:
        yield Finding(("metadata", "annotations", key), f"is {show(value)}; {message}", value, from_top=True)


def _head_env(cluster: ClusterSubject, name: str, message: str) -> Findings:
    path = env_at(cluster.head_container, name, HEAD_CONTAINER_AT)
    if path:
        yield Finding(path, f"{name} {message}")


# --- 5 and 6: the older switches


@rule(
    "raycluster.spec.5", "The annotation ray.io/ft-enabled and gcsFaultToleranceOptions exclude each other."
)
def two_switches(cluster: ClusterSubject) -> Findings:
    """Any value does it, also "false"."""
    yield from _annotation(
        cluster, notes.FT_ENABLED, "it cannot stand beside gcsFaultToleranceOptions; remove it"
    )


@rule("raycluster.spec.6", "The head container names Redis only under fault tolerance.")
def address_without_ft(cluster: ClusterSubject) -> Findings:
    """Ray would keep state nobody cleans up."""
    if not gcs_ft_enabled(cluster.spec, cluster.annotations):
        text = "needs fault tolerance; set gcsFaultToleranceOptions, or remove the variable"
        yield from _head_env(cluster, env.RAY_REDIS_ADDRESS, text)


# --- 7: with options


@rule("raycluster.spec.7.1", "With gcsFaultToleranceOptions, rayStartParams has no redis-password.")
def password_flag(cluster: ClusterSubject) -> Findings:
    """The options have a field for it."""
    if cluster.head.ray_start_params.get("redis-password"):
        text = "cannot stand beside gcsFaultToleranceOptions; use its redisPassword"
        yield Finding("headGroupSpec.rayStartParams.redis-password", text)


@rule("raycluster.spec.7.2", "With gcsFaultToleranceOptions, the head container has no REDIS_PASSWORD.")
def password_env(cluster: ClusterSubject) -> Findings:
    """The options have a field for it."""
    text = "cannot stand beside gcsFaultToleranceOptions; use its redisPassword"
    yield from _head_env(cluster, env.REDIS_PASSWORD, text)


@rule("raycluster.spec.7.3", "With gcsFaultToleranceOptions, the head container has no RAY_REDIS_ADDRESS.")
def address_env(cluster: ClusterSubject) -> Findings:
    """The options have a field for it."""
    text = "cannot stand beside gcsFaultToleranceOptions; use its redisAddress"
    yield from _head_env(cluster, env.RAY_REDIS_ADDRESS, text)


@rule(
    "raycluster.spec.7.4",
    "With gcsFaultToleranceOptions, there is no annotation ray.io/external-storage-namespace.",
)
def namespace_annotation(cluster: ClusterSubject) -> Findings:
    """The options have a field for it."""
    text = "use gcsFaultToleranceOptions.externalStorageNamespace instead"
    yield from _annotation(cluster, notes.EXTERNAL_STORAGE_NAMESPACE, text)


# --- 7, backend rocksdb


@rule("raycluster.spec.7.5", "The rocksdb backend needs the feature gate GCSFaultToleranceEmbeddedStorage.")
def embedded_gate(cluster: ClusterSubject) -> Findings:
    """The operator would not make the volume."""
    if not cluster.gates("GCSFaultToleranceEmbeddedStorage"):
        text = "rocksdb needs the feature gate GCSFaultToleranceEmbeddedStorage, which is off"
        yield Finding(f"{_OPTIONS}.backend", text, "rocksdb")


@rule("raycluster.spec.7.6", "The rocksdb backend has no redisAddress.")
def embedded_address(cluster: ClusterSubject) -> Findings:
    """There is no Redis."""
    if cluster.spec.gcs_fault_tolerance_options.redis_address:
        yield Finding(f"{_OPTIONS}.redisAddress", _EMBEDDED_ONLY)


@rule("raycluster.spec.7.7", "The rocksdb backend has no redisUsername.")
def embedded_username(cluster: ClusterSubject) -> Findings:
    """There is no Redis."""
    if cluster.spec.gcs_fault_tolerance_options.redis_username:
        yield Finding(f"{_OPTIONS}.redisUsername", _EMBEDDED_ONLY)


@rule("raycluster.spec.7.8", "The rocksdb backend has no redisPassword.")
def embedded_password(cluster: ClusterSubject) -> Findings:
    """There is no Redis."""
    if cluster.spec.gcs_fault_tolerance_options.redis_password:
        yield Finding(f"{_OPTIONS}.redisPassword", _EMBEDDED_ONLY)


@rule("raycluster.spec.7.9", "The rocksdb backend has no externalStorageNamespace.")
def embedded_namespace(cluster: ClusterSubject) -> Findings:
    """There is no Redis."""
    namespace = cluster.spec.gcs_fault_tolerance_options.external_storage_namespace
    if namespace:
        yield Finding(f"{_OPTIONS}.externalStorageNamespace", _EMBEDDED_ONLY, namespace)


@rule("raycluster.spec.7.10", "storage names a claim of yours or describes a new one, not both.")
def claim_or_description(cluster: ClusterSubject) -> Findings:
    """A claim that exists is never reconfigured."""
    storage = cluster.spec.gcs_fault_tolerance_options.storage
    if storage.claim_name:
        for field in ("size", "storageClassName", "accessModes"):
            value = storage.raw.get(field)
            if value is not None and value != []:
                text = "cannot stand beside claimName, which names a claim of your own"
                yield Finding(f"{_OPTIONS}.storage.{field}", text, value)


@rule("raycluster.spec.7.11", "With the rocksdb backend the operator alone sets Ray's storage variables.")
def embedded_env(cluster: ClusterSubject) -> Findings:
    """They must agree with the volume."""
    for name in (env.RAY_GCS_STORAGE, env.RAY_GCS_STORAGE_PATH):
        yield from _head_env(cluster, name, "is set by the operator for the rocksdb backend; remove it")


@rule(
    "raycluster.spec.7.12", "With the rocksdb backend the mount gcs-storage at /data/gcs is the operator's."
)
def embedded_mount(cluster: ClusterSubject) -> Findings:
    """Two volumes cannot be in one place."""
    path = mount_at(
        cluster.head_container,
        volume=volumes.GCS_STORAGE_VOLUME,
        path=volumes.GCS_STORAGE_PATH,
        at=HEAD_CONTAINER_AT,
    )
    if path:
        what = f"the volume {volumes.GCS_STORAGE_VOLUME} and the path {volumes.GCS_STORAGE_PATH}"
        yield Finding(path, f"{what} are the operator's for the rocksdb backend; choose others")


@rule("raycluster.spec.7.13", "With the rocksdb backend the volume gcs-storage is the operator's.")
def embedded_volume(cluster: ClusterSubject) -> Findings:
    """Two volumes cannot have one name."""
    for index, volume in enumerate(pod_volumes(cluster.head.template)):
        if volume.get("name") == volumes.GCS_STORAGE_VOLUME:
            path: Path = ("headGroupSpec", "template", "spec", "volumes", index, "name")
            text = f"{volumes.GCS_STORAGE_VOLUME} is the operator's for the rocksdb backend; choose another"
            yield Finding(path, text, volumes.GCS_STORAGE_VOLUME)


# --- 7, backend redis


@rule("raycluster.spec.7.14", "storage is for the rocksdb backend.")
def redis_storage(cluster: ClusterSubject) -> Findings:
    """Redis has its own."""
    if cluster.spec.gcs_fault_tolerance_options.storage:
        yield Finding(f"{_OPTIONS}.storage", "needs backend: rocksdb; Redis has a storage of its own")


# --- 8: always


@rule("raycluster.spec.8.1", "rayStartParams has no redis-username.")
def username_flag(cluster: ClusterSubject) -> Findings:
    """The options have a field for it."""
    if cluster.head.ray_start_params.get("redis-username"):
        text = "is not allowed; use gcsFaultToleranceOptions.redisUsername"
        yield Finding("headGroupSpec.rayStartParams.redis-username", text)


@rule("raycluster.spec.8.2", "The head container has no REDIS_USERNAME.")
def username_env(cluster: ClusterSubject) -> Findings:
    """The options have a field for it."""
    text = "is not allowed; use gcsFaultToleranceOptions.redisUsername"
    yield from _head_env(cluster, env.REDIS_USERNAME, text)


# --- the list

_OPTION_RULES: Final[tuple[Check[ClusterSubject], ...]] = (
    password_flag,
    password_env,
    address_env,
    namespace_annotation,
)
_EMBEDDED_RULES: Final[tuple[Check[ClusterSubject], ...]] = (
    embedded_gate,
    embedded_address,
    embedded_username,
    embedded_password,
    embedded_namespace,
    claim_or_description,
    embedded_env,
    embedded_mount,
    embedded_volume,
)


def options(cluster: ClusterSubject) -> Iterator[Problem]:
    """Rules 5 and 7: those that hold while the options are set."""
    if cluster.spec.gcs_fault_tolerance_options:
        yield from run((two_switches,), cluster)


def backend(cluster: ClusterSubject) -> Iterator[Problem]:
    """Rule 7, by backend."""
    if cluster.spec.gcs_fault_tolerance_options:
        yield from run(_OPTION_RULES, cluster)
        yield from run(_EMBEDDED_RULES if gcs_ft_embedded(cluster.spec) else (redis_storage,), cluster)


RULES: Final[tuple[Check[ClusterSubject], ...]] = (
    options,
    address_without_ft,
    backend,
    username_flag,
    username_env,
)
