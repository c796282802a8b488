"""RayClusters: ours beside the reference and the floor, on one control plane, in one run.

Each peer in turn, round after round, gets a namespace of its own and goes through the same life: many
clusters made at once, rest, a restart, all of them doubled, all deleted.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final

from kuberay_op.testing.audit import Call
from kuberay_op_bench import peers
from kuberay_op_bench.compare import Run, in_turn, measures
from kuberay_op_bench.field import Field, Plot, conflicts, count_calls, field
from kuberay_op_bench.report import Report

#: Seconds for which an operator is left alone after all are ready, and then watched at rest.
SETTLE: Final = 10.0
REST: Final = 20.0

#: The targets: the measure of ours divided by that of a peer.
TARGETS: Final[dict[tuple[str, str], float]] = {
    ("wall", peers.DEFAULT): 0.65,
    ("wall", peers.TUNED): 0.85,
    ("wall", peers.FLOOR): 1.15,
    ("calls without events", peers.DEFAULT): 1.0,
    ("calls", peers.DEFAULT): 0.75,
    ("cpu", peers.DEFAULT): 0.4,
    ("memory, settled", peers.DEFAULT): 0.6,
    ("restart to first action", peers.DEFAULT): 0.5,
}

UNITS: Final = {
    "wall": "s",
    "p50": "s",
    "p99": "s",
    "cpu": "s",
    "cpu while settling": "s",
    "calls": "",
    "calls without events": "",
    "conflicts": "",
    "bytes read": "MB",
    "bytes written": "MB",
    "memory at start": "MB",
    "memory, peak": "MB",
    "memory, settled": "MB",
    "cpu at rest": "s a minute",
    "calls at rest": "a minute",
    "restart to first action": "s",
    "doubling, wall": "s",
    "doubling, cpu": "s",
    "doubling, calls": "",
    "deletion, wall": "s",
}


def run(
    *,
    count: int = 1000,
    workers: int = 3,
    rounds: int = 3,
    names: Sequence[str] = peers.PEERS,
) -> Report:
    """Compare the peers; the median of the rounds counts."""
    with field() as ground:
        runs = in_turn(names, rounds, lambda name: Life(ground, name, count, workers).lead())
    settings = {"clusters": count, "workers": workers, "rounds": rounds}
    return Report("clusters", tuple(measures(runs, UNITS, TARGETS)), settings)


class Life:
    """One peer from its start to the deletion of all its clusters."""

    def __init__(self, ground: Field, name: str, count: int, workers: int) -> None:
        self._ground = ground
        self._count, self._workers = count, workers
        self._user, self._kubeconfig = ground.next_user()
        self._clusters = [f"c{index:05}" for index in range(count)]
        self.run = Run(name)

    async def begin(self) -> Run:
        """Only the making of the clusters."""
        async with self._ground.plot(f"bench-{self._user}") as plot:
            with self._operator(plot) as peer:
                await asyncio.sleep(1)
                await self._create(plot, peer)
        return self.run

    async def lead(self) -> Run:
        """All of it."""
        async with self._ground.plot(f"bench-{self._user}") as plot:
            with self._operator(plot) as peer:
                await asyncio.sleep(1)
                await self._create(plot, peer)
                await self._rest(peer)
                await self._double(plot, peer)
            if self.run.peer != peers.FLOOR:  # it does not know after a restart what it made before
                await plot.create(1, self._workers, first=self._count)
                with self._operator(plot) as peer:
                    seen = await plot.first_pod(f"c{self._count:05}")
                    self.run.values["restart to first action"] = seen - peer.started
                    began = time.monotonic()
                    await plot.delete_all()
                    self.run.values["deletion, wall"] = time.monotonic() - began
        return self.run

    def _operator(self, plot: Plot) -> AbstractContextManager[peers.Peer]:
        folder = self._ground.folder / self._user
        folder.mkdir(exist_ok=True)
        return peers.running(
            self.run.peer, kubeconfig=self._kubeconfig, namespace=plot.namespace, folder=folder
        )

    async def _create(self, plot: Plot, peer: peers.Peer) -> None:
        values = self.run.values
        base, before, began = peer.usage(), self._calls(), time.monotonic()
        seen: dict[str, float] = {}
        watching = asyncio.create_task(plot.ready(self._clusters, self._workers, seen))
        made = await plot.create(self._count, self._workers)
        await watching
        values["memory at start"] = base.resident
        values["wall"] = max(seen.values()) - began
        waits = sorted(seen[cluster] - made[cluster] for cluster in made)
        values["p50"] = statistics.median(waits)
        values["p99"] = waits[min(len(waits) - 1, int(len(waits) * 0.99))]
        used = peer.usage().since(base)
        values["cpu"], values["bytes read"], values["bytes written"] = used.cpu, used.read, used.written
        await asyncio.sleep(SETTLE)
        settled = peer.usage()
        values["cpu while settling"] = settled.cpu - base.cpu - used.cpu
        values["memory, settled"], values["memory, peak"] = settled.resident, settled.peak
        calls = self._calls()[len(before) :]
        values |= _counted(calls)
        values["conflicts"] = conflicts(calls)

    async def _rest(self, peer: peers.Peer) -> None:
        base, before = peer.usage(), self._calls()
        await asyncio.sleep(REST)
        self.run.values["cpu at rest"] = (peer.usage().cpu - base.cpu) * 60 / REST
        self.run.values["calls at rest"] = _counted(self._calls()[len(before) :])["calls"] * 60 / REST

    async def _double(self, plot: Plot, peer: peers.Peer) -> None:
        values = self.run.values
        base, before, began = peer.usage(), self._calls(), time.monotonic()
        seen: dict[str, float] = {}
        watching = asyncio.create_task(plot.ready(self._clusters, 2 * self._workers, seen))
        await plot.scale(self._count, 2 * self._workers)
        await watching
        values["doubling, wall"] = max(seen.values()) - began
        values["doubling, cpu"] = peer.usage().cpu - base.cpu
        values["doubling, calls"] = _counted(self._calls()[len(before) :])["calls"]

    def _calls(self) -> list[Call]:
        return self._ground.calls(self._user)


def _counted(calls: Sequence[Call]) -> dict[str, float]:
    counted = count_calls(calls)
    total = sum(counted.values())
    events = sum(number for what, number in counted.items() if what.endswith(" events"))
    return {"calls": total, "calls without events": total - events}
