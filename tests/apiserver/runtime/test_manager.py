"""The manager's life on a real API server: standing by, taking over, losing the lease, stopping."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from kuberay_op.clock import SystemClock
from kuberay_op.kube.client import Client
from kuberay_op.kube.resource import CONFIG_MAPS, LEASES, Key
from kuberay_op.metrics import Metrics
from kuberay_op.runtime.health import report
from kuberay_op.runtime.leader import Leader, LeaseTimes
from kuberay_op.runtime.manager import Manager
from kuberay_op.runtime.result import Result
from kuberay_op.testing.controlplane import ControlPlane

pytestmark = pytest.mark.apiserver
Eventually = Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]

TIMES = LeaseTimes(lease=3, renew=2, retry=0.3)


class Candidate:
    """A manager that notes the keys it looks at, with a lease in the test's namespace."""

    def __init__(self, name: str, client: Client, namespace: str, *, grace: float = 20.0) -> None:
        rng, clock = Random(name), SystemClock()  # noqa: S311 (seeded on purpose)
        self.name = name
        self.seen: list[str] = []
        self.cut_off = 0
        self.hold: asyncio.Event | None = None
        self.leader = Leader(
            client, name="it", namespace=namespace, identity=name, clock=clock, rng=rng, times=TIMES
        )
        self.manager = Manager(
            client,
            clock=clock,
            rng=rng,
            metrics=Metrics(process=False),
            leader=self.leader,
            namespaces=[namespace],
            grace=grace,
        )
        self.manager.controller("seen", CONFIG_MAPS, self.reconcile)

    async def reconcile(self, key: Key) -> Result:
        self.seen.append(key.name)
        if self.hold is not None and key.name == "slow":
            try:
                await self.hold.wait()
            except asyncio.CancelledError:
                self.cut_off += 1
                raise
        return Result.done()

    async def has_seen(self, name: str) -> bool:
        return name in self.seen

    async def leads(self) -> bool:
        return self.leader.leading


async def add(client: Client, namespace: str, name: str) -> None:
    body: dict[str, Any] = {"metadata": {"name": name, "namespace": namespace}}
    await client.create(CONFIG_MAPS, body, reason="a test")


async def test_a_standby_is_warm_does_nothing_and_takes_over(
    client: Client, namespace: str, eventually: Eventually
) -> None:
    await add(client, namespace, "first")
    a, b = Candidate("a", client, namespace), Candidate("b", client, namespace)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(a.manager.run())
        await eventually(lambda: a.has_seen("first"))
        group.create_task(b.manager.run())

        async def warm() -> bool:
            return (await report(b.manager.health.ready))[0]

        await eventually(warm)
        await add(client, namespace, "second")
        await eventually(lambda: a.has_seen("second"))
        store = b.manager.cache(CONFIG_MAPS)
        assert b.seen == []

        async def knows() -> bool:
            return Key(namespace, "second") in store

        await eventually(knows)
        running.cancel()  # dies without a word
        await eventually(lambda: b.has_seen("second"))
        assert "first" in b.seen, "a new leader looks at everything once"
        b.manager.stop.set()


async def test_a_lost_lease_ends_the_running_passes_and_the_process_stands_by(
    client: Client, namespace: str, eventually: Eventually
) -> None:
    await add(client, namespace, "slow")
    a = Candidate("a", client, namespace)
    a.hold = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(a.manager.run())
        await eventually(lambda: a.has_seen("slow"))
        await client.patch(LEASES, "it", namespace, {"spec": {"holderIdentity": "thief"}}, reason="a test")

        async def cut_off() -> bool:
            return a.cut_off == 1

        await eventually(cut_off)
        assert not a.leader.leading
        a.seen.clear()
        a.hold = None
        await eventually(lambda: a.has_seen("slow"))  # the thief's lease lapses, and the next term begins
        a.manager.stop.set()


async def test_stopping_waits_for_running_passes_and_gives_the_lease_back(
    client: Client, namespace: str, eventually: Eventually
) -> None:
    await add(client, namespace, "slow")
    a = Candidate("a", client, namespace)
    a.hold = asyncio.Event()
    last_words: list[bool] = []

    async def last_word() -> None:
        last_words.append(a.leader.leading)
        raise ValueError("must not keep the lease from being released")

    a.manager.on_stop(last_word)
    running = asyncio.create_task(a.manager.run())
    await eventually(lambda: a.has_seen("slow"))
    a.manager.stop.set()
    await asyncio.sleep(0.1)
    assert not running.done()
    well, text = await report(a.manager.health.ready)
    assert not well
    assert "[-]shutdown failed: shutting down" in text
    a.hold.set()
    await running
    assert a.cut_off == 0
    assert last_words == [True], "said after the last pass, while writing was still allowed"
    lease = await client.get(LEASES, "it", namespace)
    assert "holderIdentity" not in lease["spec"]


async def test_a_pass_that_outlasts_the_grace_period_is_cut_off(
    client: Client, namespace: str, eventually: Eventually
) -> None:
    await add(client, namespace, "slow")
    a = Candidate("a", client, namespace, grace=0.2)
    a.hold = asyncio.Event()
    running = asyncio.create_task(a.manager.run())
    await eventually(lambda: a.has_seen("slow"))
    a.manager.stop.set()
    await running
    assert a.cut_off == 1


async def test_a_standby_stops_without_having_led(
    control_plane: ControlPlane, client: Client, namespace: str, eventually: Eventually
) -> None:
    a, b = Candidate("a", client, namespace), Candidate("b", client, namespace)
    async with asyncio.TaskGroup() as group:
        group.create_task(a.manager.run())
        await eventually(a.leads)
        standby = group.create_task(b.manager.run())
        await asyncio.sleep(0.1)
        b.manager.stop.set()
        await standby
        assert (await client.get(LEASES, "it", namespace))["spec"]["holderIdentity"] == "a"
        a.manager.stop.set()
