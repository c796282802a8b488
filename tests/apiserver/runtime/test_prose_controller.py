"""A controller written on the engine is short and reads like prose: this one copies ConfigMaps."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable

import pytest

from kuberay_op.frozen import FrozenDict
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.resource import CONFIG_MAPS, Key
from kuberay_op.runtime.expectations import View
from kuberay_op.runtime.manager import Manager
from kuberay_op.runtime.result import Result

pytestmark = pytest.mark.apiserver
Eventually = Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]


class Copier:
    """Keeps a copy of every ConfigMap that is labelled ``copy-to``, under the name the label gives."""

    def __init__(self, manager: Manager) -> None:
        self.client = manager.client
        self.maps = manager.cache(CONFIG_MAPS)
        self.copier = manager.controller("copier", CONFIG_MAPS, self.reconcile).owns(CONFIG_MAPS)

    async def reconcile(self, key: Key) -> Result:
        original = self.maps.get(key)
        if original is None:
            return Result.forget()
        if self.copier.expectations.check(key) is View.BEHIND:
            return Result.after(self.copier.expectations.limit)
        name = original["metadata"].get("labels", {}).get("copy-to")
        if name is None:
            return Result.done()
        copy = self.maps.get(Key(key.namespace, name))
        if copy is None:
            return await self.create(original, name)
        if copy["data"] != original["data"]:
            return await self.update(original, copy)
        return Result.done()

    async def create(self, original: FrozenDict, name: str) -> Result:
        source = original["metadata"]
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": source["name"], "uid": source["uid"]}
        metadata = {
            "name": name,
            "namespace": source["namespace"],
            "ownerReferences": [owner | {"controller": True}],
        }
        copy = await self.client.create(
            CONFIG_MAPS, {"metadata": metadata, "data": original["data"]}, reason="there is no copy"
        )
        self.copier.expectations.created(Key(source["namespace"], source["name"]), self.maps, copy)
        return Result.done().saying(created=name)

    async def update(self, original: FrozenDict, copy: FrozenDict) -> Result:
        source, name = original["metadata"], copy["metadata"]["name"]
        patch = {"data": original["data"]}
        copy_now = await self.client.patch(CONFIG_MAPS, name, source["namespace"], patch, reason="it differs")
        self.copier.expectations.changed(Key(source["namespace"], source["name"]), self.maps, copy_now)
        return Result.done().saying(updated=name)


def test_it_is_short() -> None:
    assert len(inspect.getsource(Copier).splitlines()) < 60


async def test_it_copies_repairs_and_follows(
    manager: Manager, client: Client, namespace: str, eventually: Eventually
) -> None:
    async def copy_says(value: str) -> bool:
        try:
            return bool((await client.get(CONFIG_MAPS, "b", namespace))["data"] == {"k": value})
        except NotFound:
            return False

    original = {"metadata": {"name": "a", "namespace": namespace, "labels": {"copy-to": "b"}}}
    copier = Copier(manager)
    async with asyncio.TaskGroup() as group:
        group.create_task(manager.run())
        await client.create(CONFIG_MAPS, original | {"data": {"k": "1"}}, reason="a test")
        await eventually(lambda: copy_says("1"))
        await client.patch(CONFIG_MAPS, "a", namespace, {"data": {"k": "2"}}, reason="an edit")
        await eventually(lambda: copy_says("2"))
        await client.patch(CONFIG_MAPS, "b", namespace, {"data": {"k": "wrong"}}, reason="an accident")
        await eventually(lambda: copy_says("2"))
        await client.delete(CONFIG_MAPS, "b", namespace, reason="another accident")
        await eventually(lambda: copy_says("2"))
        manager.stop.set()
    assert copier.copier.controller.last[Key(namespace, "a")].problem == ""
