"""The control plane goes away and comes back; the operator is at work again without having been restarted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from kuberay_op.api.crds import crd
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import AlreadyExists, ApiError, NotFound
from kuberay_op.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, PODS
from kuberay_op.testing import make

pytestmark = [
    pytest.mark.apiserver,
    # The operator is a process of its own; this loop only drives it, and starts clusters on the way.
    pytest.mark.loop_guard(milliseconds=10_000),
]
Eventually = Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]

LONG = [pytest.mark.slow, pytest.mark.timeout(600)]

#: What the project promises: seconds until the operator works again after the control plane is back.
PROMISED = 10.0


class Watched:
    """An operator that looks after one namespace, and what it has done there."""

    def __init__(self, client: Client, namespace: str, process: Any) -> None:
        self.client = client
        self.namespace = namespace
        self.process = process

    async def add_cluster(self, name: str) -> None:
        """Create a RayCluster as soon as the API server lets us."""
        cluster = make.raycluster(name, make.namespace(self.namespace))
        async with asyncio.timeout(90):
            while True:
                try:
                    await self.client.create(RAY_CLUSTERS, cluster, reason="a test", deadline=2.0)
                    return
                except AlreadyExists:
                    return  # an attempt whose answer got lost
                except ApiError:
                    await asyncio.sleep(0.2)

    async def has_head(self, name: str) -> bool:
        try:
            found = await self.client.list(PODS, self.namespace, label_selector=f"ray.io/cluster={name}")
        except ApiError:
            return False
        return len(found.items) == 1


@pytest.mark.parametrize("seconds", [5.0, pytest.param(30.0, marks=LONG)])
async def test_operators_survive_outages_of_the_api_server_and_of_etcd(
    own_cluster: Any, eventually: Eventually, start_operator: Any, seconds: float
) -> None:
    plane = await asyncio.to_thread(own_cluster)
    now = asyncio.get_running_loop().time
    async with await Client.connect(plane.kubeconfig, qps=0) as client:
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd("RayCluster"), reason="a test")

        async def served() -> bool:
            try:
                await client.list(RAY_CLUSTERS)
            except NotFound:
                return False
            return True

        await eventually(served)
        operators = []
        for namespace, election in (("elected", "true"), ("alone", "false")):
            await asyncio.to_thread(plane.create_namespace, namespace)
            process = await start_operator(
                f"--kubeconfig={plane.kubeconfig}",
                f"--watch-namespace={namespace}",
                f"--enable-leader-election={election}",
                f"--leader-election-namespace={namespace}",
                "--metrics-addr=0",
                "--health-probe-bind-address=0",
            )
            operators.append(Watched(client, namespace, process))
        for each in operators:
            await each.add_cluster("before")
            await eventually(partial(each.has_head, "before"))

        for component in ("kube-apiserver", "etcd"):
            await asyncio.to_thread(plane.cluster.kill, component)
            await asyncio.sleep(seconds)
            await asyncio.to_thread(plane.cluster.start, component)
            for each in operators:
                await each.add_cluster(f"after-{component}")
            # It is back when it takes writes again: an API server needs a while to find its etcd.
            back = now()
            for each in operators:
                await eventually(partial(each.has_head, f"after-{component}"))
                took = now() - back
                print(f"{each.namespace}: at work again {took:.1f} s after {component}")  # noqa: T201 (measured)
                if seconds >= 30:
                    assert took < PROMISED

        for each in operators:
            assert await each.has_head("before"), "no second head is made for a cluster that has one"
            assert each.process.process.returncode is None, "it was never restarted"
            assert await each.process.end() == 0
