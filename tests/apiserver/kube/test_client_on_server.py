"""The client against Kubernetes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from kuberay_op.clock import SystemClock
from kuberay_op.kube import errors
from kuberay_op.kube.client import Client, ListResult, PatchKind
from kuberay_op.kube.discovery import Discovery
from kuberay_op.kube.resource import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, EVENTS, PODS, SECRETS, Resource
from kuberay_op.testing.controlplane import ControlPlane
from tests.apiserver.kube.objects import compact, config_map, event, things

pytestmark = pytest.mark.apiserver

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "c", "image": "pause"}]},
}


async def test_an_object_from_create_to_delete(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map(namespace, "a"), reason="test")
    assert (await client.get(CONFIG_MAPS, "a", namespace))["data"] == {"a": "1"}
    patched = await client.patch(CONFIG_MAPS, "a", namespace, {"data": {"a": None, "b": "2"}}, reason="test")
    assert patched["data"] == {"b": "2"}
    operations = [
        {"op": "test", "path": "/data/b", "value": "2"},
        {"op": "add", "path": "/data/c", "value": "3"},
    ]
    patched = await client.patch(CONFIG_MAPS, "a", namespace, operations, kind=PatchKind.JSON, reason="test")
    assert patched["data"] == {"b": "2", "c": "3"}
    replaced = await client.replace(CONFIG_MAPS, patched | {"data": {"d": "4"}}, reason="test")
    assert replaced["data"] == {"d": "4"}
    await client.delete(CONFIG_MAPS, "a", namespace, uid=made["metadata"]["uid"], reason="test")
    with pytest.raises(errors.NotFound):
        await client.get(CONFIG_MAPS, "a", namespace)


async def test_the_server_says_no(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map(namespace, "a"), reason="test")
    with pytest.raises(errors.AlreadyExists):
        await client.create(CONFIG_MAPS, config_map(namespace, "a"), reason="test")
    with pytest.raises(errors.Conflict):
        await client.delete(CONFIG_MAPS, "a", namespace, uid="another", reason="test")
    with pytest.raises(errors.Conflict):
        await client.delete(CONFIG_MAPS, "a", namespace, resource_version="1", reason="test")
    stale = {"metadata": {"resourceVersion": "1"}, "data": {"a": "2"}}
    with pytest.raises(errors.Conflict):
        await client.patch(CONFIG_MAPS, "a", namespace, stale, reason="test")
    with pytest.raises(errors.Conflict):
        await client.replace(
            CONFIG_MAPS, {**made, "metadata": {**made["metadata"], **stale["metadata"]}}, reason="x"
        )
    with pytest.raises(errors.InvalidObject, match=r"metadata\.name"):
        await client.create(CONFIG_MAPS, config_map(namespace, "NOT A NAME"), reason="test")
    with pytest.raises(errors.BadRequest):
        await client.list(CONFIG_MAPS, namespace, label_selector="a=!")
    with pytest.raises(errors.NotFound):
        await client.list(Resource("example.com", "v1", "things", "Thing"), namespace)


async def test_a_status_is_patched_by_itself(client: Client, namespace: str) -> None:
    await client.create(PODS, POD, namespace=namespace, reason="test")
    body = {"status": {"phase": "Running", "podIP": "10.1.2.3"}}
    await client.patch(PODS, "a", namespace, body, subresource="status", reason="test")
    assert (await client.get(PODS, "a", namespace, subresource="status"))["status"]["phase"] == "Running"
    await client.patch(PODS, "a", namespace, {"status": {"phase": "Failed"}}, reason="test")
    assert (await client.get(PODS, "a", namespace))["status"]["phase"] == "Running"


async def test_server_side_apply_knows_whose_field_it_is(client: Client, namespace: str) -> None:
    async def apply(value: str, manager: str, *, force: bool = False) -> dict[str, Any]:
        return await client.patch(
            CONFIG_MAPS,
            "a",
            namespace,
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": value}},
            kind=PatchKind.APPLY,
            field_manager=manager,
            force=force,
            reason="test",
        )

    await apply("1", "one")
    with pytest.raises(errors.Conflict, match="conflict with"):
        await apply("2", "two")
    assert (await apply("2", "two", force=True))["data"] == {"x": "2"}


async def test_a_dry_run_changes_nothing(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map(namespace, "a"), dry_run=True, reason="test")
    assert made["metadata"]["uid"]
    with pytest.raises(errors.NotFound):
        await client.get(CONFIG_MAPS, "a", namespace)


async def make(client: Client, namespace: str, count: int) -> None:
    await asyncio.gather(
        *(
            client.create(
                CONFIG_MAPS, config_map(namespace, f"n{n:03}", parity="odd" if n % 2 else "even"), reason="x"
            )
            for n in range(count)
        )
    )


async def test_lists_are_paged_and_selected_by_the_server(client: Client, namespace: str) -> None:
    await make(client, namespace, 60)
    pages = [page async for page in client.pages(CONFIG_MAPS, namespace, limit=25)]
    sizes = [len(page.items) for page in pages]
    assert sizes[:2] == [25, 25]
    assert sum(sizes) >= 60
    assert len({page.resource_version for page in pages}) == 1, "one list, not several"
    odd = await client.list(CONFIG_MAPS, namespace, label_selector="parity=odd", limit=7)
    assert len(odd.items) == 30
    assert {item["kind"] for item in odd.items} == {"ConfigMap"}
    one = await client.list(CONFIG_MAPS, namespace, field_selector="metadata.name=n007")
    assert [item["metadata"]["name"] for item in one.items] == ["n007"]
    await client.delete_collection(CONFIG_MAPS, namespace, label_selector="parity=odd", reason="test")
    assert not (await client.list(CONFIG_MAPS, namespace, label_selector="parity=odd")).items


class ForgetfulClient(Client):
    """Lets etcd forget the past after the first page of a list. The server keeps no events in memory."""

    control_plane: ControlPlane
    namespace_of_events: str
    forgot = False

    async def pages(self, *args: Any, **options: Any) -> AsyncGenerator[ListResult]:
        async with aclosing(super().pages(*args, **options)) as pages:
            async for page in pages:
                yield page
                if not self.forgot:
                    self.forgot = True
                    later = event(self.namespace_of_events, "later")
                    made = await self.create(EVENTS, later, reason="test")
                    await compact(self.control_plane, made["metadata"]["resourceVersion"])


async def test_a_list_goes_on_when_its_token_is_too_old(namespace: str, control_plane: ControlPlane) -> None:
    async with await ForgetfulClient.connect(control_plane.kubeconfig, qps=0) as client:
        client.control_plane, client.namespace_of_events = control_plane, namespace
        for n in range(12):
            await client.create(EVENTS, event(namespace, f"n{n}"), reason="test")
        with pytest.raises(errors.Gone):
            [page async for page in client.pages(EVENTS, namespace, limit=5)]
        await client.delete(EVENTS, "later", namespace, reason="test")
        client.forgot = False
        result = await client.list(EVENTS, namespace, limit=5)
    assert client.forgot
    names = [item["metadata"]["name"] for item in result.items]
    assert sorted(names) == sorted([*(f"n{n}" for n in range(12)), "later"])


async def test_a_watch_from_a_forgotten_version_is_gone(
    client: Client, namespace: str, control_plane: ControlPlane
) -> None:
    # The server keeps no events in memory, so that for them etcd's memory counts.
    latest = (await client.list(EVENTS, namespace)).resource_version
    await compact(control_plane, latest)
    watch = client.watch(EVENTS, namespace, resource_version="1")
    with pytest.raises(errors.Gone):
        [event async for event in watch]


async def test_a_watch_follows_and_ends(client: Client, namespace: str) -> None:
    start = (await client.list(CONFIG_MAPS, namespace)).resource_version
    await client.create(CONFIG_MAPS, config_map(namespace, "a"), reason="test")
    await client.patch(CONFIG_MAPS, "a", namespace, {"data": {"a": "2"}}, reason="test")
    await client.delete(CONFIG_MAPS, "a", namespace, reason="test")
    watch = client.watch(
        CONFIG_MAPS, namespace, resource_version=start, field_selector="metadata.name=a", server_timeout=2
    )
    kinds = [event.type async for event in watch]
    assert [kind for kind in kinds if kind != "BOOKMARK"] == ["ADDED", "MODIFIED", "DELETED"]


async def test_managed_fields_are_left_out_of_a_watch_before_decoding(client: Client, namespace: str) -> None:
    """Of the server's own kinds and of custom resources, which it writes in another order."""
    group = f"{namespace}.example.com"
    thing = Resource(group, "v1", "things", "Thing", namespaced=False)
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, things(group), reason="test")
    async with asyncio.timeout(60):
        while not await Discovery(client, SystemClock()).serves(thing):
            pass  # the server takes a moment to serve it
    bodies = {
        PODS: POD,
        CONFIG_MAPS: {"metadata": {"name": "a"}, "data": {"b": "c"}},
        thing: {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"x": [{}]}},
    }
    for resource, body in bodies.items():
        where = namespace if resource.namespaced else None
        made = await client.create(resource, body, namespace=where, reason="test")
        assert made["metadata"].pop("managedFields")
        options: dict[str, Any] = {"field_selector": "metadata.name=a", "server_timeout": 2, "initial": True}
        stream = client.watch(resource, where, managed_fields=False, **options)
        objects = [event.object async for event in stream if event.type == "ADDED"]
        assert objects == [made], resource
    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, f"things.{group}", None, reason="test")


