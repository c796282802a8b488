"""Which changes of a Pod are worth a pass over its cluster.

A kubelet writes the status of a Pod several times on its way, and a scheduler once more. Only what makes a
plan or a status different counts.
"""

from __future__ import annotations

from typing import Any, Final

from kuberay_op.api.predicates import head_pod_readiness
from kuberay_op.frozen import FrozenDict
from kuberay_op.plan.actions import Manifest
from kuberay_op.plan.trouble import trouble

_METADATA: Final = ("labels", "annotations", "ownerReferences", "finalizers", "deletionTimestamp")


def pod_news(old: FrozenDict, new: FrozenDict) -> bool:
    """Whether a Pod has changed in what matters to us."""
    return _looks(old) != _looks(new)


def _looks(pod: Manifest) -> tuple[Any, ...]:
    metadata, status = pod["metadata"], pod.get("status") or {}
    return (
        *(metadata.get(field) for field in _METADATA),
        status.get("phase"),
        status.get("podIP"),
        head_pod_readiness(pod),
        trouble(pod),
    )
