"""Whole objects, to read and to see in a diff what a change changes. What is right is in the tables."""

from __future__ import annotations

import re
from typing import Any

from kuberay_op import __version__
from kuberay_op.api.view import Json
from kuberay_op.build.ingress import head_ingress
from kuberay_op.build.networkpolicy import network_policies
from kuberay_op.build.pod import head_pod, worker_pod
from kuberay_op.build.service import head_service, headless_service, serve_service
from kuberay_op.config import Config
from kuberay_op.testing import make
from kuberay_op.testing.golden import Golden
from tests.unit.build.shapes import cluster, gated

EVERYTHING = (
    make.autoscaling("v2"),
    make.redis(redisPassword={"valueFrom": {"secretKeyRef": {"name": "redis", "key": "password"}}}),
    make.cluster(
        authOptions={"mode": "token"},
        tlsOptions={"enabled": True},
        historyServerOptions={"collectorOptions": {"image": "collector:1"}},
        networkPolicy={"mode": "DenyAllIngress"},
    ),
    make.annotations({"ray.io/enable-serve-service": "true"}),
    make.workers(1, "gpu", numOfHosts=2, labels={"zone": "a"}),
)


def stable(built: Any) -> Any:
    """The version, and the hash that depends on nothing one would read, replaced."""
    if isinstance(built, dict):
        return {key: stable(value) for key, value in built.items()}
    if isinstance(built, list):
        return [stable(value) for value in built]
    if isinstance(built, str):
        return re.sub(r"^[0-9A-V]{32}$", "HASH", built.replace(f"kuberay-op-{__version__}", "VERSION"))
    return built


def test_a_plain_cluster(golden: Golden) -> None:
    found = cluster(make.workers(1, "small"))
    config = Config()
    objects: list[Json] = [
        head_pod(found, config),
        worker_pod(found, found.spec.worker_group_specs[0], config),
        head_service(found, config),
        head_ingress(found),
    ]
    golden.check("plain.yaml", stable(objects))


def test_everything_at_once(golden: Golden) -> None:
    found = cluster(*EVERYTHING)
    config = gated("RayClusterMTLS", "RayClusterHistoryServer", "RayClusterNetworkPolicy")
    objects = [
        head_pod(found, config),
        worker_pod(found, found.spec.worker_group_specs[0], config, replica_name="gpu-abcde", host_index=1),
        head_service(found, config),
        headless_service(found),
        serve_service(found),
        *network_policies(found),
    ]
    golden.check("everything.yaml", stable(objects))
