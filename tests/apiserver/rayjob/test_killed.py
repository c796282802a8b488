"""The operator is killed at random while fifty jobs run: none runs twice, none is lost, all end right."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kuberay_op.controllers.resources import RAY_CLUSTERS, RAY_JOBS
from kuberay_op.kube.client import Client
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.fake_ray import FakeRay, JobScript
from kuberay_op.testing.fake_ray.cluster import FakeCluster
from kuberay_op.testing.operator import eventually
from tests.apiserver.rayjob.conftest import release

pytestmark = pytest.mark.apiserver

HERE = Path(__file__).parent
JOBS = 50
#: Of each ten jobs one fails, and one fails and is tried once more.
FAILS, FAILS_TWICE = 3, 7


class Scripted(FakeRay):
    """A Ray on which the life of each job is the same on every cluster."""

    def __init__(self) -> None:
        super().__init__(auto=True)
        self.scripts: dict[str, JobScript] = {}

    def cluster(self, name: str = "default", *, hosts: tuple[str, ...] = ()) -> FakeCluster:
        """The cluster of this name."""
        found = super().cluster(name, hosts=hosts)
        found.jobs.scripts = self.scripts
        return found


def attempts(number: int) -> int:
    """How often a job should run."""
    return 2 if number % 10 == FAILS_TWICE else 1


def ends_well(number: int) -> bool:
    """Whether a job should succeed."""
    return number % 10 not in (FAILS, FAILS_TWICE)


@asynccontextmanager
async def operator(*arguments: str, log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """An operator that is killed when the block is left."""
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(HERE / "operator_process.py"), *arguments, stdout=output, stderr=output
        )
    try:
        yield process
        assert process.returncode is None, f"it ended by itself; see {log}"
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()


@contextmanager
def counting(client: Client, namespace: str) -> Iterator[Counter[str]]:
    """Counts the RayClusters that are ever made, by the RayJob they are for."""
    made: Counter[str] = Counter()

    async def watch() -> None:
        seen, version = set(), "0"
        while True:  # the server ends every watch after some minutes
            async for event in client.watch(RAY_CLUSTERS, namespace, resource_version=version):
                metadata = event.object["metadata"]
                version = metadata["resourceVersion"]
                if event.type == "ADDED" and metadata["uid"] not in seen:
                    seen.add(metadata["uid"])
                    made[metadata["labels"]["ray.io/originated-from-cr-name"]] += 1

    task = asyncio.create_task(watch())
    yield made
    task.cancel()


@pytest.fixture
def place(kwok_cluster: ControlPlane, kwok_namespace: str) -> str:
    """A namespace on a cluster that knows RayJobs."""
    install_crds(kwok_cluster)
    return kwok_namespace


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("kills", "longest"),
    [pytest.param(20, 12, id="20"), pytest.param(200, 100, id="200", marks=pytest.mark.slow)],
)
async def test_killed_at_random(
    kwok_cluster: ControlPlane, place: str, tmp_path: Path, kills: int, longest: float
) -> None:
    rng = Random(kills)  # noqa: S311 (seeded on purpose)
    async with (
        Scripted() as ray,
        await Client.connect(kwok_cluster.kubeconfig, qps=0) as client,
    ):
        for number in range(JOBS):
            name = f"j{number:02}"
            outcome = "SUCCEEDED" if ends_well(number) else "FAILED"
            ray.scripts[name] = JobScript(running=rng.uniform(0, longest), outcome=outcome)
            spec = make.spec(submissionMode="HTTPMode", jobId=name, backoffLimit=attempts(number) - 1)
            job = make.rayjob(name, make.namespace(place), spec)
            await client.create(RAY_JOBS, job, reason="a test")

        arguments = (str(kwok_cluster.kubeconfig), place, f"http://127.0.0.1:{ray.port}")
        with counting(client, place) as made:
            for _ in range(kills):
                async with operator(*arguments, log=tmp_path / "log"):
                    await asyncio.sleep(rng.uniform(0.2, 1.6))
            async with operator(*arguments, log=tmp_path / "log"):
                await ended(client, place, patience=2 * longest + 180)  # some run twice
                await asyncio.sleep(0.5)  # time to do something wrong

        check(await statuses(client, place), submitted(ray), made)
    await release(kwok_cluster, place)
    await asyncio.sleep(0.25)  # TLS connections take a moment to close


async def statuses(client: Client, namespace: str) -> dict[str, dict[str, Any]]:
    """The status of every RayJob."""
    found = (await client.list(RAY_JOBS, namespace)).items
    return {job["metadata"]["name"]: job.get("status") or {} for job in found}


async def ended(client: Client, namespace: str, patience: float) -> None:
    """Wait until all jobs have ended."""
    left: dict[str, dict[str, Any]] = {}

    async def all_ended() -> bool:
        found = (await statuses(client, namespace)).items()
        left.clear()
        left.update({n: s for n, s in found if s.get("jobDeploymentStatus") not in ("Complete", "Failed")})
        return not left

    try:
        await eventually(all_ended, patience)
    except TimeoutError:
        raise AssertionError(f"these jobs have not ended: {left}") from None


def submitted(ray: FakeRay) -> Counter[str]:
    """How often each job was accepted by some Ray."""
    return Counter(job for cluster in ray.clusters.values() for job in cluster.jobs.all)


def check(found: dict[str, dict[str, Any]], runs: Counter[str], clusters: Counter[str]) -> None:
    """Every job has run as often as it should, on a cluster each time, and says so."""
    assert len(found) == JOBS
    for number in range(JOBS):
        name = f"j{number:02}"
        status, well = found[name], ends_well(number)
        assert runs[name] == attempts(number), (name, status)
        assert clusters[name] == attempts(number), (name, status)
        assert status["jobStatus"] == ("SUCCEEDED" if well else "FAILED"), (name, status)
        assert status["jobDeploymentStatus"] == ("Complete" if well else "Failed"), (name, status)
        assert (status["succeeded"], status["failed"]) == (int(well), 0 if well else attempts(number)), name
