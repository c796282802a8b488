"""Many RayJobs in HTTPMode at once, on dashboards that answer slowly, and a few that never answer.

A real API server, the operator in a process of its own, and a fake Ray behind every cluster. The clusters
are played: each is a RayCluster that somebody else manages, with a head Service and a status that says ready,
so that what is measured is the RayJob controller and its questions to Ray.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

from kuberay_op.api import labels
from kuberay_op.api.crds import crd
from kuberay_op.controllers.resources import RAY_CLUSTERS, RAY_JOBS
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, SERVICES
from kuberay_op.logs import LogSettings, setup
from kuberay_op.ray.direct import DirectTransport
from kuberay_op.testing import make
from kuberay_op.testing.fake_ray import FakeRay, Fault, JobScript
from kuberay_op.testing.fake_ray.http import Reply, Request
from kuberay_op.testing.operator import eventually, running_operator
from kuberay_op_bench.report import Measure, Report

CONTROL_PLANE: Final = ("etcd", "kube-apiserver", "kube-controller-manager")

#: How much longer the healthy jobs may take beside hanging dashboards.
TARGET: Final = 1.2

#: Seconds within which Ray answers, drawn anew for each request; their logarithm is even.
QUICKEST: Final = 0.005
SLOWEST: Final = 5.0

#: Objects made at the same time.
AT_ONCE: Final = 16

#: Seconds after which a run is given up.
PATIENCE: Final = 900.0


class SlowRay(FakeRay):
    """A fake Ray that takes its time for each answer."""

    def __init__(self, seed: int, **options: Any) -> None:
        super().__init__(**options)
        self._rng = Random(seed)  # noqa: S311 (seeded on purpose)

    async def reply(self, request: Request, host: str, port: int | None = None) -> Reply:
        """The answer, after a while."""
        await asyncio.sleep(QUICKEST * (SLOWEST / QUICKEST) ** self._rng.random())
        return await super().reply(request, host, port)


def run(*, jobs: int = 1000, hanging: int = 10, seconds: float = 20.0) -> Report:
    """Measure how long the healthy jobs take alone, and beside some whose dashboards hang."""
    from kuberay_op_local.cluster import Cluster  # late: the other suites need no cluster

    cluster = Cluster.up(f"bench-rayjobs-{Random().getrandbits(32):08x}", only=CONTROL_PLANE)  # noqa: S311 (a name)
    try:
        with setup(LogSettings(file=Path(os.devnull), level=100)):
            asyncio.run(_install(cluster.kubeconfig))
            healthy = jobs - hanging
            alone = asyncio.run(_measure(cluster.kubeconfig, "alone", healthy, 0, seconds))
            beside = asyncio.run(_measure(cluster.kubeconfig, "beside", healthy, hanging, seconds))
    finally:
        cluster.down()
    measures = (
        Measure(f"{healthy} healthy jobs, alone", round(alone, 1), "s"),
        Measure(f"{healthy} healthy jobs beside {hanging} that hang", round(beside, 1), "s"),
        Measure("beside / alone", round(beside / alone, 3), "×", at_most=TARGET),
    )
    settings = {"jobs": jobs, "dashboards that hang": hanging, "seconds each job runs": seconds,
                "Ray answers within": f"{QUICKEST * 1000:g} ms to {SLOWEST:g} s"}  # fmt: skip
    return Report("rayjobs", measures, settings)


async def _measure(kubeconfig: Path, namespace: str, healthy: int, hanging: int, seconds: float) -> float:
    """Seconds from the first RayJob until all healthy ones are complete."""
    script = JobScript(running=seconds)
    async with (
        SlowRay(1, auto=True, jobs=script) as ray,
        await Client.connect(kubeconfig, qps=0) as client,
        _operator(kubeconfig, namespace, ray.port),
    ):
        await client.create(NAMESPACES, {"metadata": {"name": namespace}}, reason="a benchmark")
        good = [f"good-{number}" for number in range(healthy)]
        bad = [f"bad-{number}" for number in range(hanging)]
        await _each([*bad, *good], lambda name: _cluster(client, namespace, name))
        for name in bad:
            ray.cluster(f"{namespace}/{name}-head-svc").fault = Fault.parse("hang")
        began = time.monotonic()
        await _each([*bad, *good], lambda name: _job(client, namespace, name))
        await eventually(lambda: _complete(client, namespace, healthy), patience=PATIENCE)
        took = time.monotonic() - began
        twice = [name for name, each in ray.clusters.items() if len(each.jobs.all) > 1]
        if twice:
            raise AssertionError(f"these clusters got more than one job: {twice}")
    return took


async def _each(names: list[str], make_one: Any) -> None:
    """Make many objects, a few at a time."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> None:
        async with turns:
            await make_one(name)

    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(one(name))


async def _cluster(client: Client, namespace: str, name: str) -> None:
    """A cluster that is up, as far as anybody can tell."""
    managed = make.spec(managedBy="kueue.x-k8s.io/multikueue")
    obj = make.raycluster(name, make.namespace(namespace), managed)
    await client.create(RAY_CLUSTERS, obj, reason="a benchmark")
    service = f"{name}-head-svc"
    port = {"name": "dashboard", "port": 8265}
    spec = {"clusterIP": "None", "ports": [port]}
    body = {"metadata": {"name": service, "namespace": namespace}, "spec": spec}
    await client.create(SERVICES, body, reason="a benchmark")
    status = {"status": {"state": "ready", "head": {"serviceName": service}}}
    await client.patch(RAY_CLUSTERS, name, namespace, status, subresource="status", reason="a benchmark")


async def _job(client: Client, namespace: str, name: str) -> None:
    spec = make.spec(
        submissionMode="HTTPMode",
        clusterSelector={labels.CLUSTER: name},
        rayClusterSpec=None,
        shutdownAfterJobFinishes=False,
    )
    job = make.rayjob(name, make.namespace(namespace), spec)
    await client.create(RAY_JOBS, job, reason="a benchmark")


async def _complete(client: Client, namespace: str, healthy: int) -> bool:
    await asyncio.sleep(0.5)  # the list is long, and the API server has other things to do
    found = (await client.list(RAY_JOBS, namespace)).items
    done = sum((job.get("status") or {}).get("jobDeploymentStatus") == "Complete" for job in found)
    return bool(done >= healthy)


async def _install(kubeconfig: Path) -> None:
    async with await Client.connect(kubeconfig) as client:
        for kind, resource in (("RayCluster", RAY_CLUSTERS), ("RayJob", RAY_JOBS)):
            await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd(kind), reason="a benchmark")

            async def served(resource: Any = resource) -> bool:
                try:
                    await client.list(resource)
                except NotFound:
                    return False
                return True

            await eventually(served)


@asynccontextmanager
async def _operator(kubeconfig: Path, namespace: str, port: int) -> AsyncIterator[None]:
    """The operator in a process of its own, while the block lasts."""
    arguments = (str(kubeconfig), namespace, f"http://127.0.0.1:{port}")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kuberay_op_bench.rayjobs", *arguments,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
        if process.returncode is not None:
            raise AssertionError(f"the operator ended by itself, with code {process.returncode}")
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _work(kubeconfig: str, namespace: str, proxy: str) -> None:
    async with (
        DirectTransport(proxy=proxy) as ray,
        running_operator(kubeconfig, namespaces=[namespace], ray=ray),
    ):
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(_work(*sys.argv[1:]))
