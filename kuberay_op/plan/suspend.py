"""Suspending a cluster: which step it is at, and what that means for its Pods. Pure.

::

    running ──spec.suspend: true──► suspending ──no Pod left──► suspended
       ▲                                                            │
       └───────────────────── spec.suspend: false ──────────────────┘

The step is kept in two conditions of the status, and a step is taken by writing them. Pods are deleted only
once ``suspending`` has been written: from then on all of them go, even if the user changes their mind
halfway. A field that is not set is not ``false``: it suspends nothing and resumes nothing.
"""

from __future__ import annotations

from enum import Enum

from kuberay_op.api import conditions
from kuberay_op.api.predicates import suspend_state
from kuberay_op.api.raycluster import RayCluster


class Suspend(Enum):
    """Where a cluster is on its way to having no Pods, and back."""

    RUNNING = ""
    SUSPENDING = conditions.RAYCLUSTER_SUSPENDING
    SUSPENDED = conditions.RAYCLUSTER_SUSPENDED


class Pods(Enum):
    """What that means for the Pods."""

    KEEP_UP = "make what is missing"
    LEAVE = "neither make nor delete any"
    DELETE = "delete all"


def step_of(cluster: RayCluster) -> Suspend:
    """The step that the status shows."""
    return Suspend(suspend_state(cluster.status))


def pods_at(cluster: RayCluster, *, in_conditions: bool) -> Pods:
    """What to do with the Pods now.

    Without conditions (feature gate ``RayClusterStatusConditions`` off) there are no steps, only the wish.
    """
    asked = cluster.spec.suspend
    if not in_conditions:
        return Pods.DELETE if asked else Pods.KEEP_UP
    match step_of(cluster):
        case Suspend.SUSPENDING:
            return Pods.DELETE
        case Suspend.SUSPENDED:
            return Pods.LEAVE
        case Suspend.RUNNING:
            return Pods.LEAVE if asked else Pods.KEEP_UP


def next_step(cluster: RayCluster, *, pods_left: bool) -> Suspend:
    """The step to write into the status now."""
    match step_of(cluster):
        case Suspend.RUNNING:
            return Suspend.SUSPENDING if cluster.spec.suspend else Suspend.RUNNING
        case Suspend.SUSPENDING:
            return Suspend.SUSPENDING if pods_left else Suspend.SUSPENDED
        case Suspend.SUSPENDED:
            resume = cluster.spec.is_set("suspend") and not cluster.spec.suspend
            return Suspend.RUNNING if resume else Suspend.SUSPENDED
