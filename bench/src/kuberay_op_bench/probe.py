"""The engine under measurement, alone in its process: ``python -m kuberay_op_bench.probe sync|events``.

Prints one JSON object. Run by ``engine``, once per measurement, so that no measurement inherits the memory
of another.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import resource
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
import orjson
import psutil
import uvloop

from kuberay_op.clock import SystemClock
from kuberay_op.kube.cache import Store, label
from kuberay_op.kube.client import Client
from kuberay_op.kube.reflector import Reflector
from kuberay_op.kube.resource import PODS, Key, Resource
from kuberay_op.logs import LogSettings, setup
from kuberay_op.metrics import Metrics
from kuberay_op.runtime import memory
from kuberay_op.runtime.controller import Controller
from kuberay_op.runtime.queue import Queue
from kuberay_op.runtime.result import Result
from kuberay_op.runtime.wiring import owner_key
from kuberay_op_bench.pods import NAMESPACE

CLUSTERS: Final = Resource("ray.io", "v1", "rayclusters", "RayCluster")
CLUSTER_LABEL: Final = "ray.io/cluster"

#: Seconds between two looks at the queue and the loop.
SAMPLE: Final = 0.05


def usage() -> dict[str, float]:
    """Where the process stands: wall clock, CPU and memory."""
    return {
        "wall": time.perf_counter(),
        "cpu": time.process_time(),
        "rss": psutil.Process().memory_info().rss / 2**20,
    }


@dataclass
class Tally:
    """Counts the calls of the client, by verb and code."""

    calls: dict[str, int] = field(default_factory=dict)

    def request(self, **labels: Any) -> None:
        """A request was answered."""
        name = f"{labels['verb']} {labels['code']}"
        self.calls[name] = self.calls.get(name, 0) + 1

    def rate_limited(self, **labels: Any) -> None:
        """Not counted here."""

    def retried(self, **labels: Any) -> None:
        """Not counted here."""

    def resolved(self, **labels: Any) -> None:
        """Not counted here."""


@asynccontextmanager
async def reflecting(client: Client, store: Store) -> AsyncIterator[Reflector]:
    """A reflector of all Pods, at work."""
    rng = random.Random()  # noqa: S311 - jitter
    reflector = Reflector(client, PODS, store, clock=SystemClock(), rng=rng, namespaces=(NAMESPACE,))
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector
    finally:
        task.cancel()
        await asyncio.wait([task])


def pod_store() -> Store:
    """The cache of Pods with the index that a cluster controller needs."""
    return Store(PODS, indexers={"cluster": label(CLUSTER_LABEL)})


async def sync(kubeconfig: Path) -> dict[str, Any]:
    """List and watch until the cache is full; what that took and what it left behind."""
    tally = Tally()
    store = pod_store()
    async with await Client.connect(kubeconfig, qps=0, metrics=tally) as client:
        gc.collect()
        before = usage()
        async with reflecting(client, store) as reflector:
            await reflector.synced.wait()
            synced = usage()
            memory.settle()
            settled = usage()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "pods": len(store),
        "seconds": synced["wall"] - before["wall"],
        "cpu": synced["cpu"] - before["cpu"],
        "growth": settled["rss"] - before["rss"],
        "rss": settled["rss"],
        "peak": peak,
        "calls": tally.calls,
    }


@dataclass
class Load:
    """What happened while the events came in."""

    store: Store
    queue: Queue
    events: int = 0
    last_event: float = 0.0
    passes: int = 0
    depths: list[int] = field(default_factory=list)
    lags: list[float] = field(default_factory=list)

    def on_change(self, kind: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        """An event, as the engine hands it on: wake the owner of the Pod."""
        self.events += 1
        self.last_event = time.perf_counter()
        key = owner_key(new or old or {}, CLUSTERS)
        if key is not None:
            self.queue.add(key)

    async def reconcile(self, key: Key) -> Result:
        """What every pass over a cluster does first: look at its Pods."""
        pods = self.store.by_index("cluster", key.name)
        ready = sum(1 for pod in pods if is_ready(pod))
        self.passes += 1
        return Result.done().saying(pods=len(pods), ready=ready)

    def idle(self) -> bool:
        """Whether there is nothing left to do."""
        return not len(self.queue) and not self.queue.in_work

    async def sample(self) -> None:
        """Note the depth of the queue and the lateness of the loop, for ever."""
        while True:
            due = time.perf_counter() + SAMPLE
            await asyncio.sleep(SAMPLE)
            self.lags.append(time.perf_counter() - due)
            self.depths.append(len(self.queue))


async def until(condition: Callable[[], bool]) -> None:
    """Wait, looking so seldom that the looking costs nothing."""
    while not condition():  # noqa: ASYNC110 - an event would have to be set by what is measured
        await asyncio.sleep(0.005)


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether the Pod's condition Ready is true."""
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


async def events(kubeconfig: Path, count: int) -> dict[str, Any]:
    """Take in ``count`` watch events with a controller at work; how far the queue falls behind."""
    clock, rng, metrics = SystemClock(), random.Random(), Metrics()  # noqa: S311 - jitter
    store = pod_store()
    queue = Queue(clock=clock, rng=rng, metrics=metrics.queue("bench"))
    load = Load(store, queue)
    controller = Controller(
        "bench",
        load.reconcile,
        queue=queue,
        clock=clock,
        rng=rng,
        kind="RayCluster",
        metrics=metrics.controller("bench"),
    )
    async with (
        await Client.connect(kubeconfig, qps=0, metrics=metrics) as client,
        reflecting(client, store) as reflector,
        asyncio.TaskGroup() as tasks,
    ):
        await reflector.synced.wait()
        reflector.add_handler(load.on_change)
        working = tasks.create_task(controller.run())
        sampling = tasks.create_task(load.sample())
        memory.settle()
        await until(load.idle)  # the first pass over all clusters is not measured
        load.events = load.passes = 0
        before = usage()
        await client.request("POST", "/-/start")
        await until(lambda: load.events >= count and load.idle())
        after = usage()
        sampling.cancel()
        queue.close()
        await working
    seconds = load.last_event - before["wall"]
    lags = sorted(load.lags)
    return {
        "events": load.events,
        "seconds": seconds,
        "cpu": after["cpu"] - before["cpu"],
        "passes": load.passes,
        "depth_max": max(load.depths),
        "depth_last_half": max(load.depths[len(load.depths) // 2 :]),
        "drain": after["wall"] - load.last_event,
        "lag_p99": lags[int(len(lags) * 0.99)],
        "lag_max": lags[-1],
        "growth": after["rss"] - before["rss"],
    }


@click.command()
@click.argument("what", type=click.Choice(["sync", "events"]))
@click.option("--kubeconfig", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--count", type=int, default=0, help="Events to wait for.")
@click.option("--core", type=int, help="Run on this core only.")
@click.option("--log", type=click.Path(path_type=Path), required=True, help="The log, as in production.")
def main(what: str, kubeconfig: Path, count: int, core: int | None, log: Path) -> None:
    """Measure once."""
    if core is not None:
        os.sched_setaffinity(0, {core})
    memory.tune()  # as `kuberay-op run` does, like all that follows
    logging = setup(LogSettings(file=log, level=100))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result = runner.run(sync(kubeconfig) if what == "sync" else events(kubeconfig, count))
    logging.close()
    print(orjson.dumps(result).decode())


if __name__ == "__main__":
    main()
