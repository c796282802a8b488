"""Rule 16 of a cluster spec: its NetworkPolicies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kuberay_op.api.formats import dns1123_label_problem
from kuberay_op.api.problems import Path, Problem, show
from kuberay_op.api.raycluster import NetworkPolicyRules, WorkerGroupNetworkPolicy
from kuberay_op.api.validation.rules import Finding, Findings, rule, run
from kuberay_op.api.validation.subjects import ClusterSubject


@dataclass(frozen=True, slots=True)
class _Allowed:
    """What one role is allowed, beside the mode that denies the rest."""

    rules: NetworkPolicyRules
    mode: str
    at: Path


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry for one worker group."""

    entry: WorkerGroupNetworkPolicy
    groups: frozenset[str]
    at: Path


@rule("raycluster.spec.16.1", "networkPolicy needs the feature gate RayClusterNetworkPolicy.")
def gate(cluster: ClusterSubject) -> Findings:
    """The operator would not make the policies."""
    if not cluster.gates("RayClusterNetworkPolicy"):
        yield Finding("networkPolicy", "needs the feature gate RayClusterNetworkPolicy, which is off")


@rule("raycluster.spec.16.2", "Mode DenyAllEgress has no ingressRules.")
def ingress(allowed: _Allowed) -> Findings:
    """All ingress is allowed already."""
    if allowed.mode == "DenyAllEgress" and allowed.rules.ingress_rules:
        text = "have no effect in mode DenyAllEgress, which denies no ingress; remove them"
        yield Finding("ingressRules", text)


@rule("raycluster.spec.16.3", "Mode DenyAllIngress has no egressRules.")
def egress(allowed: _Allowed) -> Findings:
    """All egress is allowed already."""
    if allowed.mode == "DenyAllIngress" and allowed.rules.egress_rules:
        text = "have no effect in mode DenyAllIngress, which denies no egress; remove them"
        yield Finding("egressRules", text)


@rule("raycluster.spec.16.4", "Beside networkPolicy every groupName is a DNS label.")
def group_names(cluster: ClusterSubject) -> Findings:
    """The names become part of the policies' names."""
    for index, group in enumerate(cluster.groups):
        if problem := dns1123_label_problem(group.group_name):
            text = f"{problem}, for networkPolicy"
            yield Finding(("workerGroupSpecs", index, "groupName"), text, group.group_name)


@rule(
    "raycluster.spec.16.5", "Every entry of networkPolicy.workerGroups names a worker group of the cluster."
)
def known_group(subject: _Entry) -> Findings:
    """An entry for nobody is a misspelling."""
    name = subject.entry.group_name
    if name not in subject.groups:
        known = ", ".join(sorted(subject.groups)) or "none"
        yield Finding(
            "groupName", f"{show(name)} is no worker group of this cluster; there are: {known}", name
        )


def check(cluster: ClusterSubject) -> Iterator[Problem]:
    """All of rule 16."""
    policy = cluster.spec.network_policy
    if not policy:
        return
    yield from gate(cluster)
    at = (*cluster.at, "networkPolicy")
    mode = policy.mode or "DenyAll"
    for role, rules in (("head", policy.head), ("worker", policy.worker)):
        yield from run((ingress, egress), _Allowed(rules, mode, (*at, role)))
    yield from group_names(cluster)
    known = frozenset(group.group_name for group in cluster.groups)
    for index, entry in enumerate(policy.worker_groups):
        path = (*at, "workerGroups", index)
        yield from run((ingress, egress), _Allowed(entry, mode, path))
        yield from known_group(_Entry(entry, known, path))
