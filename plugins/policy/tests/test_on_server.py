"""The rules in an operator on a real API server: denied, mended, and free again after an edit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kuberay_op.api import labels
from kuberay_op.kube.resource import PODS
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.operator import eventually
from kuberay_op.testing.world import world_on

pytestmark = pytest.mark.apiserver

(MANIFEST,) = (Path(__file__).parent.parent / "src").glob("*/plugin.yaml")

RULES: dict[str, Any] = {
    "requiredLabels": ["team"],
    "maxReplicas": 2,
    "replicas": "fix",
    "tolerations": [{"key": "ray", "operator": "Exists"}],
}


async def test_rules_are_kept(kwok_cluster: ControlPlane, kwok_namespace: str) -> None:
    manifest = yaml.safe_load(MANIFEST.read_text())
    async with world_on(
        kwok_cluster, kwok_namespace, {"policy": manifest}, options={"policy": RULES}
    ) as world:
        await world.create("a", make.workers(5))
        denied = await world.objects("a", "PluginRefuses")
        assert 'labels that are required here are missing: ["team"]' in denied["message"]
        assert await world.heads("a") == []

        await world.edit("a", {"metadata": {"labels": {"team": "ml"}}})
        await world.agrees("a")

        async def workers() -> list[dict[str, Any]]:
            selector = f"{labels.CLUSTER}=a,{labels.NODE_TYPE}={labels.WORKER}"
            listed = await world.operator.client.list(PODS, kwok_namespace, label_selector=selector)
            return listed.items

        async def two() -> bool:
            return len(await workers()) == 2

        await eventually(two)
        for pod in await workers():
            assert {"key": "ray", "operator": "Exists"} in pod["spec"]["tolerations"]
        spec = (await world.cluster("a"))["spec"]
        assert spec["workerGroupSpecs"][0]["replicas"] == 5, "the object itself is the user's"
