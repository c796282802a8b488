"""Mutual TLS on a real API server (§11). The CRDs are minimal, and the test plays cert-manager's part."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kuberay_op.api import labels
from kuberay_op.controllers.resources import CERTIFICATES, ISSUERS, RAY_CLUSTERS
from kuberay_op.features import Gates
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import AlreadyExists
from kuberay_op.kube.resource import SECRETS, Key, Resource
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.operator import eventually
from tests.apiserver.raycluster.conftest import Begin, Story

pytestmark = pytest.mark.apiserver

Json = dict[str, Any]
ON = Gates.default().with_overrides("RayClusterMTLS=true")
BOTH = Gates.default().with_overrides("RayClusterMTLS=true,RayClusterNetworkPolicy=true")
TLS = make.cluster(tlsOptions={"enabled": True})


def crd(resource: Resource) -> Json:
    """A CRD that takes anything."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": str(resource)},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"plural": resource.plural, "kind": resource.kind},
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


@pytest.fixture
def cert_manager(kwok_cluster: ControlPlane) -> None:
    for resource in (ISSUERS, CERTIFICATES):
        kwok_cluster.kubectl("apply", "-f", "-", stdin=json.dumps(crd(resource)))
        kwok_cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", f"crd/{resource}")


class Issuing:
    """Cert-manager, as far as the operator sees it; ``issue`` can be held back."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self.allowed = asyncio.Event()
        self.issued: list[str] = []

    async def run(self) -> None:
        listed = await self._client.list(CERTIFICATES, self._namespace)
        for certificate in listed.items:
            await self._issue(certificate)
        async for event in self._client.watch(
            CERTIFICATES, self._namespace, resource_version=listed.resource_version
        ):
            if event.type in ("ADDED", "MODIFIED"):
                await self._issue(event.object)

    async def _issue(self, certificate: Json) -> None:
        metadata, status = certificate["metadata"], certificate.get("status") or {}
        seen = [entry.get("observedGeneration") for entry in status.get("conditions") or ()]
        if metadata["generation"] in seen:
            return
        await self.allowed.wait()
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": certificate["spec"]["secretName"], "namespace": self._namespace},
            "stringData": {"tls.crt": "c", "tls.key": "k", "ca.crt": "a"},
        }
        with contextlib.suppress(AlreadyExists):
            await self._client.create(SECRETS, secret, reason="a test")
        condition = {
            "type": "Ready",
            "status": "True",
            "reason": "Ready",
            "observedGeneration": metadata["generation"],
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        body = {"status": {"conditions": [condition], "revision": status.get("revision", 0) + 1,
                           "notAfter": "2036-01-01T00:00:00Z"}}  # fmt: skip
        await self._client.patch(
            CERTIFICATES, metadata["name"], self._namespace, body, subresource="status", reason="a test"
        )
        self.issued.append(metadata["name"])


@asynccontextmanager
async def issuing(story: Story) -> AsyncIterator[Issuing]:
    issuer = Issuing(story.client, story.namespace)
    task = asyncio.create_task(issuer.run())
    try:
        yield issuer
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.mark.usefixtures("cert_manager")
async def test_pods_wait_for_their_certificates_and_certificates_follow_the_pods(begin: Begin) -> None:
    async with begin(gates=ON) as story, issuing(story) as issuer:
        await story.start()
        await story.create("c", make.workers(1, "w"), TLS)

        async def waits() -> bool:
            return story.says(await story.cluster("c"), "Ready", "False", "WaitingForCertificates")

        await eventually(waits)
        assert await story.pods() == []
        said = [
            each for each in (await story.cluster("c"))["status"]["conditions"] if each["type"] == "Ready"
        ]
        assert said[0]["message"].startswith("mTLS secrets not ready: ")
        assert not story.says(await story.cluster("c"), "PluginsAgree", "False")
        issuer.allowed.set()

        async def up() -> bool:
            return await story.ready("c", 1)

        await eventually(up)
        (head,) = await story.pods(labels.HEAD)
        assert [each["name"] for each in head["spec"]["initContainers"]] == ["wait-for-tls-ip-san"]

        async def named(role: str) -> bool:
            pods = [pod["status"].get("podIP") for pod in await story.pods(role)]
            found = await story.client.get(CERTIFICATES, f"ray-{role}-cert-c", story.namespace)
            return set(found["spec"]["ipAddresses"]) == {"127.0.0.1", *pods}

        await eventually(lambda: named("head"))
        await eventually(lambda: named("worker"))

        # A Pod more: its address comes without waiting for any timer.
        await story.scale("c", 3)
        await eventually(lambda: story.ready("c", 3))
        await eventually(lambda: named("worker"))

        # The Secrets go with their certificates.
        certificate = await story.client.get(CERTIFICATES, "ray-worker-cert-c", story.namespace)

        async def owned() -> bool:
            secret = await story.client.get(SECRETS, "ray-worker-secret-c", story.namespace)
            owners = secret["metadata"].get("ownerReferences") or ()
            return [(each["uid"], each.get("controller")) for each in owners] == [
                (certificate["metadata"]["uid"], None)
            ]

        await eventually(owned)

        async def told() -> bool:
            words = ("MTLSCertsNotReady", "MTLSPKIReady", "MTLSCertificatesUpdated")
            return all([await story.said(word) for word in words])

        await eventually(told)
        assert await story.said("MTLSFailedToReconcile") == []

        # Switched off, nothing is removed (§11.2); with the cluster, all of it goes.
        await story.edit("c", {"spec": {"tlsOptions": {"enabled": False}}})
        await story.delete(RAY_CLUSTERS, "c")

        async def gone() -> bool:
            left = (await story.client.list(CERTIFICATES, story.namespace)).items
            return not left and not await story.exists(SECRETS, "ray-worker-secret-c")

        await eventually(gone)


def passes(story: Story, controller: str) -> float:
    assert story.operator is not None
    found = story.operator.metrics.registry.collect()
    return sum(
        sample.value
        for family in found
        for sample in family.samples
        if sample.name == "controller_runtime_reconcile_total" and sample.labels["controller"] == controller
    )


@pytest.mark.usefixtures("cert_manager")
async def test_scaling_goes_on_while_a_certificate_is_issued_and_rest_costs_nothing(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with begin(gates=BOTH) as story, issuing(story) as issuer:
        issuer.allowed.set()
        await story.start()
        assert story.operator is not None
        await story.create("c", make.workers(1, "w"), TLS, make.cluster(networkPolicy={}))
        await eventually(lambda: story.ready("c", 1))

        async def settled() -> bool:
            found = await story.client.get(CERTIFICATES, "ray-worker-cert-c", story.namespace)
            (condition,) = found["status"]["conditions"]
            return len(found["spec"]["ipAddresses"]) == 2 and bool(
                condition["observedGeneration"] == found["metadata"]["generation"]
            )

        await eventually(settled)
        await eventually(lambda: story.said("MTLSPKIReady"))

        # At rest a pass of either controller makes no call.
        calls: list[str] = []
        client = story.operator.client

        def counted(name: str) -> Any:
            call = getattr(client, name)

            def count(*args: Any, **options: Any) -> Any:
                calls.append(f"{name} {args[0]}")
                return call(*args, **options)

            return count

        for controller in ("networkpolicy", "raycluster-mtls"):
            await woken(story, controller)  # what events still bring comes to an end
        with monkeypatch.context() as patched:
            for name in ("create", "delete", "get", "list", "patch"):
                patched.setattr(client, name, counted(name))
            for controller in ("networkpolicy", "raycluster-mtls"):
                await woken(story, controller)
        assert calls == []

        # §16.6 44: new Pods wait inside, for a certificate with their address.
        issuer.allowed.clear()
        await story.scale("c", 4)
        await eventually(lambda: story.ready("c", 4))


async def woken(story: Story, controller: str) -> None:
    """Have a controller look at the cluster, and wait until it has."""
    assert story.operator is not None
    before = passes(story, controller)
    story.operator.manager.wirings[controller].wake(Key(story.namespace, "c"))

    async def looked() -> bool:
        return passes(story, controller) > before

    await eventually(looked)
