"""The engine behind a network that breaks at random: whatever happens, the cache ends up equal to the server.

A writer changes objects directly on the API server. The engine (client, reflectors, queues, a small
controller that answers every change with a write of its own) sees that server only through the fault proxy,
which stays faulty to the end. A failure names its seed; ``FAULT_SEED`` runs it again.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import psutil
import pytest
import uvloop

from kuberay_op.clock import SystemClock
from kuberay_op.kube import config
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import ApiError
from kuberay_op.kube.reflector import Reflector
from kuberay_op.kube.resource import CONFIG_MAPS, PODS, Key, Resource, key_of
from kuberay_op.runtime.queue import Queue, QueueClosed
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.faults import Fault, FaultPlan, FaultProxy

log = logging.getLogger(__name__)

#: Shorter than in production, so that a half-open watch costs a short test little.
SILENCE: Final = 2.0
DEADLINE: Final = 3.0

#: Not a measure of speed: so long after the last change something is lost for good.
LOST: Final = 120.0

WRITERS: Final = 4
NAMES_PER_WRITER: Final = 12
WORKERS: Final = 4

Objects = dict[Key, dict[str, Any]]


@dataclass
class Mirror:
    """What the engine knows of one resource, with the controller that works on it."""

    reflector: Reflector
    queue: Queue
    client: Client
    selector: str | None = None
    handed: dict[Key, str | None] = field(default_factory=dict)  # the version a worker last saw of a key

    def on_change(self, kind: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        self.queue.add(key_of(obj))

    async def work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except QueueClosed:
                return
            try:
                await self.echo(key)
                self.queue.forget(key)
            except ApiError:
                self.queue.retry(key, cap=1.0)
            finally:
                self.queue.done(key)

    async def echo(self, key: Key) -> None:
        """Copy the label ``turn`` into an annotation: a write that depends on the latest state."""
        obj = self.reflector.store.get(key)
        self.handed[key] = obj["metadata"]["resourceVersion"] if obj is not None else None
        if obj is None or self.selector or echoed(obj):
            return
        metadata = obj["metadata"]
        body = {
            "metadata": {
                "resourceVersion": metadata["resourceVersion"],
                "annotations": {"echo": metadata["labels"]["turn"]},
            }
        }
        await self.client.patch(
            self.reflector.resource, key.name, key.namespace, body, reason="the turn changed", owner=key
        )


def echoed(obj: Mapping[str, Any]) -> bool:
    metadata = obj["metadata"]
    turn = (metadata.get("labels") or {}).get("turn")
    return turn == (metadata.get("annotations") or {}).get("echo")


@dataclass
class Writer:
    """Changes its own objects, one random change after another, directly on the server."""

    client: Client
    namespace: str
    number: int
    rng: Random
    turn: int = 0
    alive: set[tuple[Resource, str]] = field(default_factory=set)
    changed: set[tuple[Resource, Key]] = field(default_factory=set)

    async def write(self, changes: int) -> None:
        for _ in range(changes):
            await self.change()
            if self.rng.random() < 0.3:  # bursts with pauses, as real clusters have them
                await asyncio.sleep(self.rng.random() * 0.1)

    async def change(self) -> None:
        resource = self.rng.choice((CONFIG_MAPS, PODS))
        name = f"w{self.number}-{self.rng.randrange(NAMES_PER_WRITER)}"
        self.turn += 1
        labels = {"turn": str(self.turn), "parity": "even" if self.turn % 2 else "odd"}
        self.changed.add((resource, Key(self.namespace, name)))
        if (resource, name) not in self.alive:
            await self.client.create(resource, self.manifest(resource, name, labels), reason="random")
            self.alive.add((resource, name))
        elif self.rng.random() < 0.3:
            await self.delete(resource, name)
        else:
            body = {"metadata": {"labels": labels}}
            await self.client.patch(resource, name, self.namespace, body, reason="random")

    async def delete(self, resource: Resource, name: str) -> None:
        await self.client.delete(resource, name, self.namespace, reason="random", grace=0)
        self.alive.discard((resource, name))

    async def delete_all(self) -> None:
        for resource, name in sorted(self.alive, key=lambda pair: (pair[0].plural, pair[1])):
            self.changed.add((resource, Key(self.namespace, name)))
            await self.delete(resource, name)

    def manifest(self, resource: Resource, name: str, labels: dict[str, str]) -> dict[str, Any]:
        meta = {"name": name, "namespace": self.namespace, "labels": labels}
        manifest: dict[str, Any] = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": meta,
        }
        if resource is PODS:
            containers = [{"name": "pause", "image": "pause", "env": [{"name": "X", "value": "y" * 500}]}]
            return {**manifest, "spec": {"containers": containers, "automountServiceAccountToken": False}}
        return {**manifest, "data": {"text": "z" * self.rng.randrange(2_000)}}


async def on_server(client: Client, mirror: Mirror, namespace: str) -> Objects:
    """The truth, without what caches leave out."""
    listed = await client.list(mirror.reflector.resource, namespace, label_selector=mirror.selector)
    for obj in listed.items:
        obj["metadata"].pop("managedFields", None)
    return {key_of(obj): obj for obj in listed.items}


async def difference(
    client: Client, mirror: Mirror, namespace: str, changed: Iterable[tuple[Resource, Key]]
) -> str | None:
    """What the engine does not know yet, or has not worked on since; None when all is well."""
    resource = mirror.reflector.resource
    truth = await on_server(client, mirror, namespace)
    cached = {key_of(obj): obj for obj in mirror.reflector.store.list()}
    if cached != truth:
        wrong = [key for key in truth.keys() | cached.keys() if truth.get(key) != cached.get(key)]
        return f"the cache of {resource} ({mirror.selector}) differs from the server in {wrong}"
    if mirror.selector is None:
        for key, obj in truth.items():
            if not echoed(obj):
                return f"{resource} {key} was never worked on after its last change"
    for kind, key in changed:
        version = truth[key]["metadata"]["resourceVersion"] if key in truth else None
        if kind is resource and mirror.handed.get(key) != version:
            return f"{resource} {key} is at {version}, a worker last saw {mirror.handed.get(key)}"
    return None


async def converge(client: Client, mirrors: list[Mirror], writers: list[Writer], namespace: str) -> None:
    changed = {pair for writer in writers for pair in writer.changed}
    deadline = time.monotonic() + LOST
    for mirror in mirrors:
        while (missing := await difference(client, mirror, namespace, changed)) is not None:
            assert time.monotonic() < deadline, missing
            await asyncio.sleep(0.2)


@dataclass(frozen=True)
class Toll:
    """What a run went through."""

    faults: Counter[Fault]
    calls: Counter[tuple[str, str]]

    def __str__(self) -> str:
        faults = ", ".join(f"{name} {count}" for name, count in self.faults.most_common())
        calls = ", ".join(f"{' '.join(call)} {count}" for call, count in self.calls.most_common())
        return f"{self.faults.total()} faults ({faults}) in {self.calls.total()} calls ({calls})"


async def exercise(
    plane: ControlPlane, namespace: str, folder: Path, *, seed: int, changes: int, streaming: bool
) -> Toll:
    """One whole life of the engine: start, many changes, convergence, everything deleted, stop."""
    rng = Random(f"engine/{seed}")  # noqa: S311 - repeatable, not secret
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        connection = await config.load(plane.kubeconfig)
        proxy = await stack.enter_async_context(FaultProxy(connection, FaultPlan(seed), pause=0.05))
        direct = await stack.enter_async_context(await Client.connect(plane.kubeconfig, qps=0))
        faulty = await stack.enter_async_context(
            await Client.connect(
                proxy.write_kubeconfig(folder / "kubeconfig"), qps=0, deadline=DEADLINE, rng=rng
            )
        )
        mirrors = [
            Mirror(
                Reflector(
                    faulty,
                    resource,
                    clock=clock,
                    rng=rng,
                    namespaces=(namespace,),
                    label_selector=selector,
                    silence=SILENCE,
                    streaming=streaming,
                    page=7,
                ),
                Queue(clock=clock, rng=rng),
                faulty,
                selector,
            )
            for resource, selector in ((CONFIG_MAPS, None), (PODS, None), (CONFIG_MAPS, "parity=even"))
        ]
        writers = [
            Writer(direct, namespace, n, Random(f"{seed}/{n}"))  # noqa: S311 - repeatable, not secret
            for n in range(WRITERS)
        ]
        async with asyncio.TaskGroup() as engine:
            tasks = []
            for mirror in mirrors:
                mirror.reflector.add_handler(mirror.on_change)
                tasks += [
                    engine.create_task(mirror.reflector.run()),
                    engine.create_task(mirror.queue.run()),
                    *(engine.create_task(mirror.work()) for _ in range(WORKERS)),
                ]
            async with asyncio.TaskGroup() as writing:
                for writer in writers:
                    writing.create_task(writer.write(changes // WRITERS))
            await converge(direct, mirrors, writers, namespace)
            for writer in writers:
                await writer.delete_all()
            await converge(direct, mirrors, writers, namespace)
            for task in tasks:
                task.cancel()
    return Toll(proxy.plan.strikes, proxy.calls)


async def settled(before: set[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
    """Tasks that are new; connections end a few turns of the loop after they were closed."""
    for _ in range(100):
        if not asyncio.all_tasks() - before:
            break
        await asyncio.sleep(0.02)
    return asyncio.all_tasks() - before


def live_objects() -> int:
    gc.collect()
    return len(gc.get_objects())


def megabytes() -> float:
    gc.collect()
    return psutil.Process().memory_info().rss / 2**20


Run = Callable[..., Awaitable[None]]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Keep the engine's complaints about the network out of pytest's memory: there are thousands."""
    logger = logging.getLogger("kube")
    before = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(before)


