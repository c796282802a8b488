"""``kuberay-op run`` for real: a RayCluster gets its head Pod and its status; the process ends in order."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from kuberay_op.api.crds import crd
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.kube.client import Client, PatchKind
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, LEASES, PODS
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane

pytestmark = pytest.mark.apiserver
Eventually = Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


@pytest.fixture
async def kwok_client(kwok_cluster: ControlPlane, eventually: Eventually) -> AsyncIterator[Client]:
    """A client of the kwok cluster, on which the RayCluster CRD is installed and served."""
    async with await Client.connect(kwok_cluster.kubeconfig) as client:
        definition = crd("RayCluster")
        await client.patch(
            CUSTOM_RESOURCE_DEFINITIONS,
            definition["metadata"]["name"],
            None,
            definition,
            kind=PatchKind.APPLY,
            force=True,
            reason="a test",
        )

        async def served() -> bool:
            try:
                await client.list(RAY_CLUSTERS)
            except NotFound:
                return False
            return True

        await eventually(served)
        yield client


async def get(port: int, path: str) -> tuple[int, Any]:
    url = f"http://127.0.0.1:{port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        is_json = answer.content_type == "application/json"
        return answer.status, await (answer.json() if is_json else answer.text())


async def test_a_raycluster_gets_its_head_and_its_status(
    kwok_cluster: ControlPlane,
    kwok_client: Client,
    kwok_namespace: str,
    eventually: Eventually,
    start_operator: Any,
) -> None:
    health, metrics = free_port(), free_port()
    operator = await start_operator(
        f"--kubeconfig={kwok_cluster.kubeconfig}",
        f"--watch-namespace={kwok_namespace}",
        f"--leader-election-namespace={kwok_namespace}",
        f"--health-probe-bind-address=127.0.0.1:{health}",
        f"--metrics-addr=127.0.0.1:{metrics}",
        "--enable-debug-endpoints",
        "--enable-metrics",
    )
    await eventually(lambda: operator.has_said("became leader"))
    cluster = make.raycluster("a", make.namespace(kwok_namespace))
    created = await kwok_client.create(RAY_CLUSTERS, cluster, reason="a test")

    async def ready() -> bool:
        found = await kwok_client.get(RAY_CLUSTERS, "a", kwok_namespace)
        return bool(found.get("status", {}).get("state") == "ready")

    await eventually(ready)
    pods = (await kwok_client.list(PODS, kwok_namespace)).items
    assert [pod["metadata"]["labels"]["ray.io/node-type"] for pod in pods] == ["head"], "exactly one head"
    head = pods[0]["metadata"]
    assert head["generateName"] == "a-head-"
    assert head["labels"]["ray.io/cluster"] == "a"
    assert head["ownerReferences"][0]["uid"] == created["metadata"]["uid"]
    status = (await kwok_client.get(RAY_CLUSTERS, "a", kwok_namespace))["status"]
    address = pods[0]["status"]["podIP"]
    names = {"podName": head["name"], "serviceName": "a-head-svc"}
    assert status["head"] == names | {"podIP": address, "serviceIP": address}
    assert status["observedGeneration"] == 1
    assert list(status["stateTransitionTimes"]) == ["ready"]

    assert (await get(health, "/healthz"))[0] == 200
    assert await get(health, "/readyz") == (200, "[+]caches ok\n[+]shutdown ok\nok\n")
    _, text = await get(metrics, "/metrics")
    assert 'leader_election_master_status{name="ray-operator-leader"} 1.0' in text
    assert 'controller_runtime_reconcile_total{controller="raycluster",result="requeue_after"}' in text
    whose = f'name="a",namespace="{kwok_namespace}"'
    assert f'kuberay_cluster_condition_provisioned{{condition="true",{whose}' in text
    assert f"kuberay_cluster_provisioned_duration_seconds{{{whose}" in text
    _, passes = await get(health, f"/debug/passes?key={kwok_namespace}/a")
    assert passes["raycluster"][0]["problem"] == ""
    for view in ("queues", "tasks", "memory", "state"):
        assert (await get(health, f"/debug/{view}"))[0] == 200, view

    await kwok_client.delete(PODS, head["name"], kwok_namespace, grace=0, reason="an accident")

    async def replaced() -> bool:
        items = (await kwok_client.list(PODS, kwok_namespace)).items
        return [pod["metadata"]["uid"] != head["uid"] for pod in items] == [True]

    await eventually(replaced)

    assert await operator.end() == 0
    lease = await kwok_client.get(LEASES, "ray-operator-leader", kwok_namespace)
    assert "holderIdentity" not in lease["spec"], "the lease is given back"
    assert operator.lines()[-1]["msg"] == "stopped"
    assert [line for line in operator.lines() if line["level"] == "error"] == []


async def test_a_taken_port_is_one_sentence_and_exit_code_1(
    kwok_cluster: ControlPlane, start_operator: Any
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        operator = await start_operator(
            f"--kubeconfig={kwok_cluster.kubeconfig}",
            f"--metrics-addr={address}",
            "--health-probe-bind-address=0",
        )
        assert await operator.process.wait() == 1
    assert operator.log.read_text() == (
        f"error: --metrics-addr is '{address}', but another program listens there; "
        "choose another port, or 0 for none\n"
    )


async def test_a_second_signal_ends_it_at_once(
    kwok_cluster: ControlPlane, kwok_namespace: str, eventually: Eventually, start_operator: Any
) -> None:
    operator = await start_operator(
        f"--kubeconfig={kwok_cluster.kubeconfig}",
        f"--leader-election-namespace={kwok_namespace}",
        "--metrics-addr=0",
        "--health-probe-bind-address=0",
    )
    await eventually(lambda: operator.has_said("starting kuberay-op"))
    operator.signal(signal.SIGSTOP)  # so that it cannot finish between the two signals
    operator.signal(signal.SIGINT)
    operator.signal(signal.SIGTERM)
    operator.signal(signal.SIGCONT)
    code = await asyncio.wait_for(operator.process.wait(), 30)
    # It says that it starts a moment before it listens to signals; then the kernel ends it.
    assert code in (128 + signal.SIGINT, 128 + signal.SIGTERM, -signal.SIGTERM)
