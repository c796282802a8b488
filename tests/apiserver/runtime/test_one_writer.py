"""Never two writers, whatever happens to the leader; the API server's audit log is the witness."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kuberay_op.api.crds import crd
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.resource import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, LEASES
from kuberay_op.testing import make
from kuberay_op.testing.audit import AuditLog, leaders_in_order
from kuberay_op.testing.controlplane import ControlPlane

pytestmark = [
    pytest.mark.apiserver,
    # The operators are processes of their own; this loop only drives them, and starts clusters on the way.
    pytest.mark.loop_guard(milliseconds=10_000),
]
Eventually = Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]

A, B = "operator-a", "operator-b"
LONG = [pytest.mark.slow, pytest.mark.timeout(900)]


class Arena:
    """A cluster whose audit log tells the two operators apart."""

    def __init__(self, own_cluster: Any, folder: Path, eventually: Eventually) -> None:
        self.audit = AuditLog(folder, [A, B])
        self.plane: ControlPlane = own_cluster(extra_args={"kube-apiserver": self.audit.arguments()})
        self.eventually = eventually

    def kubeconfig(self, user: str) -> Path:
        return self.plane.cluster.issue_client_cert(user, ["system:masters"])

    def leader(self) -> str:
        """Who wrote to the lease last."""
        return [write.user for write in self.audit.writes() if write.resource == "leases"][-1]

    def work_of(self, user: str) -> int:
        return sum(
            write.user == user and write.resource not in ("leases", "events") for write in self.audit.writes()
        )

    async def busy(self, user: str) -> None:
        """Wait until the user has done some more work."""
        before = self.work_of(user)

        async def more() -> bool:
            return self.work_of(user) >= before + 5

        await self.eventually(more)


@pytest.fixture
def arena(own_cluster: Any, tmp_path: Path, eventually: Eventually) -> Arena:
    return Arena(own_cluster, tmp_path, eventually)


@asynccontextmanager
async def a_new_raycluster_every_moment(client: Client) -> AsyncIterator[None]:
    async def create() -> None:
        for number in count():
            cluster = make.raycluster(f"c{number}", make.namespace("default"))
            await client.create(RAY_CLUSTERS, cluster, reason="work")
            await asyncio.sleep(0.1)

    task = asyncio.create_task(create())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(
    ("times", "stopped"),
    [
        pytest.param((6, 4, 0.5), 10.0, id="short lease"),
        pytest.param((15, 10, 2), 60.0, id="as deployed", marks=LONG),
    ],
)
async def test_the_operator_stopped_continued_and_killed(
    arena: Arena, start_operator: Any, times: tuple[float, float, float], stopped: float
) -> None:
    flags = [
        f"--leader-election-{name}-seconds={seconds}"
        for name, seconds in zip(("lease", "renew", "retry"), times, strict=True)
    ]
    flags += ["--metrics-addr=0", "--health-probe-bind-address=0", "--leader-election-namespace=default"]
    async with await Client.connect(arena.plane.kubeconfig, qps=0) as client:
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd("RayCluster"), reason="a test")

        async def served() -> bool:
            try:
                await client.list(RAY_CLUSTERS)
            except NotFound:
                return False
            return True

        await arena.eventually(served)
        a = await start_operator(f"--kubeconfig={arena.kubeconfig(A)}", *flags)
        await arena.eventually(lambda: a.has_said("became leader"))
        b = await start_operator(f"--kubeconfig={arena.kubeconfig(B)}", *flags)
        await arena.eventually(lambda: b.has_said("standing by"))
        async with a_new_raycluster_every_moment(client):
            await arena.busy(A)
            a.signal(signal.SIGSTOP)
            resume = asyncio.get_running_loop().time() + stopped
            await arena.busy(B)
            await asyncio.sleep(max(0.0, resume - asyncio.get_running_loop().time()))
            a.signal(signal.SIGCONT)
            await arena.eventually(lambda: a.has_said("no longer leader, standing by"))
            await arena.busy(B)

            b.signal(signal.SIGKILL)
            await arena.busy(A)
        assert await a.end() == 0
        lease = await client.get(LEASES, "ray-operator-leader", "default")
        assert "holderIdentity" not in lease["spec"]
    assert leaders_in_order(arena.audit.writes()) == [A, B, A]


@pytest.mark.parametrize("rounds", [2, pytest.param(30, marks=LONG)])
async def test_a_hammering_leader_stopped_again_and_again(arena: Arena, tmp_path: Path, rounds: int) -> None:
    rng = Random(7)  # noqa: S311 (seeded on purpose)
    logs = {user: tmp_path / f"{user}.log" for user in (A, B)}
    hammers: dict[str, asyncio.subprocess.Process] = {}
    async with await Client.connect(arena.plane.kubeconfig) as client:
        for number in range(20):
            nail = {"metadata": {"name": f"nail-{number}", "namespace": "default"}}
            await client.create(CONFIG_MAPS, nail, reason="a test")
    try:
        for user, log in logs.items():
            with log.open("wb") as output:
                hammers[user] = await asyncio.create_subprocess_exec(
                    sys.executable,
                    str(Path(__file__).with_name("hammer.py")),
                    str(arena.kubeconfig(user)),
                    *("4", "2.5", "0.5"),
                    stdout=output,
                    stderr=output,
                )
            if user == A:
                await arena.busy(A)
        for _ in range(rounds):
            await asyncio.sleep(rng.random())
            leader = arena.leader()
            hammers[leader].send_signal(signal.SIGSTOP)
            await arena.busy(B if leader == A else A)
            hammers[leader].send_signal(signal.SIGCONT)
            await asyncio.sleep(2 * rng.random())
        for hammer in hammers.values():
            hammer.terminate()
            assert await asyncio.wait_for(hammer.wait(), 60) == 0
    finally:
        for hammer in hammers.values():
            if hammer.returncode is None:
                hammer.kill()
                await hammer.wait()
    # On a busy machine a hammering leader may lose the lease by itself as well.
    assert len(leaders_in_order(arena.audit.writes())) > rounds
    assert any("refused: the lease" in log.read_text() for log in logs.values()), "the fence was never needed"