@pytest.fixture
def run(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Run:
    """Exercise the engine in the namespace of this test; a failure says how to repeat it."""

    async def run(*, seed: int, changes: int, streaming: bool = True) -> None:
        tasks = asyncio.all_tasks()
        seed = int(os.environ.get("FAULT_SEED", seed))
        try:
            toll = await exercise(
                control_plane, namespace, tmp_path, seed=seed, changes=changes, streaming=streaming
            )
        except Exception as error:
            error.add_note(f"FAULT_SEED={seed} meets the same faults again")
            raise
        log.info("%d changes with seed %d: %s", changes, seed, toll)
        assert await settled(tasks) == set(), "these tasks outlive the engine"

    return run


@pytest.mark.apiserver
@pytest.mark.parametrize(
    ("loop_factory", "streaming"),
    [(uvloop.new_event_loop, True), (asyncio.new_event_loop, False)],
    ids=["uvloop, streamed list", "asyncio, paged list"],
)
def test_the_cache_equals_the_server_after_random_changes(
    run: Run, loop_factory: Callable[[], asyncio.AbstractEventLoop], streaming: bool
) -> None:
    async def changed() -> None:
        await run(seed=1, changes=40, streaming=streaming)  # fills the caches of the libraries we use
        level, changes = live_objects(), 400
        await run(seed=2, changes=changes, streaming=streaming)
        # An object forgotten at every change would be five and more: it is made of dicts and lists.
        assert live_objects() - level < 3 * changes

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(changed())


@pytest.mark.apiserver
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_nothing_is_lost_or_kept_in_ten_thousand_changes(run: Run) -> None:
    async def changed() -> None:
        await run(seed=3, changes=1_000)
        objects, memory = live_objects(), megabytes()
        await run(seed=4, changes=10_000)
        assert live_objects() - objects < 2_000
        assert megabytes() - memory < 20

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(changed())


@pytest.mark.apiserver
@pytest.mark.slow
@pytest.mark.timeout(24 * 3600)
def test_soak(run: Run) -> None:
    """Round after round with other seeds, for ``SOAK_SECONDS`` (``make soak``: an hour)."""

    async def soak() -> None:
        end = time.monotonic() + float(os.environ.get("SOAK_SECONDS", "60"))
        await run(seed=100, changes=1_000)
        memory, level = megabytes(), live_objects()
        seed = 101
        while time.monotonic() < end:
            await run(seed=seed, changes=1_000, streaming=seed % 2 == 0)
            log.info("after seed %d: %.0f MB, started with %.0f", seed, megabytes(), memory)
            seed += 1
        assert live_objects() - level < 2_000
        assert megabytes() - memory < 30

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(soak())
