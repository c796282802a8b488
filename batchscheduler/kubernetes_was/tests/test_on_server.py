"""On a Kubernetes that has the API: the gang is made, made anew when it is resized, and goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.kube.resource import PODS, Resource
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.operator import eventually
from kuberay_op.testing.world import World, world_on

pytestmark = [pytest.mark.apiserver, pytest.mark.slow]

(MANIFEST,) = (Path(__file__).parent.parent / "src").glob("*/plugin.yaml")

WORKLOADS = Resource("scheduling.k8s.io", "v1alpha2", "workloads", "Workload")
POD_GROUPS = Resource("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup")
GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true"
NAMESPACE = "default"


async def sizes(world: World, name: str) -> tuple[int, int, int]:
    """Pods, and what the two objects say; 0 for one that is not there."""
    workload = await world.get(WORKLOADS, name) or {}
    group = await world.get(POD_GROUPS, f"{name}-cluster") or {}
    templates = workload.get("spec", {}).get("podGroupTemplates") or [{}]
    pods = (await world.operator.client.list(PODS, NAMESPACE, label_selector=f"ray.io/cluster={name}")).items
    counts = [
        part.get("schedulingPolicy", {}).get("gang", {}).get("minCount", 0)
        for part in (templates[0], group.get("spec", {}))
    ]
    return len(pods), counts[0], counts[1]


async def test_the_gang_follows_the_cluster(own_cluster: Callable[..., ControlPlane]) -> None:
    extra = {
        "kube-apiserver": [GATES, "--runtime-config=scheduling.k8s.io/v1alpha2=true"],
        "kube-controller-manager": [GATES],
        "kube-scheduler": [GATES],
    }
    plane = own_cluster(only=None, node="kwok:2", extra_args=extra)
    manifest = yaml.safe_load(MANIFEST.read_text())
    async with world_on(plane, NAMESPACE, {"kubernetes-was": manifest}, scheduler="kubernetes-was") as world:

        async def comes_to(*wanted: int) -> None:
            async def there() -> bool:
                return await sizes(world, "a") == wanted

            try:
                await eventually(there)
            except TimeoutError:
                raise AssertionError(await sizes(world, "a")) from None

        marks = make.labels({"ray.io/gang-scheduling-enabled": "true"})
        await world.create("a", marks, make.workers(2))
        await comes_to(3, 3, 3)
        pods: list[dict[str, Any]] = (await world.operator.client.list(PODS, NAMESPACE)).items
        assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods} == {"a-cluster"}

        async def running() -> bool:
            found = (await world.operator.client.list(PODS, NAMESPACE)).items
            return all(pod["status"].get("phase") == "Running" for pod in found)

        await eventually(running)  # the scheduler of Kubernetes has taken the gang
        group = {"groupName": "workers", "replicas": 4, "maxReplicas": 9, "rayStartParams": {}}
        wider = {**group, "template": make.pod_template("ray-worker")}
        await world.edit("a", {"spec": {"workerGroupSpecs": [wider]}})
        await comes_to(5, 5, 5)
        await world.delete(RAY_CLUSTERS, "a")
        await world.gone(RAY_CLUSTERS, "a")
        await comes_to(0, 0, 0)
