"""What to report: the head and the state of the cluster. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from kuberay_op.api.predicates import pod_running_and_ready
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.kube.resource import Object

READY: Final = "ready"

#: Written along with a change, never a reason to write.
TIMES: Final = ("lastUpdateTime", "stateTransitionTimes")


def status_of(cluster: RayCluster, heads: Sequence[Mapping[str, Any]], now: datetime) -> Object:
    """The fields of the status that we keep, as they should be now."""
    head = dict(heads[0]) if heads else {}
    before = cluster.status
    state = READY if pod_running_and_ready(head) else before.state
    moment = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    status: Object = {
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


def changed(before: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether the status says anything new; times alone are not news."""
    head = {key: value for key, value in status["head"].items() if value is not None}
    wanted = {**status, "head": head}
    known = {"head": {}, **before}
    return any(known.get(field) != value for field, value in wanted.items() if field not in TIMES)
