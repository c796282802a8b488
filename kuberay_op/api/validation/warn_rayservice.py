"""Warnings about a service spec: what is allowed and will not do what it seems to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kuberay_op.api.predicates import INCREMENTAL, incremental_upgrade
from kuberay_op.api.problems import Problem
from kuberay_op.api.validation import warn_raycluster
from kuberay_op.api.validation.primitives import yaml_mapping_problem
from kuberay_op.api.validation.rules import Check, Finding, Findings, run, warning
from kuberay_op.api.validation.subjects import ServiceSubject


@warning("warning.incremental-gate", "NewClusterWithIncrementalUpgrade is used with its feature gate on.")
def incremental_gate(service: ServiceSubject) -> Findings:
    """The object is accepted, and upgrades silently stop."""
    asked = service.spec.upgrade_strategy.type == INCREMENTAL
    if asked and not service.gates("RayServiceIncrementalUpgrade"):
        text = f"{INCREMENTAL} turns upgrades off while the feature gate RayServiceIncrementalUpgrade is off"
        yield Finding("upgradeStrategy.type", text, INCREMENTAL)


@warning("warning.upgrade-options", "clusterUpgradeOptions are used with NewClusterWithIncrementalUpgrade.")
def upgrade_options(service: ServiceSubject) -> Findings:
    """No other type reads them."""
    strategy = service.spec.upgrade_strategy
    if strategy.cluster_upgrade_options and strategy.type != INCREMENTAL:
        text = f"have no effect unless upgradeStrategy.type is {INCREMENTAL}"
        yield Finding("upgradeStrategy.clusterUpgradeOptions", text)


@warning("warning.serve-service", "serveService is not used with incremental upgrades.")
def serve_service(service: ServiceSubject) -> Findings:
    """There each cluster has a Service of its own."""
    if incremental_upgrade(service.spec, service.gates) and service.spec.is_set("serve_service"):
        yield Finding("serveService", f"has no effect with {INCREMENTAL}")


@warning("warning.serve-config", "serveConfigV2 is YAML text with a mapping in it.")
def serve_config(service: ServiceSubject) -> Findings:
    """Ray will refuse anything else, long after the clusters are up."""
    text = service.spec.serve_config_v2
    if not text.strip():
        yield Finding("serveConfigV2", "is empty: there is nothing to serve")
    elif problem := yaml_mapping_problem(text):
        yield Finding("serveConfigV2", problem)


RULES: Final[tuple[Check[ServiceSubject], ...]] = (
    incremental_gate,
    upgrade_options,
    serve_service,
    serve_config,
)


def check(service: ServiceSubject) -> Iterator[Problem]:
    """All warnings about a service spec."""
    yield from run(RULES, service)
    yield from warn_raycluster.check_nested(service.cluster)
