"""A namespace with an operator on it, and the questions that tests of plugins ask.

::

    async with world_on(kwok_cluster, namespace, {"mine": Mine()}) as world:
        await world.create("a", make.workers(2))
        await world.has_head("a")
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from kuberay_op.api import labels as marks
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.resource import EVENTS, PODS, Resource
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.operator import RunningOperator, eventually, running_operator


@dataclass(frozen=True, slots=True)
class World:
    """A namespace with an operator on it."""

    operator: RunningOperator
    namespace: str

    async def create(self, name: str, *parts: make.Part) -> dict[str, Any]:
        """Make a RayCluster."""
        cluster = make.raycluster(name, make.namespace(self.namespace), *parts)
        return await self.operator.client.create(RAY_CLUSTERS, cluster, reason="a test")

    async def get(self, resource: Resource, name: str) -> dict[str, Any] | None:
        """An object, None when there is none."""
        try:
            return await self.operator.client.get(resource, name, self.namespace)
        except NotFound:
            return None

    async def cluster(self, name: str) -> dict[str, Any]:
        """A RayCluster as it is now."""
        return await self.operator.client.get(RAY_CLUSTERS, name, self.namespace)

    async def heads(self, name: str) -> list[dict[str, Any]]:
        """The head Pods of a cluster."""
        selector = f"{marks.CLUSTER}={name},{marks.NODE_TYPE}={marks.HEAD}"
        return (await self.operator.client.list(PODS, self.namespace, label_selector=selector)).items

    async def agreement(self, name: str) -> dict[str, Any]:
        """The condition PluginsAgree of a cluster; empty when it has none."""
        for condition in (await self.cluster(name)).get("status", {}).get("conditions", ()):
            if condition["type"] == "PluginsAgree":
                return dict(condition)
        return {}

    async def said(self, name: str, reason: str) -> list[str]:
        """The notes of the events with this reason about a cluster."""
        events = (await self.operator.client.list(EVENTS, self.namespace)).items
        return [
            event["note"]
            for event in events
            if event["regarding"]["name"] == name and event["reason"] == reason
        ]

    async def edit(self, name: str, patch: Mapping[str, Any]) -> None:
        """Change a RayCluster; lists are replaced."""
        await self.operator.client.patch(RAY_CLUSTERS, name, self.namespace, dict(patch), reason="a test")

    async def delete(self, resource: Resource, name: str) -> None:
        """Delete an object."""
        await self.operator.client.delete(resource, name, self.namespace, reason="a test")

    def counted(self, metric: str, **labels: str) -> float:
        """The value of a metric; 0 when there is none."""
        return self.operator.metrics.registry.get_sample_value(metric, labels) or 0.0

    async def has_head(self, *names: str) -> None:
        """Wait until each of the clusters has its head Pod."""
        for name in names:
            await eventually(partial(self.heads, name))

    async def objects(self, name: str, reason: str = "") -> dict[str, Any]:
        """Wait until a plugin objects to a cluster; gives the condition."""

        async def objection() -> dict[str, Any] | None:
            found = await self.agreement(name)
            objects = found.get("status") == "False" and reason in ("", found["reason"])
            return found if objects else None

        found: dict[str, Any] = await eventually(objection)
        return found

    async def agrees(self, name: str) -> None:
        """Wait until no plugin objects to a cluster any more."""

        async def agreed() -> bool:
            return (await self.agreement(name)).get("status") == "True"

        await eventually(agreed)

    async def gone(self, resource: Resource, name: str) -> None:
        """Wait until there is no such object."""

        async def missing() -> bool:
            return await self.get(resource, name) is None

        await eventually(missing)


@asynccontextmanager
async def world_on(
    plane: ControlPlane, namespace: str, plugins: Mapping[str, Any], **options: Any
) -> AsyncIterator[World]:
    """An operator with these plugins that sees this namespace only; takes what ``running_operator`` takes."""
    await asyncio.to_thread(install_crds, plane, ["RayCluster"])
    async with running_operator(
        plane.kubeconfig, namespaces=[namespace], plugins=plugins, **options
    ) as operator:
        yield World(operator, namespace)
