"""One RayCluster that grows to very many workers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from kuberay_op_bench import peers
from kuberay_op_bench.compare import Run, in_turn, measures
from kuberay_op_bench.field import Field, count_calls, field
from kuberay_op_bench.report import Report

UNITS: Final = {"wall": "s", "cpu": "s", "calls": "", "memory, peak": "MB"}
TARGETS: Final[dict[tuple[str, str], float]] = {}


def run(
    *, workers: int = 2000, rounds: int = 3, names: Sequence[str] = (peers.DEFAULT, peers.OURS, peers.FLOOR)
) -> Report:
    """Compare the peers; the median of the rounds counts."""
    with field() as ground:
        runs = in_turn(names, rounds, lambda name: _one(ground, name, workers))
    return Report("one_big", tuple(measures(runs, UNITS, TARGETS)), {"workers": workers, "rounds": rounds})


async def _one(ground: Field, name: str, workers: int) -> Run:
    result = Run(name)
    user, kubeconfig = ground.next_user()
    folder = ground.folder / user
    folder.mkdir()
    async with ground.plot(f"big-{user}") as plot:
        with peers.running(name, kubeconfig=kubeconfig, namespace=plot.namespace, folder=folder) as peer:
            await plot.create(1, 1)
            await plot.ready(["c00000"], 1, {})
            base, before, began = peer.usage(), len(ground.calls(user)), time.monotonic()
            seen: dict[str, float] = {}
            watching = asyncio.create_task(plot.ready(["c00000"], workers, seen))
            await plot.scale(1, workers)
            await watching
            used = peer.usage().since(base)
            result.values["wall"] = seen["c00000"] - began
            result.values["cpu"], result.values["memory, peak"] = used.cpu, used.peak
            await asyncio.sleep(2)
            result.values["calls"] = sum(count_calls(ground.calls(user)[before:]).values())
    return result
