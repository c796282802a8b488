"""A Pod as planners see it: whose it is, whether it is well, and whether it is on its way out.

Read once per pass from the cached object, so that the planners compare plain fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kuberay_op.api import labels
from kuberay_op.api.conditions import TRUE
from kuberay_op.api.podtemplate import ray_container
from kuberay_op.api.predicates import pod_condition, pod_running
from kuberay_op.plan.actions import Manifest


@dataclass(frozen=True, slots=True)
class PodView:
    """One Pod of a cluster."""

    pod: Manifest
    name: str
    uid: str
    #: ``head`` or ``worker``.
    role: str
    #: Name of its group; ``headgroup`` for the head.
    group: str
    #: When it was made, as the API writes it (UTC, so that texts sort like times).
    created: str
    #: It was asked to go and is not gone yet.
    terminating: bool
    #: It is in phase Running.
    running: bool
    #: It runs and says that it is ready.
    ready: bool
    #: It runs and does not say that it is not ready.
    up: bool
    #: Why it will never work again and has to be replaced; empty while it may.
    ill: str
    #: The multi-host replica it is a part of; empty when it has no such label.
    replica_name: str
    #: Index of its replica; None when it has none.
    replica_index: int | None
    #: Which host of its multi-host replica it is; None when it is in none.
    host_index: int | None

    @classmethod
    def of(cls, pod: Manifest) -> PodView:
        """From the object."""
        metadata = pod.get("metadata") or {}
        marks = metadata.get("labels") or {}
        running, said = pod_running(pod), pod_condition(pod, "Ready").get("status")
        return cls(
            pod=pod,
            name=str(metadata.get("name", "")),
            uid=str(metadata.get("uid", "")),
            role=str(marks.get(labels.NODE_TYPE, "")),
            group=str(marks.get(labels.GROUP, "")),
            created=str(metadata.get("creationTimestamp") or ""),
            terminating=bool(metadata.get("deletionTimestamp")),
            running=running,
            ready=running and said == TRUE,
            up=running and said in (None, TRUE),
            ill=illness(pod),
            replica_name=str(marks.get(labels.REPLICA_NAME, "")),
            replica_index=_index(marks.get(labels.REPLICA_INDEX)),
            host_index=_index(marks.get(labels.HOST_INDEX)),
        )


def views(pods: Iterable[Manifest]) -> list[PodView]:
    """All of these, the oldest first: the same list whatever order the cache has them in."""
    return sorted(map(PodView.of, pods), key=lambda pod: (pod.created, pod.name))


def heads(pods: Iterable[PodView]) -> list[PodView]:
    """The head Pods."""
    return [pod for pod in pods if pod.role == labels.HEAD]


def workers(pods: Iterable[PodView], group: str) -> list[PodView]:
    """The worker Pods of a group. A group that is called like the head's does not get the head."""
    return [pod for pod in pods if pod.role == labels.WORKER and pod.group == group]


def first_to_go(pod: PodView) -> tuple[bool, str, str]:
    """Sort key for ``sorted(..., reverse=True)``: not ready first, then the newest, then by name."""
    return not pod.ready, pod.created, pod.name


def illness(pod: Manifest) -> str:
    """Why a Pod has to be replaced: it has ended, or its Ray container has and will not be restarted.

    Empty for a Pod that may still become well: kubelet restarts crashing containers, and a Pod that is not
    ready or whose node is silent may come back.
    """
    status = pod.get("status") or {}
    phase = status.get("phase")
    if phase not in ("Failed", "Succeeded", "Running"):
        return ""
    policy = (pod.get("spec") or {}).get("restartPolicy") or "Always"
    if phase == "Running":
        ended = _termination(pod) if policy == "Never" else ""
        return f"{ended}, phase Running, restart policy Never" if ended else ""
    cause = f" ({status['reason']})" if status.get("reason") else ""
    ended = _termination(pod)
    return f"phase {phase}{cause}, restart policy {policy}{f', {ended}' if ended else ''}"


def _termination(pod: Manifest) -> str:
    """How the Ray container has ended; empty while it has not."""
    name = ray_container(pod).get("name")
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        if container.get("name") == name:
            ended = (container.get("state") or {}).get("terminated")
            if isinstance(ended, Mapping):
                return (
                    f"Ray container terminated: {ended.get('reason') or 'no reason given'}, "
                    f"exit code {ended.get('exitCode', 'unknown')}"
                )
    return ""


def _index(text: object) -> int | None:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdecimal() else None
