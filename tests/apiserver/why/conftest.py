"""A namespace with a cluster that something is wrong with, an operator, and somebody who asks why."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kuberay_op.api import labels
from kuberay_op.cli import cli
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.kube.client import Client
from kuberay_op.kube.resource import PODS, Resource
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.operator import eventually, running_operator

Json = dict[str, Any]
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)


@dataclass
class Place:
    """Where it happens."""

    plane: ControlPlane
    client: Client
    namespace: str
    #: Cluster-scoped objects to remove in the end.
    strays: list[tuple[Resource, str]] = field(default_factory=list)

    # --- asking

    async def why(self, *options: str, name: str = "a", kubeconfig: Path | None = None) -> Result:
        """What ``kuberay-op why raycluster`` prints."""
        file = str(kubeconfig or self.plane.kubeconfig)
        command = ["why", "raycluster", name, "-n", self.namespace, "--kubeconfig", file, *options]
        return await asyncio.to_thread(CliRunner().invoke, cli, command)

    async def until(self, words: str, *options: str, **more: Any) -> list[str]:
        """Ask until the first line of the answer has these words; gives all lines."""
        lines: list[str] = []

        async def told() -> bool:
            nonlocal lines
            result = await self.why(*options, **more)
            lines = result.output.splitlines() or [repr(result.exception)]
            return words in lines[0] and result.exit_code == 3

        try:
            await eventually(told, patience=30)
        except TimeoutError:
            raise AssertionError(f"{words!r} is not in the first line of:\n" + "\n".join(lines)) from None
        return lines

    async def answer(self, **more: Any) -> Json:
        """The same as JSON."""
        found: Json = json.loads((await self.why("-o", "json", **more)).stdout)
        return found

    # --- doing

    async def create(self, *parts: make.Part, name: str = "a") -> Json:
        """Make a RayCluster."""
        cluster = make.raycluster(name, make.namespace(self.namespace), *parts)
        return await self.client.create(RAY_CLUSTERS, cluster, reason="a test")

    async def put(self, resource: Resource, name: str, **fields: Any) -> Json:
        """Make any object here."""
        where = {"namespace": self.namespace} if resource.namespaced else {}
        body = {"metadata": {"name": name, **where, **fields.pop("metadata", {})}, **fields}
        if not resource.namespaced:
            self.strays.append((resource, name))
        return await self.client.create(resource, body, reason="a test")

    async def edit(self, patch: Json, resource: Resource = RAY_CLUSTERS, name: str = "a") -> Json:
        """Change an object."""
        return await self.client.patch(resource, name, self.namespace, patch, reason="a test")

    async def pod(self, role: str = labels.HEAD) -> Json:
        """A Pod of a role, when there is one."""

        async def found() -> Any:
            listed = await self.client.list(PODS, self.namespace, label_selector=f"{labels.NODE_TYPE}={role}")
            return listed.items

        pods: list[Json] = await eventually(found)
        return pods[0]

    # --- playing the kubelet

    async def by_hand(self) -> make.Part:
        """A part that puts the head on a node of which no kubelet and no kwok takes care: the test does."""
        node = f"by-hand-{self.namespace}"[:60]
        await self.put(NODES, node)

        def part(obj: Json) -> None:
            obj["spec"]["headGroupSpec"]["template"]["spec"]["nodeName"] = node

        return part

    async def report(self, **status: Any) -> str:
        """Say something about the head as its kubelet would; gives its name."""
        name: str = (await self.pod())["metadata"]["name"]
        body = {"status": status}
        await self.client.patch(PODS, name, self.namespace, body, subresource="status", reason="a test")
        return name

    async def container(self, state: Json, last: Json | None = None, phase: str = "Running") -> str:
        """Report the state of the head's Ray container."""
        entry = {
            "name": "ray-head",
            "image": make.IMAGE,
            "imageID": "",
            "ready": False,
            "restartCount": 3,
            "state": state,
            "lastState": last or {},
        }
        return await self.report(phase=phase, containerStatuses=[entry])


Begin = Callable[..., AbstractAsyncContextManager[Place]]


@pytest.fixture
def begin(kwok_cluster: ControlPlane, kwok_namespace: str) -> Begin:
    """``async with begin() as place``; with ``operator=False`` there is none. Options are the operator's."""
    install_crds(kwok_cluster, ["RayCluster"])

    @asynccontextmanager
    async def there(
        *, operator: bool = True, kubeconfig: Path | None = None, **options: Any
    ) -> AsyncIterator[Place]:
        async with await Client.connect(kwok_cluster.kubeconfig, qps=0) as client:
            place = Place(kwok_cluster, client, kwok_namespace)
            try:
                if operator:
                    file = kubeconfig or kwok_cluster.kubeconfig
                    async with running_operator(file, namespaces=[kwok_namespace], **options):
                        yield place
                else:
                    yield place
            finally:
                for resource, name in place.strays:
                    await client.delete(resource, name, None, reason="the test is over")

    return there
