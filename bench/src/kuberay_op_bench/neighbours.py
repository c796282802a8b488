"""A quiet user beside a noisy one: how long does a new RayCluster wait for its head Pod?

In one namespace many clusters are changed all the time; in another, one cluster after the other is made.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from kuberay_op_bench import peers
from kuberay_op_bench.compare import Run, in_turn, measures
from kuberay_op_bench.field import Field, Plot, field
from kuberay_op_bench.report import Report

#: Changes a second in the noisy namespace.
RATE: Final = 100
#: New clusters of the quiet user, one after the other.
SAMPLES: Final = 30

UNITS: Final = {"wait, p50": "s", "wait, p99": "s", "operator CPU meanwhile": "s a minute"}
TARGETS: Final = {("wait, p99", peers.DEFAULT): 0.1}


def run(*, count: int = 2000, rounds: int = 3, names: Sequence[str] = (peers.DEFAULT, peers.OURS)) -> Report:
    """Compare the peers; the median of the rounds counts."""
    with field() as ground:
        runs = in_turn(names, rounds, lambda name: _one(ground, name, count))
    settings = {"noisy clusters": count, "changes a second": RATE, "new clusters": SAMPLES, "rounds": rounds}
    return Report("neighbours", tuple(measures(runs, UNITS, TARGETS)), settings)


async def _one(ground: Field, name: str, count: int) -> Run:
    result = Run(name)
    user, kubeconfig = ground.next_user()
    folder = ground.folder / user
    folder.mkdir()
    async with ground.plot(f"noisy-{user}") as noisy, ground.plot(f"quiet-{user}") as quiet:
        both = f"{noisy.namespace},{quiet.namespace}"
        with peers.running(name, kubeconfig=kubeconfig, namespace=both, folder=folder) as peer:
            expected = [f"c{number:05}" for number in range(count)]
            watching = asyncio.create_task(noisy.ready(expected, 0, {}))
            await noisy.create(count, 0)
            await watching
            noise = asyncio.create_task(_make_noise(noisy, count))
            await asyncio.sleep(2)
            base, began = peer.usage(), time.monotonic()
            waits = [await quiet.head_pod_after_creation(number) for number in range(SAMPLES)]
            used, took = peer.usage().since(base), time.monotonic() - began
            noise.cancel()
            with suppress(asyncio.CancelledError):
                await noise
    waits.sort()
    result.values["wait, p50"] = statistics.median(waits)
    result.values["wait, p99"] = waits[-1]
    result.values["operator CPU meanwhile"] = used.cpu * 60 / took
    return result


async def _make_noise(noisy: Plot, count: int) -> None:
    """Change one cluster after the other, at a steady rate."""
    rng = random.Random(1)  # noqa: S311 (which cluster)
    began, number = time.monotonic(), 0
    while True:
        number += 1
        await noisy.touch(rng.randrange(count), number)
        await asyncio.sleep(max(0.0, began + number / RATE - time.monotonic()))
