"""The floor: the writes that RayClusters need, and nothing else.

A program of its own that watches one namespace (``NAMESPACE``), makes the head Service, the head and the
workers of each RayCluster, and writes the status twice: when the Pods are made and when all are ready. It
checks nothing, repairs nothing and tells nobody. What it needs is about what the control plane allows.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from contextlib import aclosing
from typing import Any, Final

import uvloop

from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.kube.client import Client
from kuberay_op.kube.resource import PODS, SERVICES

#: Seconds for which news of one cluster are collected before its status is written.
COALESCE: Final = 0.05

CLUSTER: Final = "ray.io/cluster"
READY: Final = {"type": "Ready", "status": "True"}


class Floor:
    """What is known of the clusters, no more than needed."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._replicas: dict[str, int] = {}
        self._made: dict[str, int] = defaultdict(int)
        self._ready: dict[str, set[str]] = defaultdict(set)
        self._due: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Work until the process is ended."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_clusters())
            group.create_task(self._watch_pods())

    async def _watch_clusters(self) -> None:
        stream = self._client.watch(RAY_CLUSTERS, self._namespace, initial=True, server_timeout=3600)
        async with aclosing(stream) as events:
            async for event in events:
                if event.type in {"ADDED", "MODIFIED"}:
                    self._start(self._grow(event.object))

    async def _grow(self, cluster: dict[str, Any]) -> None:
        """Make the Pods that are missing."""
        name = cluster["metadata"]["name"]
        wanted = 1 + cluster["spec"]["workerGroupSpecs"][0]["replicas"]
        self._replicas[name] = wanted - 1
        first, self._made[name] = self._made[name], wanted
        if wanted <= first:
            return
        if first == 0:
            await self._client.create(SERVICES, _service(cluster), reason="floor")
        pods = (_pod(cluster, index) for index in range(first, wanted))
        await asyncio.gather(*(self._client.create(PODS, pod, reason="floor") for pod in pods))
        await self._status(name, {"desiredWorkerReplicas": wanted - 1, "observedGeneration": 1})

    async def _watch_pods(self) -> None:
        stream = self._client.watch(
            PODS, self._namespace, initial=True, server_timeout=3600, label_selector=CLUSTER
        )
        async with aclosing(stream) as events:
            async for event in events:
                if event.type not in {"ADDED", "MODIFIED"}:
                    continue
                pod = event.object
                conditions = (pod.get("status") or {}).get("conditions") or ()
                if any(READY.items() <= condition.items() for condition in conditions):
                    cluster = pod["metadata"]["labels"][CLUSTER]
                    self._ready[cluster].add(pod["metadata"]["name"])
                    if cluster not in self._due:
                        self._due.add(cluster)
                        self._start(self._report(cluster))

    async def _report(self, name: str) -> None:
        await asyncio.sleep(COALESCE)
        self._due.discard(name)
        if len(self._ready[name]) == self._made[name]:
            count = self._replicas[name]
            counts = {"readyWorkerReplicas": count, "availableWorkerReplicas": count}
            await self._status(name, {"state": "ready", **counts})

    async def _status(self, name: str, status: dict[str, Any]) -> None:
        body = {"status": status}
        await self._client.patch(
            RAY_CLUSTERS, name, self._namespace, body, subresource="status", reason="floor"
        )

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _metadata(cluster: dict[str, Any], name: str, labels: dict[str, str]) -> dict[str, Any]:
    owner = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "name": cluster["metadata"]["name"],
        "uid": cluster["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "name": name,
        "namespace": cluster["metadata"]["namespace"],
        "labels": {CLUSTER: cluster["metadata"]["name"], **labels},
        "ownerReferences": [owner],
    }


def _pod(cluster: dict[str, Any], index: int) -> dict[str, Any]:
    spec = cluster["spec"]
    group = spec["headGroupSpec"] if index == 0 else spec["workerGroupSpecs"][0]
    kind = "head" if index == 0 else "worker"
    name = f"{cluster['metadata']['name']}-{kind}-{index}"
    return {
        "metadata": _metadata(cluster, name, {"ray.io/node-type": kind}),
        "spec": group["template"]["spec"],
    }


def _service(cluster: dict[str, Any]) -> dict[str, Any]:
    name = cluster["metadata"]["name"]
    selector = {CLUSTER: name, "ray.io/node-type": "head"}
    ports = [{"name": "gcs-server", "port": 6379}, {"name": "dashboard", "port": 8265}]
    spec = {"clusterIP": "None", "selector": selector, "ports": ports}
    return {"metadata": _metadata(cluster, f"{name}-head-svc", {}), "spec": spec}


async def _main() -> None:
    namespace = os.environ["NAMESPACE"]
    async with await Client.connect(os.environ["KUBECONFIG"], qps=0) as client:
        await Floor(client, namespace).run()


if __name__ == "__main__":
    uvloop.run(_main())
