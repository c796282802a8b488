"""Small objects to make on the server, and ways to wait and to make it forget."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

import httpx

from kuberay_op.testing.controlplane import ControlPlane

#: Longest wait for something that is about to happen; only a failing test waits this long.
PATIENCE = 60.0


def config_map(namespace: str, name: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}


def event(namespace: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "eventTime": "2030-01-01T00:00:00.000000Z",
        "type": "Normal",
        "reason": "Test",
        "action": "Test",
        "regarding": {"kind": "Pod", "name": "a", "namespace": namespace},
        "reportingController": "test",
        "reportingInstance": "test",
    }


def things(group: str) -> dict[str, Any]:
    """A definition of a custom resource of that group."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


async def until(true: Callable[[], object]) -> None:
    """Wait until something has come about."""
    async with asyncio.timeout(PATIENCE):
        while not true():  # noqa: ASYNC110 – what is waited for sets no event
            await asyncio.sleep(0.01)


async def compact(control_plane: ControlPlane, revision: str) -> None:
    """Make etcd forget everything before a revision, as it does by itself every few minutes."""
    cluster = control_plane.cluster
    pki = cluster.layout.pki
    tls = ssl.create_default_context(cafile=pki / "ca.crt")
    tls.load_cert_chain(pki / "server.crt", pki / "server.key")
    async with httpx.AsyncClient(
        base_url=f"https://127.0.0.1:{cluster.spec.ports['etcd']}", verify=tls
    ) as etcd:
        answer = await etcd.post("/v3/kv/compaction", json={"revision": revision, "physical": True})
        answer.raise_for_status()
