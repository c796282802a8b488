"""Warnings about a cluster spec: what is allowed and will not do what it seems to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kuberay_op.api import annotations as notes
from kuberay_op.api.formats import dns1123_label_problem
from kuberay_op.api.labels import HEAD_GROUP
from kuberay_op.api.podtemplate import containers, ray_container, restart_policy
from kuberay_op.api.predicates import autoscaler_v1, autoscaling_enabled
from kuberay_op.api.problems import Path, Problem, one_of, show
from kuberay_op.api.replicas import max_replicas, min_replicas
from kuberay_op.api.validation.rules import Check, Finding, Findings, run, warning
from kuberay_op.api.validation.subjects import RAY_CONTAINER_AT, ClusterSubject, GroupSubject
from kuberay_op.quantity import Quantity

#: Where names are asked for.
DNS_PORT: Final = 53

_SERVICE_TYPES: Final = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")

# --- worker groups


@warning("warning.duplicate-group", "Worker group names are unique.")
def duplicate_groups(cluster: ClusterSubject) -> Findings:
    """Only the optional webhook refuses this."""
    seen: set[str] = set()
    for index, group in enumerate(cluster.groups):
        name = group.group_name
        if name in seen:
            text = f"{show(name)} is the name of another group, too: both will fight over the same Pods"
            yield Finding(("workerGroupSpecs", index, "groupName"), text, name)
        seen.add(name)


@warning("warning.group-name", "A worker group name can be part of a Pod's name.")
def group_name(subject: GroupSubject) -> Findings:
    """Names are made lower-case; anything else the API server refuses."""
    name = subject.group.group_name
    if name == HEAD_GROUP:
        yield Finding("groupName", f"{HEAD_GROUP} is the group of the head Pod; choose another name", name)
    elif problem := dns1123_label_problem(name.lower()):
        yield Finding("groupName", f"Pods cannot be made: {problem}", name)


@warning("warning.num-of-hosts", "numOfHosts is at least 1.")
def num_of_hosts(subject: GroupSubject) -> Findings:
    """Less counts as one."""
    hosts = subject.group.num_of_hosts
    if hosts is not None and hosts < 1:
        yield Finding("numOfHosts", f"is {show(hosts)}, which counts as 1", hosts)


@warning("warning.replicas-range", "replicas lies between minReplicas and maxReplicas.")
def replicas_range(subject: GroupSubject) -> Findings:
    """It is brought into the range, but the requested resources in the status are not."""
    group = subject.group
    low, high = min_replicas(group), max_replicas(group)
    if group.replicas is not None and low <= high and not low <= group.replicas <= high:
        count = low if group.replicas < low else high
        text = (
            f"is {show(group.replicas)}, outside of {show(low)} to {show(high)}; {show(count)} will be made"
        )
        yield Finding("replicas", text, group.replicas)


@warning("warning.group-suspend", "suspend of a worker group is left to RayJobs.")
def group_suspend(subject: GroupSubject) -> Findings:
    """It is how the policy DeleteWorkers works."""
    if subject.group.suspend:
        yield Finding("suspend", "deletes the Pods of the group; it is meant to be set by RayJobs only", True)


@warning("warning.v1-restart", "With autoscaler v1, workers have restartPolicy Never.")
def v1_restart(subject: GroupSubject) -> Findings:
    """A restarted worker is one the autoscaler believes lost."""
    policy = restart_policy(subject.group.template)
    spec = subject.cluster.spec
    if autoscaling_enabled(spec) and autoscaler_v1(spec) and policy not in ("", "Never"):
        text = f"is {show(policy)}; autoscaler v1 loses track of restarted workers, use Never"
        yield Finding("template.spec.restartPolicy", text, policy)


# --- the rest of the spec


@warning("warning.auth-mode", "authOptions has a mode.")
def auth_mode(cluster: ClusterSubject) -> Findings:
    """Without it the options do nothing, although a Secret appears."""
    options = cluster.spec.auth_options
    if options and not options.mode:
        yield Finding("authOptions.mode", "is not set, so authentication is off; set it to token")


@warning("warning.ft-annotation", "The annotation ray.io/ft-enabled is true, or absent.")
def ft_annotation(cluster: ClusterSubject) -> Findings:
    """Any other text turns nothing on."""
    value = cluster.annotations.get(notes.FT_ENABLED, "")
    if value and value.lower() != "true" and not cluster.spec.gcs_fault_tolerance_options:
        path = ("metadata", "annotations", notes.FT_ENABLED)
        yield Finding(
            path, f"is {show(value)}, which turns nothing on; use true or remove it", value, from_top=True
        )


@warning("warning.service-type", "serviceType is a type of Service.")
def service_type(cluster: ClusterSubject) -> Findings:
    """The schema does not say so; the API server will."""
    kind = cluster.head.service_type
    if kind and kind not in _SERVICE_TYPES:
        text = f"is {show(kind)}; the Service cannot be made, use {one_of(_SERVICE_TYPES)}"
        yield Finding("headGroupSpec.serviceType", text, kind)


def _templates(cluster: ClusterSubject) -> Iterator[tuple[Mapping[str, Any], Path]]:
    yield cluster.head.template, ("headGroupSpec", "template")
    for index, group in enumerate(cluster.groups):
        yield group.template, ("workerGroupSpecs", index, "template")


def _amounts(container: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    resources = container.get("resources")
    amounts = resources.get(kind) if isinstance(resources, Mapping) else None
    return amounts if isinstance(amounts, Mapping) else {}


@warning("warning.memory-limit", "A Ray container that requests memory also limits it.")
def memory_limit(cluster: ClusterSubject) -> Findings:
    """Ray is told the limit; without one it believes the whole node is its own."""
    for template, at in _templates(cluster):
        container = ray_container(template)
        if "memory" in _amounts(container, "requests") and "memory" not in _amounts(container, "limits"):
            path = (*at, *RAY_CONTAINER_AT, "resources", "limits")
            yield Finding(
                path, "has no memory, so Ray takes the memory of the whole node for its own; add one"
            )


@warning("warning.quantity", "Every resource amount is a quantity.")
def quantities(cluster: ClusterSubject) -> Findings:
    """The schema lets some through that no Pod may have, such as 1e1.5."""
    for template, at in _templates(cluster):
        for index, container in enumerate(containers(template)):
            for kind in ("requests", "limits"):
                for name, value in _amounts(container, kind).items():
                    if not _is_quantity(value):
                        path = (*at, "spec", "containers", index, "resources", kind, name)
                        yield Finding(path, f"{show(value)} is no quantity: Pods cannot be made", value)


def _is_quantity(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return True  # not a matter of its form; the schema layer has a word for it
    try:
        Quantity.parse(value)
    except ValueError:
        return False
    return True


# --- networks


@warning("warning.no-dns", "A networkPolicy that closes egress lets Pods ask for addresses (port 53).")
def no_dns(cluster: ClusterSubject) -> Findings:
    """Without, workers cannot find the head by its name and wait for ever."""
    policy = cluster.spec.network_policy
    if not policy or policy.mode == "DenyAllIngress":
        return
    text = "no egress rule allows port 53: these Pods cannot resolve names, not even the head's; add one"
    if not any(map(_opens_dns, policy.head.egress_rules)):
        yield Finding("networkPolicy.head.egressRules", text)
    special = {entry.group_name: index for index, entry in enumerate(policy.worker_groups)}
    if any(group.group_name not in special for group in cluster.groups) and not any(
        map(_opens_dns, policy.worker.egress_rules)
    ):
        yield Finding("networkPolicy.worker.egressRules", text)
    for index, entry in enumerate(policy.worker_groups):
        if not any(map(_opens_dns, entry.egress_rules)):
            yield Finding(("networkPolicy", "workerGroups", index, "egressRules"), text)


def _opens_dns(rule: Any) -> bool:
    """Whether a rule is for all ports, or for one that looks like DNS: 53, a range with it, or a name."""
    ports = rule.get("ports") if isinstance(rule, Mapping) else None
    if not ports or not isinstance(ports, list):
        return True
    return any(_is_dns(port) for port in ports if isinstance(port, Mapping))


def _is_dns(port: Mapping[str, Any]) -> bool:
    first = port.get("port")
    if not isinstance(first, int):
        return first is None or "dns" in str(first)
    last = port.get("endPort")
    return first <= DNS_PORT <= (last if isinstance(last, int) else first)


GROUP_RULES: Final[tuple[Check[GroupSubject], ...]] = (
    group_name,
    num_of_hosts,
    replicas_range,
    group_suspend,
    v1_restart,
)
RULES: Final[tuple[Check[ClusterSubject], ...]] = (
    duplicate_groups,
    auth_mode,
    ft_annotation,
    service_type,
    memory_limit,
    quantities,
    no_dns,
)


def check(cluster: ClusterSubject) -> Iterator[Problem]:
    """All warnings about a cluster spec."""
    yield from run(RULES, cluster)
    for subject in cluster.group_subjects():
        yield from run(GROUP_RULES, subject)


# --- inside other kinds


@warning(
    "warning.nested-upgrade", "A cluster spec inside a RayJob or RayService has no upgradeStrategy.type."
)
def nested_upgrade(cluster: ClusterSubject) -> Findings:
    """The object is accepted, its RayCluster is not, and nothing ever starts."""
    strategy = cluster.spec.upgrade_strategy
    if strategy.is_set("type"):
        text = "cannot be set here: the RayCluster made from it will be refused and get no Pods; remove it"
        yield Finding("upgradeStrategy.type", text, strategy.type)


def check_nested(cluster: ClusterSubject) -> Iterator[Problem]:
    """All warnings about a cluster spec that is part of another kind."""
    yield from nested_upgrade(cluster)
    yield from check(cluster)
