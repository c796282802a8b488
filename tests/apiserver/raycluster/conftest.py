"""Stories about RayClusters: steps on a real API server with kwok nodes, the operator killed in between.

A step is something that happens and what must have come of it in the end. Whether the operator runs while it
happens, or is started anew before, during or after, is left to chance: a story must end the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from random import Random
from typing import Any

import pytest

from kuberay_op.api import labels
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.resource import EVENTS, PODS, Resource
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.operator import RunningOperator, eventually, running_operator

Json = dict[str, Any]


class Story:
    """A namespace, an operator that comes and goes, and what is told of both."""

    def __init__(
        self, client: Client, plane: ControlPlane, namespace: str, rng: Random, **options: Any
    ) -> None:
        self.client = client
        self.namespace = namespace
        self.rng = rng
        #: The most Pods that any cluster ever had in a group.
        self.most: dict[str, int] = {}
        self._plane = plane
        self._options = options
        self._running = AsyncExitStack()
        self.operator: RunningOperator | None = None
        self._pods: dict[str, Json] = {}

    # --- the operator

    async def start(self) -> None:
        """Let the operator run, if it does not."""
        if self.operator is None:
            self.operator = await self._running.enter_async_context(
                running_operator(self._plane.kubeconfig, namespaces=[self.namespace], **self._options)
            )

    async def stop(self) -> None:
        """Let the operator end, if it runs."""
        self.operator = None
        await self._running.aclose()

    async def step(self, happens: Callable[[], Awaitable[Any]], ends: Callable[[], Awaitable[Any]]) -> Any:
        """Let something happen and wait for what must come of it."""
        mode = self.rng.choice(("running", "down", "restarted"))
        if mode == "down":
            await self.stop()
        else:
            await self.start()
        await happens()
        if mode == "restarted":
            await asyncio.sleep(self.rng.random() / 5)
            await self.stop()
        await self.start()
        try:
            return await eventually(ends)
        except TimeoutError:
            found = (await self.client.list(RAY_CLUSTERS, self.namespace)).items
            statuses = {each["metadata"]["name"]: each.get("status") for each in found}
            raise AssertionError(f"{mode}: {statuses} {[_line(pod) for pod in await self.pods()]}") from None

    # --- doing

    async def create(self, name: str, *parts: make.Part) -> Json:
        """Make a RayCluster."""
        cluster = make.raycluster(name, make.namespace(self.namespace), *parts)
        return await self.client.create(RAY_CLUSTERS, cluster, reason="a test")

    async def edit(self, name: str, patch: Json) -> Json:
        """Change a RayCluster; lists are replaced."""
        return await self.client.patch(RAY_CLUSTERS, name, self.namespace, patch, reason="a test")

    async def scale(self, name: str, replicas: int, **more: Any) -> Json:
        """Change the size of the first worker group."""
        groups = (await self.cluster(name))["spec"]["workerGroupSpecs"]
        groups[0] |= {"replicas": replicas, **more}
        return await self.edit(name, {"spec": {"workerGroupSpecs": groups}})

    async def delete(self, resource: Resource, name: str, **options: Any) -> None:
        """Delete an object."""
        await self.client.delete(resource, name, self.namespace, reason="a test", **options)

    async def fail(self, pod: str) -> None:
        """Let a Pod end badly, as a kubelet would report it."""
        body = {"status": {"phase": "Failed", "reason": "Evicted"}}
        await self.client.patch(PODS, pod, self.namespace, body, subresource="status", reason="a test")

    async def runs(self, pod: str) -> None:
        """Say that a Pod runs, as the kubelet of its node would."""
        body = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        await self.client.patch(PODS, pod, self.namespace, body, subresource="status", reason="a test")

    async def hold(self, pod: str, *finalizers: str) -> None:
        """Keep a Pod from going, or (without finalizers) let it go."""
        body = {"metadata": {"finalizers": list(finalizers) or None}}
        await self.client.patch(PODS, pod, self.namespace, body, reason="a test")

    # --- looking

    async def cluster(self, name: str) -> Json:
        """A RayCluster as it is now."""
        return await self.client.get(RAY_CLUSTERS, name, self.namespace)

    async def pods(self, node_type: str = "") -> list[Json]:
        """All Ray Pods, or those of one role, the oldest first."""
        selector = f"{labels.NODE_TYPE}={node_type}" if node_type else None
        found = (await self.client.list(PODS, self.namespace, label_selector=selector)).items
        return sorted(found, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))

    async def names(self, node_type: str = "") -> list[str]:
        """Names of Ray Pods."""
        return [pod["metadata"]["name"] for pod in await self.pods(node_type)]

    async def ready(self, name: str, workers: int) -> bool:
        """Whether a cluster is up with so many workers, and says so about its present spec."""
        found = await self.cluster(name)
        status = found.get("status", {})
        return (
            len(await self.pods(labels.HEAD)) == 1
            and len(await self.pods(labels.WORKER)) == workers
            and status.get("state") == "ready"
            and status.get("observedGeneration") == found["metadata"]["generation"]
            and status.get("readyWorkerReplicas", 0) == workers
            and self.says(found, "Ready", "True")
        )

    def says(self, cluster: Json, condition: str, status: str, reason: str = "") -> bool:
        """Whether a cluster has a condition."""
        return any(
            each["type"] == condition and each["status"] == status and reason in ("", each["reason"])
            for each in cluster.get("status", {}).get("conditions", ())
        )

    async def said(self, reason: str) -> list[str]:
        """The notes of all events with a reason."""
        found = (await self.client.list(EVENTS, self.namespace)).items
        return [event["note"] for event in found if event["reason"] == reason]

    async def exists(self, resource: Resource, name: str) -> bool:
        """Whether there is such an object."""
        try:
            await self.client.get(resource, name, self.namespace)
        except NotFound:
            return False
        return True

    # --- what must hold all the time

    async def watch(self) -> None:
        """Follow the Pods for ever: never two heads, never more workers of a group than it may have."""
        listed = await self.client.list(PODS, self.namespace)
        async for event in self.client.watch(PODS, self.namespace, resource_version=listed.resource_version):
            metadata = event.object["metadata"]
            if event.type == "DELETED":
                self._pods.pop(metadata["uid"], None)
            else:
                self._pods[metadata["uid"]] = event.object
            counts: dict[tuple[str, str], int] = {}
            for pod in self._pods.values():
                marks = pod["metadata"].get("labels", {})
                place = marks.get(labels.CLUSTER, ""), marks.get(labels.GROUP, "")
                counts[place] = counts.get(place, 0) + 1
            for (_, group), count in counts.items():
                self.most[group] = max(count, self.most.get(group, 0))


def _line(pod: Json) -> str:
    going = " going" if "deletionTimestamp" in pod["metadata"] else ""
    return f"{pod['metadata']['name']} {pod['status'].get('phase')}{going}"


Begin = Callable[..., AbstractAsyncContextManager[Story]]


@pytest.fixture
def begin(kwok_cluster: ControlPlane, kwok_namespace: str) -> Begin:
    """Begins a story: ``async with begin(seed=1) as story``. Options are those of ``running_operator``."""
    install_crds(kwok_cluster, ["RayCluster"])

    @asynccontextmanager
    async def tell(*, seed: int = 1, **options: Any) -> AsyncIterator[Story]:
        async with await Client.connect(kwok_cluster.kubeconfig, qps=0) as client:
            rng = Random(seed)  # noqa: S311 (seeded on purpose)
            story = Story(client, kwok_cluster, kwok_namespace, rng, **options)
            watching = asyncio.create_task(story.watch())
            try:
                yield story
            finally:
                await story.stop()
                watching.cancel()
                ended = await asyncio.gather(watching, return_exceptions=True)
            assert isinstance(ended[0], asyncio.CancelledError), ended
            assert story.most.get(labels.HEAD_GROUP, 0) <= 1, "there were two heads"
        await asyncio.sleep(0.25)  # TLS connections take a moment to close

    return tell


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every story is told once in the normal run, and many times with other chances in the long one."""
    if "seed" in metafunc.fixturenames:
        often = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12)]
        metafunc.parametrize("seed", [1, *often])
