"""Leader election on a clock that can be stopped, against a Lease kept in memory."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from random import Random
from typing import Any, cast

import pytest

from kuberay_op.errors import Misconfigured
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import AlreadyExists, Conflict, NotFound, Unreachable
from kuberay_op.kube.fence import NotLeader
from kuberay_op.kube.resource import Resource
from kuberay_op.metrics import Metrics
from kuberay_op.runtime.leader import Leader, LeaseTimes, new_identity
from kuberay_op.testing.clock import FakeClock

Object = dict[str, Any]


class Server:
    """The part of an API server that election needs: one Lease, optimistic locking, and outages."""

    def __init__(self) -> None:
        self.lease: Object | None = None
        self.version = 0
        self.down = False
        self.events: list[Object] = []
        self.before_write: Callable[[], None] = lambda: None

    def _check(self) -> None:
        if self.down:
            raise Unreachable("no answer")

    async def get(self, _: Resource, name: str, namespace: str, **__: Any) -> Object:
        self._check()
        if self.lease is None:
            raise NotFound("no lease")
        return self.lease

    async def create(self, resource: Resource, obj: Object, **_: Any) -> Object:
        self._check()
        if resource.kind == "Event":
            self.events.append(obj)
            return obj
        if self.lease is not None:
            raise AlreadyExists("there is one")
        return self._store(obj)

    async def replace(self, _: Resource, obj: Object, **__: Any) -> Object:
        self._check()
        self.before_write()
        if self.lease is None:
            raise NotFound("no lease")
        if obj["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise Conflict("changed meanwhile")
        return self._store(obj)

    def _store(self, obj: Object) -> Object:
        self.version += 1
        self.lease = {
            **obj,
            "metadata": {**obj["metadata"], "resourceVersion": str(self.version), "uid": "u"},
        }
        return self.lease

    @property
    def spec(self) -> Object:
        assert self.lease is not None
        spec: Object = self.lease["spec"]
        return spec


class World:
    """A server, a clock and any number of candidates."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.server = Server()
        self.metrics = Metrics(process=False)

    def candidate(self, identity: str, clock: FakeClock | None = None) -> Leader:
        return Leader(
            cast(Client, self.server),
            name="ray-operator-leader",
            namespace="system",
            identity=identity,
            clock=clock or self.clock,
            rng=Random(1),  # noqa: S311 (seeded on purpose)
            metrics=self.metrics,
        )

    def says_leading(self) -> float | None:
        return self.metrics.registry.get_sample_value(
            "leader_election_master_status", {"name": "ray-operator-leader"}
        )


@pytest.fixture
def world() -> World:
    return World()


async def term(leader: Leader) -> str:
    await leader.acquire()
    return await leader.hold()


async def test_the_first_candidate_creates_the_lease_as_every_client_writes_it(world: World) -> None:
    a = world.candidate("a")
    assert world.says_leading() == 0
    await a.acquire()
    assert world.says_leading() == 1
    assert world.server.spec == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2030-01-01T00:00:00.000000Z",
        "renewTime": "2030-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }
    await a.announce()
    assert world.server.events[0]["message"] == "a became leader"


async def test_a_leader_renews_and_a_standby_waits(world: World) -> None:
    a, b = world.candidate("a"), world.candidate("b")
    async with asyncio.TaskGroup() as group:
        leading = group.create_task(term(a))
        await world.clock.settle()
        standing_by = group.create_task(b.acquire())
        await world.clock.advance(120)
        assert (a.leading, b.leading, b.holder) == (True, False, "a")
        assert world.server.spec["renewTime"] == "2030-01-01T00:02:00.000000Z"
        assert world.server.spec["acquireTime"] == "2030-01-01T00:00:00.000000Z"
        leading.cancel()
        standing_by.cancel()


async def test_a_standby_takes_over_within_lease_and_retry_of_the_last_renewal(world: World) -> None:
    a, b = world.candidate("a"), world.candidate("b")
    leading = asyncio.create_task(term(a))
    await world.clock.advance(10)
    standing_by = asyncio.create_task(b.acquire())
    await world.clock.advance(10)
    leading.cancel()  # killed
    await asyncio.gather(leading, return_exceptions=True)
    died = world.clock.monotonic()
    await world.clock.advance(12.9)
    assert not standing_by.done(), "the lease has not lapsed yet"
    await world.clock.advance(15 + 2 - 12.9)
    assert standing_by.done()
    assert world.clock.monotonic() - died == 17
    assert world.server.spec["leaseTransitions"] == 1
    assert world.server.spec["holderIdentity"] == "b"


async def test_the_fence_closes_before_anyone_else_may_lead_whatever_the_process_does(world: World) -> None:
    stopped_clock = FakeClock()
    a, b = world.candidate("a", stopped_clock), world.candidate("b")
    leading = asyncio.create_task(term(a))
    await stopped_clock.settle()
    assert a.fence() == 10
    standing_by = asyncio.create_task(b.acquire())
    await world.clock.advance(17)  # a is stopped: its clock stands still because none of its code runs
    assert standing_by.done()
    # The moment it is continued its clocks show the time that has passed, before any of its tasks ran.
    stopped_clock.skip(60)
    with pytest.raises(NotLeader, match="was not renewed in time"):
        a.fence()
    await stopped_clock.leap(0)
    assert "was not renewed within 10 s" in leading.result()
    with pytest.raises(NotLeader, match="is not ours"):
        a.fence()
    assert not a.leading
    assert world.server.spec["holderIdentity"] == "b", "the old leader must not take the lease back"


