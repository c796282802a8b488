"""What to report: the head and the state of the cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from kuberay_op.api import labels
from kuberay_op.api.predicates import pod_running_and_ready
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.plan.actions import Manifest

READY: Final = "ready"


def live_heads(pods: Iterable[Manifest]) -> list[Manifest]:
    """The head Pods that are not on their way out."""
    return [
        pod
        for pod in pods
        if pod["metadata"].get("labels", {}).get(labels.NODE_TYPE) == labels.HEAD
        and "deletionTimestamp" not in pod["metadata"]
    ]


def status_of(cluster: RayCluster, heads: Sequence[Manifest], now: datetime) -> dict[str, Any]:
    """The fields of the status that we keep, as they should be now."""
    head = dict(heads[0]) if heads else {}
    before = cluster.status
    state = READY if pod_running_and_ready(head) else before.state
    moment = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    status: dict[str, Any] = {
        "head": {
            "podName": (head.get("metadata") or {}).get("name"),
            "podIP": (head.get("status") or {}).get("podIP"),
        },
        "observedGeneration": cluster.metadata.generation,
        "lastUpdateTime": moment,
    }
    if state:
        status["state"] = state
        if state != before.state:
            status["stateTransitionTimes"] = {state: moment}
    return status
