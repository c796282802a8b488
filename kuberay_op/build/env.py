"""Environment of the containers: how variables are added, and which ones every Ray container gets.

Order matters: of two variables of one name the last counts, and ``$(NAME)`` sees only what stands before it.
"Absent" means absent from ``env``; what ``envFrom`` brings is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kuberay_op.api import env, labels, names, ports
from kuberay_op.api.podtemplate import has_env
from kuberay_op.api.view import Json
from kuberay_op.build.draft import Draft, items
from kuberay_op.build.metadata import OPERATOR_VERSION
from kuberay_op.frozen import thaw

#: Paths of a Pod's own fields.
_CLUSTER: Final = f"metadata.labels['{labels.CLUSTER}']"
_GROUP: Final = f"metadata.labels['{labels.GROUP}']"

#: Timeouts for clusters that serve: a lost head must be noticed soon.
_SERVICE_TIMEOUTS: Final = {
    env.RAY_TIMEOUT_MS_TASK_WAIT_FOR_DEATH_INFO: "0",
    env.RAY_GCS_SERVER_REQUEST_TIMEOUT_SECONDS: "5",
    env.RAY_SERVE_KV_TIMEOUT_S: "5",
}


def variable(name: str, value: str) -> Json:
    """A variable with a literal value."""
    return {"name": name, "value": value}


def field_variable(name: str, path: str) -> Json:
    """A variable that takes its value from a field of the Pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def add(container: Json, *variables: Mapping[str, Any]) -> None:
    """Append variables, whether or not there are others of the same name."""
    items(container, "env").extend(thaw(list(variables)))


def add_absent(container: Json, *variables: Mapping[str, Any]) -> None:
    """Append those variables whose names are not there yet."""
    for entry in variables:
        if not has_env(container, entry["name"]):
            add(container, entry)


def identity_variables() -> tuple[Json, Json]:
    """Name and namespace of the cluster, as the Pod itself has them."""
    return (
        field_variable(env.RAY_CLUSTER_NAME, _CLUSTER),
        field_variable(env.RAY_CLUSTER_NAMESPACE, "metadata.namespace"),
    )


def head_addresses(host: str) -> tuple[Json, Json]:
    """Where the head is: the full name, and its first part for old images."""
    return variable(env.FQ_RAY_IP, host), variable(env.RAY_IP, names.short_host(host))


def add_to_init_containers(draft: Draft) -> None:
    """Tell every init container, the user's too, where the head is."""
    for container in draft.spec.get("initContainers") or ():
        add(container, *head_addresses(draft.head_host))


def add_to_ray(draft: Draft, ray_start: str) -> None:
    """Give the Ray container what Ray and the autoscaler look for; ``ray_start`` is the command we made."""
    ray, host = draft.ray, draft.head_host
    add_absent(ray, *draft.config.default_container_envs)
    if not draft.is_head:
        add(ray, *head_addresses(host))
    add(
        ray,
        *identity_variables(),
        field_variable(env.RAY_CLOUD_INSTANCE_ID, "metadata.name"),
        field_variable(env.RAY_NODE_TYPE_NAME, _GROUP),
        variable(env.KUBERAY_GEN_RAY_START_CMD, ray_start),
    )
    add_absent(ray, variable(env.RAY_PORT, draft.head_port))
    if draft.made_for == "RayService":
        add_absent(ray, *(variable(name, value) for name, value in _SERVICE_TIMEOUTS.items()))
    address = f"{ports.LOOPBACK if draft.is_head else host}:{draft.head_port}"
    add_absent(ray, variable(env.RAY_ADDRESS, address), variable(env.RAY_USAGE_STATS_KUBERAY_IN_USE, "1"))
    if draft.is_head:
        tags = f"kuberay_version={OPERATOR_VERSION};kuberay_crd={draft.made_for}"
        add(ray, variable(env.RAY_USAGE_STATS_EXTRA_TAGS, tags))
    add_absent(ray, variable(env.RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE, "1"))
