"""The rules of a RayCluster, and of a cluster spec inside another kind.

The number in a rule's id is the number in the contract; the order of the checks is the order in which the
reference looks, so that the first mistake named is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kuberay_op.api import conditions, labels
from kuberay_op.api.predicates import GateQuery, tls_enabled
from kuberay_op.api.problems import Path, Problem, one_of, show
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.validation import autoscaler, collector, gcs_ft, groups, networkpolicy, security
from kuberay_op.api.validation.rules import Check, Finding, Findings, rule, run
from kuberay_op.api.validation.subjects import ClusterSubject

UPGRADE_TYPES: Final = ("Recreate", "None")

#: Rules 1 to 17, in order.
SPEC_RULES: Final[tuple[Check[ClusterSubject], ...]] = (
    *groups.RULES,  # 1 to 4
    *gcs_ft.RULES,  # 5 to 8
    *autoscaler.RULES,  # 9 to 13
    collector.check,  # 14
    *security.AUTH_RULES,  # 15
    networkpolicy.check,  # 16
    *security.TLS_RULES,  # 17
)


@dataclass(frozen=True, slots=True)
class RayClusterSubject:
    """A whole RayCluster. ``cert_manager`` says whether its API is there; None when nobody knows."""

    obj: RayCluster
    gates: GateQuery
    cert_manager: bool | None = None
    at: Path = ()


def cluster_spec(cluster: ClusterSubject) -> Iterator[Problem]:
    """Every mistake in a cluster spec, wherever it stands."""
    yield from run(SPEC_RULES, cluster)


def spec(subject: RayClusterSubject) -> Iterator[Problem]:
    """Every mistake in the spec of a RayCluster."""
    obj = subject.obj
    yield from cluster_spec(ClusterSubject.of(obj.spec, obj.metadata.annotations, subject.gates, ("spec",)))


@rule("raycluster.tls.1", "TLS needs cert-manager, installed when the operator starts.")
def cert_manager(subject: RayClusterSubject) -> Findings:
    """The certificates come from it."""
    if subject.cert_manager is False and tls_enabled(subject.obj.spec, subject.gates):
        text = "needs cert-manager, which was not found; install it and restart the operator"
        yield Finding("spec.tlsOptions.enabled", text, True)


@rule("raycluster.upgrade.1", "upgradeStrategy.type is Recreate or None.")
def upgrade_type(subject: RayClusterSubject) -> Findings:
    """The schema says so, too; an object from elsewhere may have passed it by."""
    strategy = subject.obj.spec.upgrade_strategy
    if strategy.is_set("type") and strategy.type not in UPGRADE_TYPES:
        text = f"is {show(strategy.type)}; must be {one_of(UPGRADE_TYPES)}"
        yield Finding("spec.upgradeStrategy.type", text, strategy.type)


@rule("raycluster.upgrade.2", "A RayCluster made for a RayJob or RayService has no upgradeStrategy.type.")
def upgrade_owner(subject: RayClusterSubject) -> Findings:
    """Its owner decides about upgrades."""
    obj = subject.obj
    owner = obj.metadata.labels.get(labels.ORIGINATED_FROM_KIND)
    if obj.spec.upgrade_strategy.is_set("type") and owner in ("RayJob", "RayService"):
        text = f"cannot be set on a RayCluster of a {owner}, which decides about upgrades itself"
        yield Finding("spec.upgradeStrategy.type", text, obj.spec.upgrade_strategy.type)


@rule("raycluster.status.1", "The conditions RayClusterSuspending and RayClusterSuspended are not both True.")
def one_suspend_state(subject: RayClusterSubject) -> Findings:
    """Something else than the operator wrote them."""
    true = {c.type for c in subject.obj.status.conditions if c.status == conditions.TRUE}
    both = {conditions.RAYCLUSTER_SUSPENDING, conditions.RAYCLUSTER_SUSPENDED}
    if both <= true:
        text = f"{one_of(sorted(both))} must be False: a cluster cannot be both"
        yield Finding("status.conditions", text)


def upgrade(subject: RayClusterSubject) -> Iterator[Problem]:
    """Every mistake in the upgrade options."""
    yield from run((upgrade_type, upgrade_owner), subject)
