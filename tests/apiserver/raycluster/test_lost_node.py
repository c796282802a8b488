"""A node is lost: its Pods stay Terminating, and nothing else is held up by that.

The node is an object of which neither kwok nor a kubelet takes care, so a Pod on it goes only when somebody
says so: that is what the API server makes of a node that does not answer. The test plays the rest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kuberay_op.api import labels
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.kube.resource import PODS, Resource
from kuberay_op.testing import make

pytestmark = pytest.mark.apiserver

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)


@asynccontextmanager
async def lonely_node(story: Any) -> AsyncIterator[str]:
    name = f"lonely-{story.namespace}"[:60].rstrip("-")
    await story.client.create(NODES, {"metadata": {"name": name}}, reason="a test")
    try:
        yield name
    finally:
        await story.client.delete(NODES, name, None, reason="the test is over")


async def on_node(story: Any, node: str) -> list[str]:
    return [pod["metadata"]["name"] for pod in await story.pods() if pod["spec"].get("nodeName") == node]


async def test_pods_of_a_lost_node_hold_up_nothing_else(begin: Any, seed: int) -> None:
    async with begin(seed=seed) as story, lonely_node(story) as node:

        async def there(count: int) -> bool:
            return len(await on_node(story, node)) == count

        async def all_run() -> bool:
            for name in await on_node(story, node):
                await story.runs(name)
            return bool(await story.ready("a", 3))

        far = make.workers(2, group="far", template=make.pod_template("ray-worker", nodeName=node))
        await story.step(lambda: story.create("a", make.workers(1), far), lambda: there(2))
        await story.step(lambda: there(2), all_run)
        lost = await on_node(story, node)
        near = set(await story.names()) - set(lost)

        async def node_is_lost() -> None:
            """The node controller says so about each Pod, and evicts it; nobody is there to end it."""
            silent = {"type": "Ready", "status": "False", "reason": "NodeNotReady"}
            for name in lost:
                body = {"status": {"conditions": [silent]}}
                await story.client.patch(
                    PODS, name, story.namespace, body, subresource="status", reason="a test"
                )
                await story.delete(PODS, name)

        async def told() -> bool:
            cluster = await story.cluster("a")
            return bool(story.says(cluster, "Ready", "False", "PodTerminating"))

        await story.step(node_is_lost, told)
        assert set(await on_node(story, node)) == set(lost), "they keep their places until they are gone"

        async def grown() -> bool:
            names = [
                pod["metadata"]["name"]
                for pod in await story.pods(labels.WORKER)
                if pod["metadata"]["labels"][labels.GROUP] == "workers"
            ]
            return len(names) == 3

        await story.step(lambda: story.scale("a", 3), grown)
        assert near < set(await story.names()), "the others were left alone"
        head = (await story.names(labels.HEAD))[0]

        async def another_head() -> bool:
            names = await story.names(labels.HEAD)
            return len(names) == 1 and names != [head]

        await story.step(lambda: story.fail(head), another_head)

        async def node_is_given_up() -> None:
            for name in lost:
                await story.delete(PODS, name, grace=0)

        async def replaced() -> bool:
            for name in await on_node(story, node):
                await story.runs(name)
            return not set(lost) & set(await story.names()) and await story.ready("a", 5)

        await story.step(node_is_given_up, replaced)
        assert story.most["far"] == 2


async def test_a_cluster_on_a_lost_node_can_be_deleted(begin: Any, seed: int) -> None:
    async with begin(seed=seed) as story, lonely_node(story) as node:
        head = make.head(template=make.pod_template("ray-head", nodeName=node))

        async def up() -> bool:
            for name in await on_node(story, node):
                await story.runs(name)
            return bool(await story.ready("a", 1))

        await story.step(lambda: story.create("a", make.workers(1), head), up)
        (stuck,) = await on_node(story, node)
        await story.edit("a", {"metadata": {"finalizers": ["ray.io/nobody-claims-this"]}})

        async def gone() -> bool:
            return not await story.exists(RAY_CLUSTERS, "a") and await story.names() == [stuck]

        await story.step(lambda: story.delete(RAY_CLUSTERS, "a"), gone)
        await story.delete(PODS, stuck, grace=0)
