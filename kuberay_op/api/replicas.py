"""How many worker Pods a cluster should, must and may have. Every count is of Pods: replicas times hosts."""

from __future__ import annotations

from typing import Final

from kuberay_op.api.raycluster import RayClusterSpec, WorkerGroupSpec

#: Counts are 32-bit on the wire; where the reference would overflow we stop here.
MAX_INT32: Final = 2**31 - 1


def hosts(group: WorkerGroupSpec) -> int:
    """Pods per replica; less than one makes no sense and counts as one."""
    return max(1, group.num_of_hosts or 1)


def min_replicas(group: WorkerGroupSpec) -> int:
    """The fewest replicas, 0 when unset."""
    return group.min_replicas or 0


def max_replicas(group: WorkerGroupSpec) -> int:
    """The most replicas, without limit when unset."""
    return MAX_INT32 if group.max_replicas is None else group.max_replicas


def desired_replicas(group: WorkerGroupSpec) -> int:
    """``replicas`` brought into the range of minReplicas to maxReplicas; none for a suspended group."""
    if group.suspend:
        return 0
    low, high = min_replicas(group), max_replicas(group)
    if group.replicas is None or group.replicas < low:
        return low
    return min(group.replicas, high)


def group_desired_pods(group: WorkerGroupSpec) -> int:
    """Worker Pods the group should have."""
    return _clamp(desired_replicas(group) * hosts(group))


def group_min_pods(group: WorkerGroupSpec) -> int:
    """The fewest worker Pods of the group while it is not suspended."""
    return _clamp(min_replicas(group) * hosts(group))


def desired_pods(spec: RayClusterSpec) -> int:
    """Worker Pods the cluster should have."""
    return _clamp(sum(map(group_desired_pods, spec.worker_group_specs)))


def min_pods(spec: RayClusterSpec) -> int:
    """The fewest worker Pods of the cluster; suspended groups do not count."""
    return _clamp(sum(map(group_min_pods, _active(spec))))


def max_pods(spec: RayClusterSpec) -> int:
    """The most worker Pods of the cluster; suspended groups do not count."""
    return _clamp(sum(max_replicas(group) * hosts(group) for group in _active(spec)))


def _active(spec: RayClusterSpec) -> list[WorkerGroupSpec]:
    return [group for group in spec.worker_group_specs if not group.suspend]


def _clamp(count: int) -> int:
    return max(0, min(count, MAX_INT32))
