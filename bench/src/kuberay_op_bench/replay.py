"""The replay server as a process of its own, so that its CPU does not count as the engine's.

``python -m kuberay_op_bench.replay --pods 10000 --events 60000 --rate 2000`` prints its address and serves
until its standard input is closed: a parent that dies takes it along.
"""

from __future__ import annotations

import asyncio
import sys

import click

from kuberay_op.testing.replay import Recording, ReplayServer
from kuberay_op_bench import pods


def recording(count: int, events: int) -> Recording:
    """Pods of a big cluster and what happens to them."""
    return Recording.of(
        f"/api/v1/namespaces/{pods.NAMESPACE}/pods",
        "v1",
        "Pod",
        (pods.stored(number) for number in range(count)),
        pods.changes(count, events),
    )


async def serve(count: int, events: int, rate: float) -> None:
    """Serve until standard input ends."""
    async with ReplayServer(recording(count, events), rate=rate, started=False) as server:
        print(server.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


@click.command()
@click.option("--pods", "count", type=int, required=True)
@click.option("--events", type=int, required=True)
@click.option("--rate", type=float, required=True)
def main(count: int, events: int, rate: float) -> None:
    """Serve a recording."""
    asyncio.run(serve(count, events, rate))


if __name__ == "__main__":
    main()