@pytest.mark.parametrize(
    "secret",
    [
        {"data": {"password": "hunter2!"}},
        {"data": {"password": {"nested": "hunter2"}}},
        {"stringData": {"pass word": "hunter2"}},
        {"metadata": {"name": "a", "labels": {"hunter2": "hunter2 hunter2"}}},
        {"type": "kubernetes.io/tls", "data": {"tls.crt": "aHVudGVyMg=="}},
    ],
)
async def test_the_server_quotes_secrets_and_we_do_not(
    secret: dict[str, Any], client: Client, namespace: str
) -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, **secret}
    with pytest.raises(errors.ApiError) as caught:
        await client.create(SECRETS, body, namespace=namespace, reason="test")
    assert caught.value.status in {400, 422}
    text = str(caught.value)
    assert "create secrets" in text
    assert "hunter2!" not in text
    assert "hunter2 " not in text
    assert "aHVudGVyMg" not in text


async def test_what_the_servers_decoder_quotes_of_other_objects_is_left_out(
    client: Client, namespace: str
) -> None:
    container = {"name": "c", "image": "x", "env": [{"name": "P", "value": {"a": "hunter2"}}]}
    with pytest.raises(errors.BadRequest) as caught:
        await client.create(
            PODS, {**POD, "spec": {"containers": [container]}}, namespace=namespace, reason="test"
        )
    assert "hunter2" not in str(caught.value)
