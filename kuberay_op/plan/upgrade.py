"""What a changed spec means for Pods that run: one function for each ``upgradeStrategy``. Pure.

``None`` leaves them alone. ``Recreate`` replaces all of them at once. A strategy that replaces a group bit by
bit would be another function in :data:`STRATEGIES`, and would name the Pods to replace next in its answer;
``plan_pods`` is where that joins what the groups want.

The head Pod carries a hash of the spec it was made from and the version of the operator that computed it.
Hashes of different versions say nothing about each other: then the head gets the new pair and nothing else
happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kuberay_op.api import annotations as notes
from kuberay_op.api.hashes import raycluster_spec_hash
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.plan.podview import PodView, heads

OUTDATED: Final = "the spec has changed and upgradeStrategy is Recreate"


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What to do about Pods that the spec has left behind."""

    #: All Pods must go, and none may be made before the head is gone.
    recreate: bool = False
    #: The head Pod that gets the hash and version anew.
    stamp: PodView | None = None


#: Nothing to do.
UP_TO_DATE: Final = Upgrade()

#: From the cluster, its Pods (oldest first) and this operator's version to what to do.
Strategy = Callable[[RayCluster, Sequence[PodView], str], Upgrade]


def plan_upgrade(cluster: RayCluster, pods: Sequence[PodView], version: str) -> Upgrade:
    """What the cluster's strategy has to say; without one, running Pods are left alone."""
    strategy = STRATEGIES.get(cluster.spec.upgrade_strategy.type)
    return UP_TO_DATE if strategy is None else strategy(cluster, pods, version)


def stamps(cluster: RayCluster, version: str) -> dict[str, str]:
    """The annotations of a head Pod that say what it was made from."""
    return {
        notes.RECREATE_HASH: raycluster_spec_hash(cluster.spec.raw),
        notes.KUBERAY_VERSION: version,
    }


def recreate(cluster: RayCluster, pods: Sequence[PodView], version: str) -> Upgrade:
    """Delete all Pods when the head was made from another spec, and make none until that head is gone."""
    found = heads(pods)
    if not found:
        return UP_TO_DATE
    head = next((head for head in found if not head.terminating), found[0])
    written = (head.pod.get("metadata") or {}).get("annotations") or {}
    written_by = written.get(notes.KUBERAY_VERSION)
    if written_by and written_by != version:
        return UP_TO_DATE if head.terminating else Upgrade(stamp=head)
    made_from = written.get(notes.RECREATE_HASH)
    outdated = bool(made_from) and made_from != stamps(cluster, version)[notes.RECREATE_HASH]
    return Upgrade(recreate=True) if outdated else UP_TO_DATE


STRATEGIES: Final[Mapping[str, Strategy]] = {"Recreate": recreate}
