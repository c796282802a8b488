"""The operator's role: what the core needs, and what the enabled plugins add.

``kuberay-op rbac`` prints it, and the chart renders the same. Least first: a rule stands here only if the
code makes that call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kuberay_op.features import Gates
from kuberay_op.hooks.scope import PolicyRule

#: What the operator needs whatever is enabled.
CORE: Final[tuple[PolicyRule, ...]] = (
    # Patched to put finalizers on and take them off; RayClusters are made and deleted for jobs.
    PolicyRule(("ray.io",), ("rayclusters",), ("create", "delete", "get", "list", "patch", "watch")),
    PolicyRule(("ray.io",), ("rayjobs",), ("delete", "get", "list", "patch", "watch")),
    PolicyRule(("ray.io",), ("rayclusters/status", "rayjobs/status"), ("patch",)),
    # Owner references with blockOwnerDeletion need this where that admission plugin is on.
    PolicyRule(("ray.io",), ("rayclusters/finalizers", "rayjobs/finalizers"), ("update",)),
    # Submitters of jobs.
    PolicyRule(("batch",), ("jobs",), ("create", "delete", "get", "list", "watch")),
    # With useKubernetesProxy: jobs are looked at and submitted.
    PolicyRule(("",), ("services/proxy",), ("create", "get")),
    PolicyRule(("",), ("pods",), ("create", "delete", "get", "list", "patch", "watch")),
    # Made once, and read again if one of that name turns up.
    PolicyRule(("",), ("services",), ("create", "get", "list", "patch", "watch")),
    PolicyRule(("networking.k8s.io",), ("ingresses",), ("create", "get", "list", "patch", "watch")),
    # With the gate GCSFaultToleranceEmbeddedStorage.
    PolicyRule(("",), ("persistentvolumeclaims",), ("create", "get", "list", "patch", "watch")),
    # On OpenShift.
    PolicyRule(("route.openshift.io",), ("routes",), ("create", "get", "list", "patch", "watch")),
    # Tokens are read by name; never listed, so never seen where we do not know one to be.
    PolicyRule(("",), ("secrets",), ("create", "get")),
    PolicyRule(("events.k8s.io",), ("events",), ("create", "patch")),
)

#: What the gates that are on add.
GATED: Final[Mapping[str, tuple[PolicyRule, ...]]] = {
    "RayClusterNetworkPolicy": (
        PolicyRule(
            ("networking.k8s.io",),
            ("networkpolicies",),
            ("create", "delete", "get", "list", "patch", "watch"),
        ),
    ),
    "RayCronJob": (
        PolicyRule(("ray.io",), ("raycronjobs",), ("get", "list", "patch", "watch")),
        PolicyRule(("ray.io",), ("raycronjobs/status",), ("patch",)),
        PolicyRule(("ray.io",), ("raycronjobs/finalizers",), ("update",)),
        PolicyRule(("ray.io",), ("rayjobs",), ("create", "delete", "get", "list", "watch")),
    ),
    "RayClusterMTLS": (
        PolicyRule(
            ("cert-manager.io",), ("certificates", "issuers"), ("create", "get", "list", "patch", "watch")
        ),
        # The Secret of a certificate is made to belong to it.
        PolicyRule(("",), ("secrets",), ("get", "patch")),
    ),
}

#: In the operator's own namespace only, for leader election.
LEADER: Final[tuple[PolicyRule, ...]] = (
    PolicyRule(("coordination.k8s.io",), ("leases",), ("create", "get", "update")),
    # Who leads now is said in an event on the Lease.
    PolicyRule(("",), ("events",), ("create",)),
)


def cluster_role(
    name: str,
    plugin_rules: Iterable[tuple[str, PolicyRule]],
    gates: Gates | None = None,
    more: Iterable[PolicyRule] = (),
) -> dict[str, Any]:
    """The ClusterRole for the core, the gates that are on, these plugins' rules, and more."""
    on = (gates or Gates.default()).enabled
    gated = (rule for gate, rules in GATED.items() if on(gate) for rule in rules)
    return _role("ClusterRole", name, [*CORE, *gated, *(rule for _, rule in plugin_rules), *more])


def leader_role(name: str, namespace: str = "") -> dict[str, Any]:
    """The Role for leader election, in the namespace of the operator's Lease."""
    role = _role("Role", f"{name}-leader-election", LEADER)
    if namespace:
        role["metadata"]["namespace"] = namespace
    return role


def webhook_rules(configurations: Iterable[str]) -> tuple[PolicyRule, ...]:
    """What the webhook adds when it makes its own certificates: it tells these configurations so."""
    kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    names = tuple(configurations)
    return (PolicyRule(("admissionregistration.k8s.io",), kinds, ("get", "patch"), names),)


def webhook_role(name: str, secret: str, namespace: str = "") -> dict[str, Any]:
    """The Role for the Secret with the webhook's authority, in the operator's namespace."""
    rules = (
        # Who may create objects of a kind may under any name.
        PolicyRule(("",), ("secrets",), ("create",)),
        PolicyRule(("",), ("secrets",), ("get", "patch"), (secret,)),
    )
    role = _role("Role", f"{name}-webhook", rules)
    if namespace:
        role["metadata"]["namespace"] = namespace
    return role


def _role(kind: str, name: str, granted: Iterable[PolicyRule]) -> dict[str, Any]:
    """A role with these rules, one for each resource: two roles are compared at a glance."""
    merged: dict[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], set[str]] = {}
    for rule in granted:
        for group in rule.api_groups:
            for resource in rule.resources:
                key = ((group,), (resource,), rule.resource_names)
                merged.setdefault(key, set()).update(rule.verbs)
    rules = [
        PolicyRule(group, resource, tuple(sorted(verbs)), names).manifest()
        for (group, resource, names), verbs in sorted(merged.items())
    ]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "kuberay-operator"}},
        "rules": rules,
    }
