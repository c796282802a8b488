"""Where operators are compared: one control plane with kwok nodes, a namespace for each run, an audit log.

What is done here is done as the administrator; the operators have users of their own, by which the audit log
tells their calls apart.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

from kuberay_op.api.crds import VERSIONS, crd
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.errors import OperatorError
from kuberay_op.kube.client import Client, PatchKind
from kuberay_op.kube.errors import ApiError, NotFound
from kuberay_op.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, PODS
from kuberay_op.testing import make
from kuberay_op.testing.audit import AuditLog, Call

#: Nodes that kwok plays.
NODES: Final = 100
#: Calls of ours that may be under way at once.
PARALLEL: Final = 50
#: Longest wait for all clusters of a run, in seconds.
PATIENCE: Final = 1800.0

#: Users of the operators; a run takes the next one.
USERS: Final = tuple(f"operator-{number}" for number in range(64))


class Field:
    """The control plane, with a log of what each operator calls."""

    def __init__(self, cluster: Any, audit: AuditLog, folder: Path) -> None:
        self._cluster = cluster
        self._audit = audit
        self._users = iter(USERS)
        self.folder = folder

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        found: Path = self._cluster.kubeconfig
        return found

    def next_user(self) -> tuple[str, Path]:
        """A user that no operator has had, and its kubeconfig."""
        user = next(self._users)
        return user, self._cluster.issue_client_cert(user, ["system:masters"])

    def calls(self, user: str) -> list[Call]:
        """All calls of a user so far."""
        return [call for call in self._audit.calls() if call.user == user]

    @asynccontextmanager
    async def plot(self, name: str) -> AsyncIterator[Plot]:
        """A namespace, emptied at the end."""
        async with await Client.connect(self.kubeconfig, qps=0) as client:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await client.create(NAMESPACES, body, reason="bench")
            plot = Plot(client, name)
            try:
                yield plot
            finally:
                await plot.delete_all()


@contextmanager
def field(*, nodes: int = NODES) -> Iterator[Field]:
    """Bring the control plane up, with our CRDs, and take it down at the end."""
    from kuberay_op_local.cluster import Cluster  # late: other suites need no cluster

    folder = Path(tempfile.mkdtemp(prefix="kuberay-op-bench-"))
    audit = AuditLog(folder, USERS, reads=True)
    name = f"bench-{random.Random().getrandbits(32):08x}"  # noqa: S311 (a name)
    cluster = Cluster.up(name, node=f"kwok:{nodes}", extra_args={"kube-apiserver": audit.arguments()})
    try:
        asyncio.run(_install(cluster.kubeconfig))
        yield Field(cluster, audit, folder)
    finally:
        cluster.down()
        shutil.rmtree(folder, ignore_errors=True)


async def _install(kubeconfig: Path) -> None:
    async with await Client.connect(kubeconfig, qps=0) as client:
        for kind in VERSIONS:
            await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd(kind), reason="bench")
        deadline = time.monotonic() + 60
        while True:
            try:
                await client.list(RAY_CLUSTERS)
                return
            except NotFound:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.1)


class Plot:
    """The RayClusters of one run."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self.namespace = namespace

    async def create(self, count: int, workers: int, *, first: int = 0) -> Mapping[str, float]:
        """Make so many clusters at once; the seconds of the clock at which each was made."""
        made: dict[str, float] = {}

        async def one(name: str) -> None:
            body = make.raycluster(
                name, make.namespace(self.namespace), make.workers(workers, maxReplicas=100_000)
            )
            await self._client.create(RAY_CLUSTERS, body, reason="bench")
            made[name] = time.monotonic()

        await _all(one(f"c{number:05}") for number in range(first, first + count))
        return made

    async def touch(self, cluster: int, value: int) -> None:
        """Change a label of a cluster's workers, which costs its operator a pass and nothing more."""
        body = {"metadata": {"annotations": {"bench.example.com/touched": str(value)}}}
        await self._client.patch(RAY_CLUSTERS, f"c{cluster:05}", self.namespace, body, reason="bench")

    async def scale(self, count: int, workers: int) -> None:
        """Give the first so many clusters another number of workers."""

        async def one(name: str) -> None:
            path = "/spec/workerGroupSpecs/0/replicas"
            patch = [{"op": "replace", "path": path, "value": workers}]
            await self._client.patch(
                RAY_CLUSTERS, name, self.namespace, patch, kind=PatchKind.JSON, reason="bench"
            )

        await _all(one(f"c{number:05}") for number in range(count))

    async def ready(self, names: Any, workers: int, seen: dict[str, float]) -> None:
        """Wait until all report that they are ready with all their workers; when, goes into ``seen``."""
        waiting = set(names)

        def note(obj: dict[str, Any]) -> bool:
            status, name = obj.get("status") or {}, obj["metadata"]["name"]
            complete = status.get("state") == "ready" and status.get("availableWorkerReplicas") == workers
            if complete and name in waiting:
                waiting.discard(name)
                seen[name] = time.monotonic()
            return not waiting

        await self._follow(RAY_CLUSTERS, lambda kind, obj: kind != "DELETED" and note(obj))

    async def first_pod(self, cluster: str) -> float:
        """Wait for the first Pod of a cluster; the time at which we heard of it."""
        label = f"ray.io/cluster={cluster}"
        await self._follow(PODS, lambda kind, _: kind == "ADDED", label_selector=label)
        return time.time()

    async def head_pod_after_creation(self, number: int) -> float:
        """Make one cluster; the seconds until we hear of its head Pod."""
        began = time.time()
        await self.create(1, 0, first=number)
        return await self.first_pod(f"c{number:05}") - began

    async def delete_all(self) -> None:
        """Delete the clusters and wait until they and their Pods are gone."""
        await self._client.delete_collection(RAY_CLUSTERS, self.namespace, reason="bench")
        deadline = time.monotonic() + PATIENCE
        for resource in (RAY_CLUSTERS, PODS):
            while (await self._client.list(resource, self.namespace)).items:
                if time.monotonic() > deadline:
                    raise OperatorError(f"{resource} in {self.namespace} did not go within {PATIENCE:.0f} s")
                await asyncio.sleep(0.2)

    async def _follow(
        self, resource: Any, done: Callable[[str, dict[str, Any]], bool], *, label_selector: str | None = None
    ) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            stream = self._client.watch(
                resource, self.namespace, initial=True, managed_fields=False, label_selector=label_selector
            )
            try:
                async with aclosing(stream) as events, asyncio.timeout(deadline - time.monotonic()):
                    async for event in events:
                        if event.type != "BOOKMARK" and done(event.type, event.object):
                            return
            except ApiError:
                await asyncio.sleep(0.5)
        raise OperatorError(f"{resource} in {self.namespace} did not get there within {PATIENCE:.0f} s")


async def _all(work: Iterable[Any]) -> None:
    """Do it all, so much at once."""
    turn = asyncio.Semaphore(PARALLEL)

    async def one(each: Any) -> None:
        async with turn:
            await each

    await asyncio.gather(*(one(each) for each in work))


def count_calls(calls: Sequence[Call]) -> Counter[str]:
    """Calls by verb and resource; watches and leases left out."""
    return Counter(
        f"{call.verb} {call.resource}" for call in calls if call.verb != "watch" and call.resource != "leases"
    )


def conflicts(calls: Sequence[Call]) -> int:
    """Calls that were refused because somebody else was quicker."""
    return sum(1 for call in calls if call.code == 409)
