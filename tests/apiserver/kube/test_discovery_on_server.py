"""What the cluster serves, also while a part of it is down."""

from __future__ import annotations

import pytest

from kuberay_op.clock import SystemClock
from kuberay_op.kube.client import Client
from kuberay_op.kube.discovery import Discovery
from kuberay_op.kube.errors import ServerError
from kuberay_op.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, NAMESPACES, PODS, Resource
from kuberay_op.testing.clock import FakeClock
from tests.apiserver.kube.objects import things

pytestmark = pytest.mark.apiserver

API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)


async def test_what_is_there_and_what_is_not(client: Client) -> None:
    discovery = Discovery(client, SystemClock())
    assert await discovery.serves(PODS)
    assert await discovery.serves(EVENTS)
    assert not await discovery.serves(Resource("", "v1", "things", "Thing"))
    assert not await discovery.serves(Resource("route.openshift.io", "v1", "routes", "Route"))
    assert await discovery.find("v1", "Pod") == PODS
    assert await discovery.find("v1", "Namespace") == NAMESPACES
    assert await discovery.find("v1", "Thing") is None
    groups = await discovery.groups()
    assert groups["events.k8s.io"][0] == "v1"
    assert "route.openshift.io" not in groups
    assert await discovery.server_version() >= (1, 20)


async def test_answers_are_remembered_and_asked_for_again(client: Client, namespace: str) -> None:
    group = f"{namespace}.example.com"
    resource = Resource(group, "v1", "things", "Thing")
    clock = FakeClock()
    discovery = Discovery(client, clock)
    assert not await discovery.serves(resource)
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, things(group), reason="test")
    while not await Discovery(client, clock).serves(resource):
        pass  # the server takes a moment to serve it; the test's time limit ends a wait for nothing
    assert not await discovery.serves(resource)
    assert await discovery.serves(resource, refresh=True)
    found = await discovery.find(f"{group}/v1", "Thing")
    assert found is not None
    assert not found.namespaced
    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, f"things.{group}", None, reason="test")
    await clock.leap(301.0)
    while await discovery.serves(resource):
        await clock.leap(301.0)


async def test_a_part_that_is_down_does_not_hide_the_rest(client: Client, namespace: str) -> None:
    """An aggregated API whose server does not exist."""
    group = f"{namespace}.metrics.example.com"
    service = {
        "metadata": {"name": f"v1.{group}"},
        "spec": {
            "group": group,
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"name": "not-there", "namespace": namespace, "port": 443},
        },
    }
    await client.create(API_SERVICES, service, reason="test")
    broken = Resource(group, "v1", "things", "Thing")
    while True:
        discovery = Discovery(client, SystemClock())
        try:
            assert not await discovery.serves(broken)  # the server has not heard of it yet
        except ServerError:
            break
    assert await discovery.serves(PODS)
    assert "events.k8s.io" in await discovery.groups()
    # Known before, it is still taken to be there while it is down.
    discovery._known[f"{group}/v1"] = (0.0, (broken,))
    assert await discovery.serves(broken, refresh=True)
    await client.delete(API_SERVICES, f"v1.{group}", None, reason="test")
