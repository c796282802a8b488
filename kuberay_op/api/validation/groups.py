"""Rules 1 to 4 of a cluster spec: the head, then each worker group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kuberay_op.api.formats import label_value_problem, qualified_name_problem
from kuberay_op.api.podtemplate import containers
from kuberay_op.api.predicates import autoscaler_v2, autoscaler_v2_by_env, autoscaling_enabled
from kuberay_op.api.problems import Path, Problem, show
from kuberay_op.api.raycluster import RayClusterSpec
from kuberay_op.api.validation.primitives import version_problem
from kuberay_op.api.validation.rules import Check, Finding, Findings, rule, run
from kuberay_op.api.validation.subjects import ClusterSubject, GroupSubject
from kuberay_op.api.versions import Version

#: First Ray version with worker group priorities.
PRIORITY_SINCE: Final[Version] = (2, 56)

_RESOURCE_FLAGS: Final = ("num-cpus", "num-gpus", "memory", "resources")
_NO_CONTAINER: Final = "needs a container; the first one runs Ray"

# --- head and worker groups alike


def _resources_twice(params: Mapping[str, str], resources: Mapping[str, str]) -> Findings:
    flags = [flag for flag in _RESOURCE_FLAGS if params.get(flag)]
    if flags and resources:
        text = f"cannot stand beside rayStartParams {', '.join(flags)}; use only one of the two"
        yield Finding("resources", text, dict(resources))


def _labels_flag(params: Mapping[str, str]) -> Findings:
    if "labels" in params:
        text = "is not allowed; set labels beside rayStartParams instead"
        yield Finding("rayStartParams.labels", text, params["labels"])


def _label_forms(labels: Mapping[str, str]) -> Findings:
    for key, value in labels.items():
        if problem := qualified_name_problem(key):
            yield Finding(("labels", key), f"the key {problem}", key)
        if problem := label_value_problem(value):
            yield Finding(("labels", key), f"the value {problem}", value)


def _in_head(findings: Findings) -> Findings:
    for found in findings:
        below: Path = tuple(found.path.split(".")) if isinstance(found.path, str) else found.path
        yield found._replace(path=("headGroupSpec", *below))


# --- 1 to 3: the head


@rule("raycluster.spec.1", "The head template has a container.")
def head_container(cluster: ClusterSubject) -> Findings:
    """The first container runs Ray; without one there is nothing to run."""
    if not containers(cluster.head.template):
        yield Finding("headGroupSpec.template.spec.containers", _NO_CONTAINER)


@rule("raycluster.spec.2", "The head names its resources in rayStartParams or in resources, not in both.")
def head_resources(cluster: ClusterSubject) -> Findings:
    """Two places could contradict each other."""
    yield from _in_head(_resources_twice(cluster.head.ray_start_params, cluster.head.resources))


@rule("raycluster.spec.3.1", "The head has no labels in rayStartParams; they have a field of their own.")
def head_labels_flag(cluster: ClusterSubject) -> Findings:
    """The operator writes that flag itself."""
    yield from _in_head(_labels_flag(cluster.head.ray_start_params))


@rule("raycluster.spec.3.2", "Every label of the head is one that Kubernetes accepts.")
def head_labels(cluster: ClusterSubject) -> Findings:
    """The labels are put on the Pod, too."""
    yield from _in_head(_label_forms(cluster.head.labels))


# --- 4: each worker group


@rule("raycluster.spec.4.1", "The template of every worker group has a container.")
def group_container(subject: GroupSubject) -> Findings:
    """The first container runs Ray; without one there is nothing to run."""
    if not containers(subject.group.template):
        yield Finding("template.spec.containers", _NO_CONTAINER)


@rule("raycluster.spec.4.2", "Without autoscaling every worker group has minReplicas and maxReplicas.")
def group_limits(subject: GroupSubject) -> Findings:
    """The API server fills them in; an object from elsewhere may lack them."""
    if not autoscaling_enabled(subject.cluster.spec):
        for field in ("minReplicas", "maxReplicas"):
            if subject.group.raw.get(field) is None:
                yield Finding(field, "must be set while enableInTreeAutoscaling is not true")


@rule("raycluster.spec.4.3", "minReplicas is not negative.")
def group_min(subject: GroupSubject) -> Findings:
    """A group cannot have fewer than no Pods."""
    if (count := subject.group.min_replicas) is not None and count < 0:
        yield Finding("minReplicas", f"is {show(count)}; must be 0 or more", count)


@rule("raycluster.spec.4.4", "maxReplicas is not negative.")
def group_max(subject: GroupSubject) -> Findings:
    """A group cannot have fewer than no Pods."""
    if (count := subject.group.max_replicas) is not None and count < 0:
        yield Finding("maxReplicas", f"is {show(count)}; must be 0 or more", count)


@rule("raycluster.spec.4.5", "minReplicas is not larger than maxReplicas.")
def group_range(subject: GroupSubject) -> Findings:
    """No count could satisfy both."""
    low, high = subject.group.min_replicas, subject.group.max_replicas
    if low is not None and high is not None and low > high:
        yield Finding("minReplicas", f"is {show(low)}; must not exceed maxReplicas, {show(high)}", low)


@rule(
    "raycluster.spec.4.6",
    "A worker group names its resources in rayStartParams or in resources, not in both.",
)
def group_resources(subject: GroupSubject) -> Findings:
    """Two places could contradict each other."""
    yield from _resources_twice(subject.group.ray_start_params, subject.group.resources)


@rule(
    "raycluster.spec.4.7.1", "A worker group has no labels in rayStartParams; they have a field of their own."
)
def group_labels_flag(subject: GroupSubject) -> Findings:
    """The operator writes that flag itself."""
    yield from _labels_flag(subject.group.ray_start_params)


@rule("raycluster.spec.4.7.2", "Every label of a worker group is one that Kubernetes accepts.")
def group_labels(subject: GroupSubject) -> Findings:
    """The labels are put on the Pods, too."""
    yield from _label_forms(subject.group.labels)


def _asks_for_v2(spec: RayClusterSpec) -> bool:
    return autoscaler_v2(spec) or autoscaler_v2_by_env(spec)


_NEEDS_V2: Final = "needs autoscaler v2; set autoscalerOptions.version to v2"


@rule("raycluster.spec.4.8.1", "idleTimeoutSeconds of a worker group is not negative.")
def group_idle_timeout(subject: GroupSubject) -> Findings:
    """It is a time to wait."""
    if (seconds := subject.group.idle_timeout_seconds) is not None and seconds < 0:
        yield Finding("idleTimeoutSeconds", f"is {show(seconds)}; must be 0 or more", seconds)


@rule("raycluster.spec.4.8.2", "idleTimeoutSeconds of a worker group needs autoscaler v2.")
def group_idle_timeout_v2(subject: GroupSubject) -> Findings:
    """Autoscaler v1 knows one timeout for all groups."""
    seconds = subject.group.idle_timeout_seconds
    if seconds is not None and not _asks_for_v2(subject.cluster.spec):
        yield Finding("idleTimeoutSeconds", _NEEDS_V2, seconds)


@rule("raycluster.spec.4.9.1", "priority of a worker group needs Ray 2.56.0 or later, named in rayVersion.")
def group_priority_version(subject: GroupSubject) -> Findings:
    """Earlier versions do not know it."""
    if subject.group.priority:
        text = version_problem(subject.cluster.spec.ray_version, PRIORITY_SINCE)
        if text:
            yield Finding("priority", f"needs Ray 2.56.0 or later; {text}", subject.group.priority)


@rule("raycluster.spec.4.9.2", "priority of a worker group needs autoscaler v2.")
def group_priority_v2(subject: GroupSubject) -> Findings:
    """Autoscaler v1 does not know it."""
    if subject.group.priority and not _asks_for_v2(subject.cluster.spec):
        yield Finding("priority", _NEEDS_V2, subject.group.priority)


GROUP_RULES: Final[tuple[Check[GroupSubject], ...]] = (
    group_container,
    group_limits,
    group_min,
    group_max,
    group_range,
    group_resources,
    group_labels_flag,
    group_labels,
    group_idle_timeout,
    group_idle_timeout_v2,
    group_priority_version,
    group_priority_v2,
)


def each_group(cluster: ClusterSubject) -> Iterator[Problem]:
    """The rules for worker groups, group by group."""
    for subject in cluster.group_subjects():
        yield from run(GROUP_RULES, subject)


RULES: Final[tuple[Check[ClusterSubject], ...]] = (
    head_container,
    head_resources,
    head_labels_flag,
    head_labels,
    each_group,
)
