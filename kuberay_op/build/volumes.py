"""Volumes that Ray Pods share between their containers: shared memory and logs."""

from __future__ import annotations

from typing import Final

from kuberay_op.api import names
from kuberay_op.api.predicates import autoscaling_enabled
from kuberay_op.api.view import Json
from kuberay_op.build.draft import Draft, items, named

SHARED_MEMORY: Final = "shared-mem"
SHARED_MEMORY_PATH: Final = "/dev/shm"  # noqa: S108 (where Ray keeps its objects)
LOGS: Final = "ray-logs"
LOGS_PATH: Final = "/tmp/ray"  # noqa: S108 (where Ray writes its logs)

#: Name of the autoscaler's container.
AUTOSCALER: Final = "autoscaler"


def add_volume(draft: Draft, volume: Json) -> None:
    """Add a volume unless there is one of that name."""
    if not named(draft.spec.get("volumes"), volume["name"]):
        items(draft.spec, "volumes").append(volume)


def mounts_path(container: Json, path: str) -> bool:
    """Whether something is mounted at exactly that path."""
    return any(mount.get("mountPath") == path for mount in container.get("volumeMounts") or ())


def mount(container: Json, name: str, path: str, **fields: object) -> None:
    """Mount a volume."""
    items(container, "volumeMounts").append({"name": name, "mountPath": path, **fields})


def add_shared_memory(draft: Draft) -> None:
    """A ``/dev/shm`` as large as the container's memory, unless the user has one or uses another folder."""
    if "plasma-directory" in draft.params or mounts_path(draft.ray, SHARED_MEMORY_PATH):
        return
    resources = draft.ray.get("resources") or {}
    amounts = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    size = {"sizeLimit": amounts["memory"]} if "memory" in amounts else {}
    add_volume(draft, {"name": SHARED_MEMORY, "emptyDir": {"medium": "Memory", **size}})
    mount(draft.ray, SHARED_MEMORY, SHARED_MEMORY_PATH)


def add_logs(draft: Draft) -> None:
    """A folder for logs that Ray shares with the autoscaler and the collector, where they are."""
    readers = []
    if draft.is_head and autoscaling_enabled(draft.cluster.spec):
        readers.append(draft.container(AUTOSCALER))
    if has_collector(draft):
        readers.append(draft.container(names.COLLECTOR_CONTAINER))
    for container in [draft.ray, *readers] if readers else ():
        if container is not None and not mounts_path(container, LOGS_PATH):
            add_volume(draft, {"name": LOGS, "emptyDir": {}})
            mount(container, LOGS, LOGS_PATH)


def has_collector(draft: Draft) -> bool:
    """Whether the collector of the history server is in the Pod."""
    return draft.gate("RayClusterHistoryServer") and draft.container(names.COLLECTOR_CONTAINER) is not None
