"""The reflector against Kubernetes. Against a network that breaks: ``tests/apiserver/engine``."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from kuberay_op.clock import SystemClock
from kuberay_op.kube.client import Client
from kuberay_op.kube.reflector import Reflector
from kuberay_op.kube.resource import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, EVENTS, Key, Resource
from kuberay_op.kube.trim import Trim
from kuberay_op.testing.controlplane import ControlPlane, namespace_name
from tests.apiserver.kube.objects import compact, config_map, event, things, until

pytestmark = pytest.mark.apiserver


class Seen(list[tuple[str, str]]):
    """A handler that remembers what it was told."""

    def __call__(self, kind: str, old: Any, new: Any) -> None:
        self.append((kind, (new or old)["metadata"]["name"]))


@asynccontextmanager
async def running(reflector: Reflector) -> AsyncIterator[None]:
    task = asyncio.create_task(reflector.run())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def reflecting(
    client: Client, *namespaces: str, **options: Any
) -> AsyncIterator[tuple[Reflector, Seen]]:
    rng, seen = random.Random(1), Seen()  # noqa: S311 (seeded on purpose)
    reflector = Reflector(client, CONFIG_MAPS, clock=SystemClock(), rng=rng, namespaces=namespaces, **options)
    reflector.add_handler(seen)
    async with running(reflector):
        async with asyncio.timeout(60):
            await reflector.synced.wait()
        yield reflector, seen


async def same_as_server(client: Client, reflector: Reflector, namespace: str) -> bool:
    listed = await client.list(reflector.resource, namespace)
    for item in listed.items:
        item["metadata"].pop("managedFields", None)
    return {item["metadata"]["name"]: item for item in listed.items} == {
        obj["metadata"]["name"]: obj for obj in reflector.store.list(namespace)
    }


@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "paged"])
async def test_the_cache_is_what_the_server_has(streaming: bool, client: Client, namespace: str) -> None:
    for n in range(30):
        await client.create(CONFIG_MAPS, config_map(namespace, f"n{n}"), reason="test")
    async with reflecting(client, namespace, streaming=streaming, page=7) as (reflector, seen):
        assert len(seen) >= 30
        assert {kind for kind, _ in seen} == {"ADDED"}
        assert await same_as_server(client, reflector, namespace)
        assert reflector._streaming is streaming, "this server can stream lists"
        seen.clear()
        await client.create(CONFIG_MAPS, config_map(namespace, "new"), reason="test")
        await client.patch(CONFIG_MAPS, "n3", namespace, {"data": {"a": "2"}}, reason="test")
        await client.delete(CONFIG_MAPS, "n4", namespace, reason="test")
        await until(lambda: len(seen) == 3)
        assert seen == [("ADDED", "new"), ("MODIFIED", "n3"), ("DELETED", "n4")]
        assert await same_as_server(client, reflector, namespace)


async def test_what_leaves_the_selector_leaves_the_cache(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map(namespace, "a", x="y"), reason="test")
    await client.create(CONFIG_MAPS, config_map(namespace, "b", x="z"), reason="test")
    trim = Trim.only()
    async with reflecting(client, namespace, label_selector="x=y", trim=trim) as (reflector, seen):
        assert seen == [("ADDED", "a")]
        assert "data" not in reflector.store.list()[0]
        for name, value in (("a", "z"), ("b", "y")):
            patch = {"metadata": {"labels": {"x": value}}}
            await client.patch(CONFIG_MAPS, name, namespace, patch, reason="test")
        await until(lambda: len(seen) == 3)
        assert seen[1:] == [("DELETED", "a"), ("ADDED", "b")]


@contextmanager
def second_namespace(control_plane: ControlPlane) -> Iterator[str]:
    name = namespace_name("second")
    control_plane.create_namespace(name)
    yield name
    control_plane.delete_namespace(name)


async def test_several_namespaces_and_no_other(
    client: Client, namespace: str, control_plane: ControlPlane
) -> None:
    with second_namespace(control_plane) as second, second_namespace(control_plane) as third:
        async with reflecting(client, namespace, second) as (reflector, _):
            for where in (namespace, second, third):
                await client.create(CONFIG_MAPS, config_map(where, "a"), reason="test")
            await until(
                lambda: Key(namespace, "a") in reflector.store and Key(second, "a") in reflector.store
            )
            assert {key.namespace for key in reflector.store} == {namespace, second}


async def test_a_forgotten_version_is_made_up_for(
    client: Client, namespace: str, control_plane: ControlPlane
) -> None:
    """Of events the server keeps nothing in memory, so that what etcd forgets is gone."""
    rng, seen = random.Random(1), Seen()  # noqa: S311 (seeded on purpose)
    reflector = Reflector(client, EVENTS, clock=SystemClock(), rng=rng, namespaces=[namespace])
    reflector.add_handler(seen)
    for name in ("same", "deleted", "changed"):
        await client.create(EVENTS, event(namespace, name), reason="test")
    async with running(reflector):
        await until(reflector.synced.is_set)
    assert sorted(seen) == [("ADDED", "changed"), ("ADDED", "deleted"), ("ADDED", "same")]
    seen.clear()

    series = {"series": {"count": 2, "lastObservedTime": "2030-01-01T00:00:00.000000Z"}}
    await client.patch(EVENTS, "changed", namespace, series, reason="test")
    await client.delete(EVENTS, "deleted", namespace, reason="test")
    latest = await client.create(EVENTS, event(namespace, "added"), reason="test")
    await compact(control_plane, latest["metadata"]["resourceVersion"])

    async with running(reflector):  # from the version it had
        await until(lambda: len(seen) == 3)
        assert await same_as_server(client, reflector, namespace)
    assert sorted(seen) == [("ADDED", "added"), ("DELETED", "deleted"), ("MODIFIED", "changed")]


async def test_a_resource_that_comes_later_is_waited_for(client: Client, namespace: str) -> None:
    group = f"{namespace}.example.com"
    rng = random.Random(1)  # noqa: S311 (seeded on purpose)
    resource = Resource(group, "v1", "things", "Thing", namespaced=False)
    reflector = Reflector(client, resource, clock=SystemClock(), rng=rng)
    async with running(reflector):
        await until(lambda: reflector.errors >= 2)
        assert not reflector.synced.is_set()
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, things(group), reason="test")
        await until(reflector.synced.is_set)
    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, f"things.{group}", None, reason="test")
