"""The rules of a RayService."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from kuberay_op.api import annotations as notes
from kuberay_op.api.durations import parse_duration
from kuberay_op.api.predicates import (
    INCREMENTAL,
    NEW_CLUSTER,
    NO_UPGRADE,
    autoscaling_enabled,
    incremental_upgrade,
    k8s_auth_enabled,
)
from kuberay_op.api.problems import Problem, one_of, show
from kuberay_op.api.validation.raycluster import cluster_spec
from kuberay_op.api.validation.rules import Check, Finding, Findings, rule, run
from kuberay_op.api.validation.subjects import ObjectSubject, ServiceSubject

UPGRADE_TYPES: Final = (NEW_CLUSTER, INCREMENTAL, NO_UPGRADE)

_SECONDS: Final = re.compile(r"\+?[0-9]{1,18}", re.ASCII)
_OPTIONS: Final = "upgradeStrategy.clusterUpgradeOptions"


def initializing_timeout(text: str) -> float:
    """Seconds in the annotation of that name: a Go duration, or a whole number of seconds.

    ValueError when it is neither or not positive.
    """
    seconds = float(text) if _SECONDS.fullmatch(text) else parse_duration(text) / 1e9
    if seconds <= 0:
        raise ValueError(f"{text!r} is not positive")
    return seconds


@rule("rayservice.metadata.3", f"The annotation {notes.INITIALIZING_TIMEOUT} is a positive time.")
def timeout_annotation(subject: ObjectSubject) -> Findings:
    """Empty means none."""
    text = subject.obj.metadata.annotations.get(notes.INITIALIZING_TIMEOUT, "")
    if text:
        try:
            initializing_timeout(text)
        except ValueError:
            help_ = "must be a positive time such as 5m, or a positive number of seconds"
            path = ("metadata", "annotations", notes.INITIALIZING_TIMEOUT)
            yield Finding(path, f"{show(text)} {help_}", text)


# --- the spec, in order


@rule("rayservice.spec.1", "Authentication by Kubernetes is for a RayCluster of its own only.")
def no_k8s_auth(service: ServiceSubject) -> Findings:
    """The operator talks to Serve and has no token that Kubernetes would accept."""
    if k8s_auth_enabled(service.spec.ray_cluster_config):
        text = "is not supported in a RayService; use mode token alone"
        yield Finding("rayClusterConfig.authOptions.enableK8sTokenAuth", text, True)


def cluster(service: ServiceSubject) -> Iterator[Problem]:
    """Rule 2: those of a cluster spec."""
    yield from cluster_spec(service.cluster)


@rule("rayservice.spec.3", "headService has no name: clusters come and go, and each needs its own Service.")
def head_service_name(service: ServiceSubject) -> Findings:
    """Two clusters exist during an upgrade."""
    metadata: Any = service.cluster.head.head_service.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if name:
        path = "rayClusterConfig.headGroupSpec.headService.metadata.name"
        text = (
            "cannot be set in a RayService: two clusters exist during an upgrade, each needs its own Service"
        )
        yield Finding(path, text, name)


@rule("rayservice.spec.4", f"upgradeStrategy.type is {one_of(UPGRADE_TYPES)}.")
def upgrade_type(service: ServiceSubject) -> Findings:
    """The schema does not say so."""
    strategy = service.spec.upgrade_strategy
    if strategy.is_set("type") and strategy.type not in UPGRADE_TYPES:
        text = f"is {show(strategy.type)}; must be {one_of(UPGRADE_TYPES)}"
        yield Finding("upgradeStrategy.type", text, strategy.type)


@rule("rayservice.spec.5", "rayClusterDeletionDelaySeconds is not negative.")
def deletion_delay(service: ServiceSubject) -> Findings:
    """It is a time to wait."""
    seconds = service.spec.ray_cluster_deletion_delay_seconds
    if seconds is not None and seconds < 0:
        yield Finding("rayClusterDeletionDelaySeconds", f"is {show(seconds)}; must be 0 or more", seconds)


# --- 6: incremental upgrades


@rule("rayservice.spec.6.1", "An incremental upgrade needs autoscaling.")
def upgrade_autoscaling(service: ServiceSubject) -> Findings:
    """The old cluster must shrink while the new one grows."""
    if not autoscaling_enabled(service.spec.ray_cluster_config):
        text = f"must be true for {INCREMENTAL}"
        yield Finding("rayClusterConfig.enableInTreeAutoscaling", text)


@rule("rayservice.spec.6.2", "An incremental upgrade needs clusterUpgradeOptions.")
def upgrade_options(service: ServiceSubject) -> Findings:
    """They say how fast."""
    if not service.spec.upgrade_strategy.cluster_upgrade_options:
        yield Finding(_OPTIONS, f"must be set for {INCREMENTAL}")


@rule("rayservice.spec.6.3", "maxSurgePercent is from 0 to 100.")
def max_surge(service: ServiceSubject) -> Findings:
    """It is a part of the capacity; unset means all of it."""
    percent = service.spec.upgrade_strategy.cluster_upgrade_options.max_surge_percent
    if percent is not None and not 0 <= percent <= 100:
        yield Finding(f"{_OPTIONS}.maxSurgePercent", f"is {show(percent)}; must be from 0 to 100", percent)


@rule("rayservice.spec.6.4", "stepSizePercent is from 0 to 100.")
def step_size(service: ServiceSubject) -> Findings:
    """It is a part of the traffic."""
    percent = service.spec.upgrade_strategy.cluster_upgrade_options.step_size_percent
    if percent is None or not 0 <= percent <= 100:
        yield Finding(f"{_OPTIONS}.stepSizePercent", f"is {show(percent)}; must be from 0 to 100", percent)


@rule("rayservice.spec.6.5", "stepSizePercent is not larger than maxSurgePercent.")
def step_within_surge(service: ServiceSubject) -> Findings:
    """Traffic cannot move faster than capacity."""
    options = service.spec.upgrade_strategy.cluster_upgrade_options
    surge = 100 if options.max_surge_percent is None else options.max_surge_percent
    step = options.step_size_percent
    if step is not None and 0 <= step <= 100 and 0 <= surge <= 100 and step > surge:
        text = f"is {step}; must not exceed maxSurgePercent, {surge}"
        yield Finding(f"{_OPTIONS}.stepSizePercent", text, step)


@rule("rayservice.spec.6.6", "intervalSeconds is positive.")
def interval(service: ServiceSubject) -> Findings:
    """It is the time between two steps."""
    seconds = service.spec.upgrade_strategy.cluster_upgrade_options.interval_seconds
    if seconds is None or seconds <= 0:
        yield Finding(f"{_OPTIONS}.intervalSeconds", f"is {show(seconds)}; must be 1 or more", seconds)


@rule("rayservice.spec.6.7", "gatewayClassName is set.")
def gateway_class(service: ServiceSubject) -> Findings:
    """Without it nobody routes the traffic."""
    if not service.spec.upgrade_strategy.cluster_upgrade_options.gateway_class_name:
        yield Finding(f"{_OPTIONS}.gatewayClassName", "must name a GatewayClass")


_OPTION_RULES: Final[tuple[Check[ServiceSubject], ...]] = (
    max_surge,
    step_size,
    step_within_surge,
    interval,
    gateway_class,
)


def incremental(service: ServiceSubject) -> Iterator[Problem]:
    """Rule 6: looked at only while incremental upgrades are on and asked for."""
    if incremental_upgrade(service.spec, service.gates):
        yield from run((upgrade_autoscaling, upgrade_options), service)
        if service.spec.upgrade_strategy.cluster_upgrade_options:
            yield from run(_OPTION_RULES, service)


SPEC_RULES: Final[tuple[Check[ServiceSubject], ...]] = (
    no_k8s_auth,
    cluster,
    head_service_name,
    upgrade_type,
    deletion_delay,
    incremental,
)


def service_spec(service: ServiceSubject) -> Iterator[Problem]:
    """Every mistake in the spec of a RayService."""
    yield from run(SPEC_RULES, service)
