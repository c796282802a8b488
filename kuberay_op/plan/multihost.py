"""A multi-host group: every replica is so many Pods that come and go together. Pure.

The rules of ``groups.py`` hold for replicas as they do there for Pods. A replica that has lost a host, has
one that will never work again, or has another number of hosts than the group wants now, is removed as a
whole: its hosts were made for each other and cannot be exchanged one by one.

A replica that has never been whole, because the API server refused some of its hosts, gets the missing ones
when that is possible. Removed, it would be begun anew, refused anew, and so on for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from kuberay_op.api import replicas
from kuberay_op.api.names import with_suffix
from kuberay_op.api.raycluster import WorkerGroupSpec
from kuberay_op.plan.groups import NAMED, Add, GroupRules, Remove, free
from kuberay_op.plan.podview import PodView


@dataclass(frozen=True, slots=True)
class Replica:
    """Hosts that belong together."""

    name: str
    pods: tuple[PodView, ...]

    def why_remove(self, hosts: int, named: frozenset[str], *, begun: bool) -> str:
        """Why it cannot stay; empty when it can. One that is only ``begun`` may have too few hosts."""
        for pod in self.pods:
            if pod.ill:
                return f"host {pod.name} of its replica has to be replaced: {pod.ill}"
        for pod in self.pods:
            if pod.terminating:
                return f"host {pod.name} of its replica is being deleted"
        if len(self.pods) > hosts or (len(self.pods) < hosts and not begun):
            return f"its replica has {len(self.pods)} of {hosts} hosts"
        return f"its replica is {NAMED}" if any(pod.name in named for pod in self.pods) else ""

    def missing(self, group: str, hosts: int) -> list[Add]:
        """The hosts that it still lacks."""
        there = {pod.host_index for pod in self.pods}
        reason = f"its replica has {len(self.pods)} of {hosts} hosts and was never whole"
        index = self.pods[0].replica_index
        return [
            Add(group, reason, replica=index, host=host, replica_name=self.name)
            for host in range(hosts)
            if host not in there
        ]

    def first_to_go(self) -> tuple[bool, str, str]:
        """Sort key as for single Pods: not ready first, then the newest, then by name."""
        return not all(pod.ready for pod in self.pods), max(pod.created for pod in self.pods), self.name


def plan_multi_host(
    group: WorkerGroupSpec,
    pods: Sequence[PodView],
    rules: GroupRules,
    rng: Random,
    begun: frozenset[str] = frozenset(),
) -> tuple[list[Add], list[Remove]]:
    """A group whose replicas have several hosts.

    ``rng`` gives the names of new replicas; ``begun`` are those that were never whole.
    """
    hosts, wanted = replicas.hosts(group), replicas.desired_replicas(group)
    found = list(group_replicas(pods, hosts))
    named = frozenset(group.scale_strategy.workers_to_delete)
    doomed = [
        (replica, why)
        for replica in found
        if (why := replica.why_remove(hosts, named, begun=replica.name in begun))
    ]
    going = {replica.name for replica, _ in doomed}
    staying = [replica for replica in found if replica.name not in going]
    surplus = len(staying) - wanted
    if surplus > 0 and rules.may_shrink:
        reason = f"{len(staying)} replicas are too many; the group wants {wanted}"
        chosen = sorted(staying, key=Replica.first_to_go, reverse=True)[:surplus]
        doomed += [(replica, reason) for replica in chosen]
        going |= {replica.name for replica in chosen}
    removed = [Remove(pod, why) for replica, why in doomed for pod in replica.pods if not pod.terminating]
    reason = f"{len(found)} of {wanted} replicas exist"
    added = [
        addition
        for replica in staying
        if replica.name in begun - going
        for addition in replica.missing(group.group_name, hosts)
    ]
    names = {replica.name for replica in found}
    for index in free(pods, max(0, wanted - len(found))):
        name = _new_name(group.group_name, names, rng)
        names.add(name)
        added += [
            Add(group.group_name, reason, replica=index, host=host, replica_name=name)
            for host in range(hosts)
        ]
    return added, removed


def group_replicas(pods: Iterable[PodView], hosts: int) -> Iterable[Replica]:
    """The Pods as replicas.

    Pods without the label of a replica were made while replicas were not numbered. They are put together by
    age, so that switching the feature on makes no Pod anew.
    """
    named: dict[str, list[PodView]] = {}
    nameless: list[PodView] = []
    for pod in pods:
        if pod.replica_name:
            named.setdefault(pod.replica_name, []).append(pod)
        else:
            nameless.append(pod)
    for name, members in named.items():
        yield Replica(name, tuple(members))
    for start in range(0, len(nameless), hosts):
        yield Replica(f"({start // hosts})", tuple(nameless[start : start + hosts]))


def _new_name(group: str, taken: set[str], rng: Random) -> str:
    while (name := with_suffix(group, rng)) in taken:
        pass
    return name