async def test_the_fence_believes_the_clock_that_says_more(world: World) -> None:
    a = world.candidate("a")
    await a.acquire()
    world.clock.shift_wall(60)  # the machine was suspended, and its monotonic clock with it
    with pytest.raises(NotLeader):
        a.fence()


async def test_a_clock_set_back_changes_nothing(world: World) -> None:
    a = world.candidate("a")
    await a.acquire()
    world.clock.shift_wall(-3600)
    assert a.fence() == 10


async def test_times_count_from_the_start_of_the_renewal(world: World) -> None:
    a = world.candidate("a")
    task = asyncio.create_task(term(a))
    await world.clock.settle()
    world.server.before_write = lambda: world.clock.skip(3)  # a slow answer
    await world.clock.advance(2)
    assert world.clock.monotonic() == 5
    assert a.since_renewal() == 3
    task.cancel()


async def test_an_outage_ends_the_term_and_the_next_begins_when_it_is_over(world: World) -> None:
    a = world.candidate("a")
    task = asyncio.create_task(term(a))
    await world.clock.advance(4)
    world.server.down = True
    await world.clock.advance(9.9)
    assert a.leading
    await world.clock.advance(0.1)
    assert "no answer" in await task
    assert world.says_leading() == 0
    again = asyncio.create_task(a.acquire())
    await world.clock.advance(20)
    assert not again.done()
    world.server.down = False
    await world.clock.advance(2)
    assert again.done()
    assert world.server.spec["leaseTransitions"] == 0, "it never changed hands"


async def test_a_lease_taken_away_ends_the_term_at_the_next_renewal(world: World) -> None:
    a = world.candidate("a")
    task = asyncio.create_task(term(a))
    await world.clock.advance(4)
    lease = cast(Object, world.server.lease)
    world.server._store({**lease, "spec": {**lease["spec"], "holderIdentity": "thief"}})
    await world.clock.advance(2)
    assert task.result() == "the lease was taken by thief"


async def test_a_deleted_lease_is_made_again(world: World) -> None:
    a = world.candidate("a")
    task = asyncio.create_task(term(a))
    await world.clock.advance(4)
    world.server.lease = None
    await world.clock.advance(2)
    assert a.leading
    assert world.server.spec["holderIdentity"] == "a"
    task.cancel()


async def test_of_two_claims_one_wins(world: World) -> None:
    a, b = world.candidate("a"), world.candidate("b")
    first = asyncio.create_task(term(a))
    await world.clock.advance(1)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await a.release()
    assert "holderIdentity" not in world.server.spec
    c = world.candidate("c")
    tasks = [asyncio.create_task(b.acquire()), asyncio.create_task(c.acquire())]
    await world.clock.advance(5)
    assert sorted((b.leading, c.leading)) == [False, True]
    for task in tasks:
        task.cancel()


async def test_a_released_lease_is_taken_at_the_next_try(world: World) -> None:
    a, b = world.candidate("a"), world.candidate("b")
    leading = asyncio.create_task(term(a))
    await world.clock.settle()
    standing_by = asyncio.create_task(b.acquire())
    await world.clock.advance(6)
    leading.cancel()
    await asyncio.gather(leading, return_exceptions=True)
    await a.release()
    await world.clock.advance(2)
    assert standing_by.done()
    await a.release()
    assert world.server.spec["holderIdentity"] == "b", "a second release touches nobody else's lease"


async def test_an_event_that_cannot_be_recorded_is_no_error(world: World) -> None:
    a = world.candidate("a")
    await a.acquire()
    world.server.down = True
    await a.announce()
    assert world.server.events == []


async def test_a_claim_beaten_by_another_is_tried_again(world: World) -> None:
    a, b = world.candidate("a"), world.candidate("b")
    await a.acquire()
    await a.release()

    def quicker() -> None:
        world.server.before_write = lambda: None
        lease = cast(Object, world.server.lease)
        world.server._store(
            {**lease, "spec": {**lease["spec"], "holderIdentity": "c", "leaseDurationSeconds": 15}}
        )

    world.server.before_write = quicker
    task = asyncio.create_task(b.acquire())
    await world.clock.advance(10)
    assert not b.leading
    await world.clock.advance(10)
    await task
    assert world.server.spec["holderIdentity"] == "b"


def test_no_two_processes_have_the_same_identity() -> None:
    one, two = (new_identity(Random(seed)) for seed in (1, 2))  # noqa: S311 (seeded on purpose)
    assert one != two
    assert one.startswith(f"{socket.gethostname()}_")


async def test_a_release_that_fails_is_no_error(world: World) -> None:
    a = world.candidate("a")
    await a.release()  # never held
    await a.acquire()
    world.server.down = True
    await a.release()


async def test_a_standby_that_was_stopped_does_not_take_a_lease_that_is_renewed(world: World) -> None:
    leaders_clock = FakeClock()
    a, b = world.candidate("a", leaders_clock), world.candidate("b")
    leading = asyncio.create_task(term(a))
    await leaders_clock.settle()
    standing_by = asyncio.create_task(b.acquire())
    await world.clock.settle()
    await leaders_clock.advance(60)
    await world.clock.leap(60)
    assert not standing_by.done()
    leading.cancel()
    standing_by.cancel()


def test_times_that_make_no_sense_are_refused() -> None:
    with pytest.raises(Misconfigured, match="lease > renew > retry > 0 seconds, not 10, 10 and 2"):
        LeaseTimes(lease=10)
