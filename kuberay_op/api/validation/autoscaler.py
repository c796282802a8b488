"""Rules 9 to 13 of a cluster spec: the autoscaler and suspended worker groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kuberay_op.api import env
from kuberay_op.api.podtemplate import restart_policy
from kuberay_op.api.predicates import autoscaler_v2, autoscaler_v2_by_env, autoscaling_enabled
from kuberay_op.api.problems import Path, show
from kuberay_op.api.validation.rules import Check, Finding, Findings, rule
from kuberay_op.api.validation.subjects import HEAD_CONTAINER_AT, ClusterSubject, env_at


@rule("raycluster.spec.9", "A suspended worker group needs the feature gate RayJobDeletionPolicy.")
def suspended_groups(cluster: ClusterSubject) -> Findings:
    """Only RayJobs suspend groups, and only with that gate."""
    if not cluster.gates("RayJobDeletionPolicy"):
        text = "needs the feature gate RayJobDeletionPolicy, which is off"
        yield from _suspended(cluster, text)


def _suspended(cluster: ClusterSubject, text: str) -> Findings:
    for index, group in enumerate(cluster.groups):
        if group.suspend:
            yield Finding(("workerGroupSpecs", index, "suspend"), text, True)


@rule("raycluster.spec.10", "The head container does not turn autoscaler v2 on while autoscaling is off.")
def v2_without_autoscaling(cluster: ClusterSubject) -> Findings:
    """The variable would have no effect, or a wrong one."""
    if not autoscaling_enabled(cluster.spec) and autoscaler_v2_by_env(cluster.spec):
        path = env_at(cluster.head_container, env.RAY_ENABLE_AUTOSCALER_V2, HEAD_CONTAINER_AT)
        text = f"{env.RAY_ENABLE_AUTOSCALER_V2} needs enableInTreeAutoscaling to be true"
        yield Finding(path or HEAD_CONTAINER_AT, text)


@rule("raycluster.spec.11.1", "No worker group is suspended while autoscaling is on.")
def suspended_with_autoscaling(cluster: ClusterSubject) -> Findings:
    """The autoscaler would bring the Pods back."""
    if autoscaling_enabled(cluster.spec):
        yield from _suspended(cluster, "must not be true while enableInTreeAutoscaling is true")


@rule(
    "raycluster.spec.11.2", "The autoscaler's version is chosen by the field or by the variable, not by both."
)
def version_twice(cluster: ClusterSubject) -> Findings:
    """Two places could contradict each other."""
    version = cluster.spec.autoscaler_options.version
    if autoscaling_enabled(cluster.spec) and version:
        path = env_at(cluster.head_container, env.RAY_ENABLE_AUTOSCALER_V2, HEAD_CONTAINER_AT)
        if path:
            text = f"{env.RAY_ENABLE_AUTOSCALER_V2} cannot stand beside autoscalerOptions.version; remove one"
            yield Finding(path, text)


def _restarts(template: Mapping[str, Any], at: Path) -> Findings:
    policy = restart_policy(template)
    if policy not in ("", "Never"):
        text = f"is {show(policy)}; autoscaler v2 needs Never (or nothing)"
        yield Finding((*at, "template", "spec", "restartPolicy"), text, policy)


@rule("raycluster.spec.11.3", "With autoscaler v2 the head Pod does not restart its containers.")
def v2_head_restart(cluster: ClusterSubject) -> Findings:
    """Autoscaler v2 replaces Pods and loses track of restarted ones."""
    if autoscaling_enabled(cluster.spec) and autoscaler_v2(cluster.spec):
        yield from _restarts(cluster.head.template, ("headGroupSpec",))


@rule("raycluster.spec.11.4", "With autoscaler v2 worker Pods do not restart their containers.")
def v2_worker_restart(cluster: ClusterSubject) -> Findings:
    """Autoscaler v2 replaces Pods and loses track of restarted ones."""
    if autoscaling_enabled(cluster.spec) and autoscaler_v2(cluster.spec):
        for index, group in enumerate(cluster.groups):
            yield from _restarts(group.template, ("workerGroupSpecs", index))


@rule("raycluster.spec.12", "autoscalerOptions.idleTimeoutSeconds is not negative.")
def idle_timeout(cluster: ClusterSubject) -> Findings:
    """It is a time to wait; looked at even while autoscaling is off."""
    seconds = cluster.spec.autoscaler_options.idle_timeout_seconds
    if seconds is not None and seconds < 0:
        text = f"is {show(seconds)}; must be 0 or more"
        yield Finding("autoscalerOptions.idleTimeoutSeconds", text, seconds)


@rule("raycluster.spec.13", "autoscalerOptions.env leaves KUBERAY_GEN_AUTOSCALER_START_CMD to the operator.")
def autoscaler_command(cluster: ClusterSubject) -> Findings:
    """The operator writes the variable itself."""
    options = cluster.spec.autoscaler_options
    path = env_at(options.raw, env.KUBERAY_GEN_AUTOSCALER_START_CMD, ("autoscalerOptions",))
    if path:
        yield Finding(path, f"{env.KUBERAY_GEN_AUTOSCALER_START_CMD} is set by the operator; remove it")


RULES: Final[tuple[Check[ClusterSubject], ...]] = (
    suspended_groups,
    v2_without_autoscaling,
    suspended_with_autoscaling,
    version_twice,
    v2_head_restart,
    v2_worker_restart,
    idle_timeout,
    autoscaler_command,
)
