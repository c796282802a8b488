"""Many clusters live through different things at the same time, in an order that chance decides.

Nobody waits for a step to come to an end before the next one happens, to this cluster or another; the
operator is ended and started anew in between, and makes its passes one at a time or many at once. All that is
asked for is that every cluster ends as its spec says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from kuberay_op.api import labels
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.kube.errors import Conflict, NotFound
from kuberay_op.kube.resource import PODS, SERVICES
from kuberay_op.testing import make
from kuberay_op.testing.operator import eventually

pytestmark = pytest.mark.apiserver

Step = Callable[[], Awaitable[Any]]
RECREATE = make.spec(upgradeStrategy={"type": "Recreate"})
INVALID = {"rayStartParams": {"num-cpus": "1"}, "resources": {"CPU": "1"}}


class Chronicle:
    """What will happen to each cluster, in this order, and how many workers it has in the end."""

    def __init__(self, story: Any) -> None:
        self.story = story
        self.steps: dict[str, list[Step]] = {}
        #: None for a cluster that is deleted, -1 for one that ends suspended.
        self.ends: dict[str, int | None] = {}

    def add(self, name: str, workers: int | None, parts: list[make.Part], *steps: Step) -> None:
        self.steps[name] = [lambda: self.story.create(name, *parts), *steps]
        self.ends[name] = workers

    # --- steps

    def scale(self, name: str, replicas: int) -> Step:
        return lambda: self.story.scale(name, replicas)

    def edit(self, name: str, **spec: Any) -> Step:
        return lambda: self.story.edit(name, {"spec": spec})

    def lose(self, name: str, role: str, *, fails: bool = False) -> Step:
        async def lost() -> None:
            selector = f"{labels.CLUSTER}={name},{labels.NODE_TYPE}={role}"
            found = (await self.story.client.list(PODS, self.story.namespace, label_selector=selector)).items
            for pod in found[:1]:
                with suppress(NotFound, Conflict):  # perhaps it is just going anyway
                    if fails:
                        await self.story.fail(pod["metadata"]["name"])
                    else:
                        await self.story.delete(PODS, pod["metadata"]["name"])

        return lost

    def lose_service(self, name: str) -> Step:
        async def lost() -> None:
            with suppress(NotFound):
                await self.story.delete(SERVICES, f"{name}-head-svc")

        return lost

    def delete(self, name: str) -> Step:
        return lambda: self.story.delete(RAY_CLUSTERS, name)

    # --- telling

    async def happen(self) -> None:
        rng = self.story.rng
        while self.steps:
            name = rng.choice(sorted(self.steps))
            await self.steps[name].pop(0)()
            if not self.steps[name]:
                del self.steps[name]
            match rng.choice(("go on", "go on", "wait", "stop", "start")):
                case "wait":
                    await asyncio.sleep(rng.random() / 3)
                case "stop":
                    await self.story.stop()
                case "start":
                    await self.story.start()
        await self.story.start()

    async def not_yet(self) -> list[str]:
        """The clusters that are not as they should be."""
        pods = await self.story.pods()
        clusters = {each["metadata"]["name"]: each for each in await self._clusters()}
        return [
            name
            for name, workers in self.ends.items()
            if not self._as_told(clusters.get(name), workers, pods, name)
        ]

    async def _clusters(self) -> list[Any]:
        found: list[Any] = (await self.story.client.list(RAY_CLUSTERS, self.story.namespace)).items
        return found

    def _as_told(self, cluster: Any, workers: int | None, pods: list[Any], name: str) -> bool:
        own = [pod for pod in pods if pod["metadata"]["labels"][labels.CLUSTER] == name]
        if workers is None:
            return cluster is None and not own
        if cluster is None:
            return False
        if workers < 0:
            return not own and self.story.says(cluster, "RayClusterSuspended", "True")
        roles = [pod["metadata"]["labels"][labels.NODE_TYPE] for pod in own]
        return (
            roles.count(labels.HEAD) == 1
            and roles.count(labels.WORKER) == workers
            and bool(self.story.says(cluster, "Ready", "True"))
            and cluster["status"]["observedGeneration"] == cluster["metadata"]["generation"]
        )


async def test_every_cluster_ends_as_its_spec_says(begin: Any, seed: int) -> None:
    async with begin(seed=seed, concurrency=seed % 3 * 4 + 1) as story:
        tale = Chronicle(story)
        two, hosts = [make.workers(2)], [make.workers(1, numOfHosts=2)]
        tale.add("scales", 1, two, tale.scale("scales", 5), tale.scale("scales", 0), tale.scale("scales", 1))
        rest, back = tale.edit("rests", suspend=True), tale.edit("rests", suspend=False)
        tale.add("rests", 2, two, rest, back, tale.lose("rests", labels.HEAD))
        tale.add("sleeps", -1, two, tale.scale("sleeps", 3), tale.edit("sleeps", suspend=True))
        newer = [tale.edit("changes", rayVersion=f"2.5{minor}.0") for minor in (3, 4)]
        tale.add("changes", 2, [*two, RECREATE], *newer)
        fails = tale.lose("suffers", labels.HEAD, fails=True)
        tale.add("suffers", 2, two, tale.lose("suffers", labels.WORKER), fails, tale.lose_service("suffers"))
        tale.add("hosts", 4, hosts, tale.lose("hosts", labels.WORKER), tale.scale("hosts", 2))
        broken = tale.edit("errs", headGroupSpec=INVALID)
        mended = tale.edit("errs", headGroupSpec={"rayStartParams": {"num-cpus": None}, "resources": None})
        tale.add("errs", 2, two, broken, tale.scale("errs", 2), mended)
        wrong = tale.edit("goes", headGroupSpec=INVALID)
        tale.add("goes", None, two, wrong, tale.lose("goes", labels.WORKER), tale.delete("goes"))
        await tale.happen()

        async def all_well() -> bool:
            return not await tale.not_yet()

        try:
            await eventually(all_well)
        except TimeoutError:
            raise AssertionError(f"seed {seed}: {await tale.not_yet()} are not as they should be") from None
        assert story.most["workers"] <= 5
