"""Yes-or-no questions about our objects and the ones around them, each answered in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kuberay_op.api import annotations as notes
from kuberay_op.api import conditions, env
from kuberay_op.api.names import CONTROLLER
from kuberay_op.api.podtemplate import Json, env_value, ray_container
from kuberay_op.api.raycluster import RayClusterSpec, RayClusterStatus
from kuberay_op.api.rayjob import RayJobSpec
from kuberay_op.api.rayservice import RayServiceSpec, RayServiceStatus

#: Answers whether the feature gate of that name is on; ``Gates.enabled`` is one.
GateQuery = Callable[[str], bool]

NEW_CLUSTER: Final = "NewCluster"
INCREMENTAL: Final = "NewClusterWithIncrementalUpgrade"
NO_UPGRADE: Final = "None"

_OPENSHIFT_GROUPS: Final = frozenset({"route.openshift.io", "security.openshift.io", "config.openshift.io"})

# --- RayCluster


def autoscaling_enabled(spec: RayClusterSpec) -> bool:
    """The Ray autoscaler runs beside the head."""
    return spec.enable_in_tree_autoscaling


def autoscaler_v1(spec: RayClusterSpec) -> bool:
    """The spec names autoscaler v1, whether autoscaling is on or not."""
    return spec.autoscaler_options.version == "v1"


def autoscaler_v2(spec: RayClusterSpec) -> bool:
    """The spec names autoscaler v2, whether autoscaling is on or not."""
    return spec.autoscaler_options.version == "v2"


def autoscaler_v2_by_env(spec: RayClusterSpec) -> bool:
    """The head container chooses autoscaler v2 by its environment, the older way."""
    head = ray_container(spec.head_group_spec.template)
    return env_value(head, env.RAY_ENABLE_AUTOSCALER_V2) in ("1", "true")


def gcs_ft_enabled(spec: RayClusterSpec, annotations: Mapping[str, str]) -> bool:
    """The control store survives the head: by options, or by the older annotation."""
    return bool(spec.gcs_fault_tolerance_options) or annotations.get(notes.FT_ENABLED, "").lower() == "true"


def gcs_ft_embedded(spec: RayClusterSpec) -> bool:
    """The control store survives the head on a volume rather than in Redis."""
    return spec.gcs_fault_tolerance_options.backend == "rocksdb"


def auth_enabled(spec: RayClusterSpec) -> bool:
    """Ray asks for a token. Options without a mode do not turn it on."""
    return spec.auth_options.mode == "token"


def k8s_auth_enabled(spec: RayClusterSpec) -> bool:
    """The API server decides who may use Ray."""
    return spec.auth_options.enable_k8s_token_auth


def tls_enabled(spec: RayClusterSpec, gates: GateQuery) -> bool:
    """Ray's own traffic is encrypted."""
    return spec.tls_options.enabled and gates("RayClusterMTLS")


def suspend_state(status: RayClusterStatus) -> str:
    """The first of the two suspend conditions that holds; empty when neither does."""
    suspending = (conditions.RAYCLUSTER_SUSPENDING, conditions.RAYCLUSTER_SUSPENDED)
    for condition in status.conditions:
        if condition.type in suspending and condition.status == conditions.TRUE:
            return condition.type
    return ""


# --- RayJob, RayService


def externally_managed(spec: RayClusterSpec | RayJobSpec | RayServiceSpec) -> bool:
    """Another controller takes care of the object; we do not touch it. An empty name is another, too."""
    return spec.is_set("managed_by") and spec.managed_by != CONTROLLER


def incremental_upgrade(spec: RayServiceSpec, gates: GateQuery) -> bool:
    """Traffic moves to a new cluster step by step."""
    return spec.upgrade_strategy.type == INCREMENTAL and gates("RayServiceIncrementalUpgrade")


def upgrade_complete(status: RayServiceStatus) -> bool:
    """The pending cluster has all traffic and the active one no capacity left."""
    active, pending = status.active_service_status, status.pending_service_status
    return (
        bool(pending.ray_cluster_name)
        and active.target_capacity == 0
        and pending.traffic_routed_percent == 100
    )


# --- objects of Kubernetes


def _list(value: Any) -> list[Json]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def _status(obj: Json) -> Json:
    status = obj.get("status")
    return status if isinstance(status, Mapping) else {}


def _true_conditions(status: Json) -> set[Any]:
    return {c.get("type") for c in _list(status.get("conditions")) if c.get("status") == conditions.TRUE}


def pod_condition(pod: Json, kind: str) -> Json:
    """The condition of that type; empty when the Pod has none."""
    found = (c for c in _list(_status(pod).get("conditions")) if c.get("type") == kind)
    return next(found, {})


def pod_running(pod: Json) -> bool:
    """The Pod is in phase Running."""
    return _status(pod).get("phase") == "Running"


def pod_running_and_ready(pod: Json) -> bool:
    """The Pod runs and says that it is ready."""
    return pod_running(pod) and pod_condition(pod, "Ready").get("status") == conditions.TRUE


@dataclass(frozen=True, slots=True)
class Readiness:
    """What a Pod says about its readiness, as the fields of a condition."""

    status: str
    reason: str
    message: str


def head_pod_readiness(pod: Json) -> Readiness:
    """The HeadPodReady condition that this head Pod gives.

    The Pod itself only says ``ContainersNotReady``; the container that waits or has ended says why.
    """
    ready = pod_condition(pod, "Ready")
    if not ready:
        return Readiness(conditions.FALSE, conditions.REASON_UNKNOWN, "")
    status, reason, message = (str(ready.get(key) or "") for key in ("status", "reason", "message"))
    if not reason:
        holds = status == conditions.TRUE
        reason = conditions.HEAD_POD_RUNNING_AND_READY if holds else conditions.REASON_UNKNOWN
    if reason == "ContainersNotReady":
        for container in _list(_status(pod).get("containerStatuses")):
            state = container.get("state") or {}
            detail = state.get("waiting") or state.get("terminated")
            if detail:
                reason = str(detail.get("reason") or reason)
                text = f"{container.get('name')}: {detail.get('message') or ''}"
                message = f"{message}; {text}" if message else text
                break
    return Readiness(status or conditions.FALSE, reason, message)


def job_result(job: Json) -> str:
    """``Complete`` or ``Failed`` for a Job that is finished, else empty; the first such condition counts."""
    for condition in _list(_status(job).get("conditions")):
        if condition.get("status") == conditions.TRUE:
            if condition.get("type") == "Complete":
                return "Complete"
            if condition.get("type") in ("Failed", "FailureTarget"):
                return "Failed"
    return ""


def gateway_ready(gateway: Json) -> bool:
    """The Gateway was accepted and takes traffic."""
    return {"Accepted", "Programmed"} <= _true_conditions(_status(gateway))


def httproute_ready(route: Json, gateway: str, namespace: str) -> bool:
    """That Gateway accepted the route and found its backends. A parent without a namespace matches any."""
    for parent in _list(_status(route).get("parents")):
        reference = parent.get("parentRef") or {}
        named = reference.get("name") == gateway and reference.get("namespace") in (None, namespace)
        if named and {"Accepted", "ResolvedRefs"} <= _true_conditions(parent):
            return True
    return False


def on_openshift(api_groups: Iterable[str]) -> bool:
    """The API server is OpenShift's."""
    return not _OPENSHIFT_GROUPS.isdisjoint(api_groups)
