"""An operator that does nothing but write, as fast as it can: the worst case for the write fence.

Usage: hammer.py KUBECONFIG LEASE RENEW RETRY

Every key writes again the moment its last write was answered, so whenever the process is stopped, writes are
under way, half sent or about to be sent.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from itertools import count

import uvloop

from kuberay_op.clock import SystemClock
from kuberay_op.kube.client import Client
from kuberay_op.kube.fence import NotLeader
from kuberay_op.kube.resource import CONFIG_MAPS, Key
from kuberay_op.metrics import Metrics
from kuberay_op.runtime.leader import Leader, LeaseTimes, new_identity
from kuberay_op.runtime.manager import Manager
from kuberay_op.runtime.result import Result
from kuberay_op.runtime.shutdown import stop_on_signals


def think() -> None:
    """Keep the loop for a moment, so that a stop is likely to come between a decision and its write."""
    end = time.perf_counter() + 0.003
    while time.perf_counter() < end:
        pass


async def main(kubeconfig: str, lease: float, renew: float, retry: float) -> None:
    clock, rng, metrics = SystemClock(), random.Random(), Metrics(process=False)  # noqa: S311 (jitter)
    async with await Client.connect(kubeconfig, qps=0) as election:
        leader = Leader(
            election,
            name="hammer",
            namespace="default",
            identity=new_identity(rng),
            clock=clock,
            rng=rng,
            times=LeaseTimes(lease, renew, retry),
        )
        async with await Client.connect(kubeconfig, qps=0, fence=leader.fence) as client:
            manager = Manager(
                client, clock=clock, rng=rng, metrics=metrics, leader=leader, concurrency=20, coalesce=0
            )

            async def reconcile(key: Key) -> Result:
                if not key.name.startswith("nail"):
                    return Result.done()
                for number in count():
                    if manager.stop.is_set():
                        break
                    think()
                    body = {"data": {"blow": str(number), "ballast": "x" * 20_000}}
                    try:
                        await client.patch(CONFIG_MAPS, key.name, key.namespace, body, reason="a blow")
                    except NotLeader as refusal:
                        print(f"refused: {refusal}", flush=True)  # noqa: T201 (the test reads it)
                        raise
                return Result.done()

            manager.controller("hammer", CONFIG_MAPS, reconcile, when=lambda old, new: False)
            with stop_on_signals(manager.stop):
                await manager.run()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as in production
        runner.run(main(sys.argv[1], *map(float, sys.argv[2:])))
