"""Leader election by Lease: of several operators, ours or the reference, one works and the others stand by.

The rules are those of every Kubernetes client. A standby watches the Lease; when it has not changed for the
duration written in it, by the standby's own clock, the standby claims it. The leader renews it every
``retry`` seconds.

Work ends before the lease can lapse, by the leader's own clock and without anybody having to run: the client
asks ``fence`` before each of the two steps of a write (``kube/fence.py``). All times below count from the
*start* of the last renewal that succeeded, so a standby cannot have seen it earlier::

    0 ─────────── renew (10 s) ─────────────── lease (15 s)
    writes leave   │ none leaves, and the      │ a standby may claim at
                   │ server carries none out   │ the earliest here

A process that was stopped finds the fence closed when it is continued: time has passed for it too. Of the
monotonic clock and the wall clock the one that says *more* time has passed counts, since either can stand
still while a machine is suspended.

``acquire`` and ``hold`` are one term; a lost lease ends the term, not the process (see ADR 6).
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Final
from uuid import UUID

from kuberay_op.clock import Clock
from kuberay_op.errors import Misconfigured
from kuberay_op.kube.client import URGENT, Client
from kuberay_op.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from kuberay_op.kube.fence import NotLeader
from kuberay_op.kube.resource import LEASES, Object, Resource
from kuberay_op.logs import get_logger
from kuberay_op.metrics import Metrics
from kuberay_op.runtime.lease import Record, claimed, new_lease, record_of, released

#: Shortest time a write may need; with less left it is not sent.
SHORTEST_WRITE: Final = 0.5

#: Part of the retry period that is taken off by chance, so that standbys do not ask in step.
JITTER: Final = 0.2

CORE_EVENTS: Final = Resource("", "v1", "events", "Event")

_log = get_logger("leader")


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Seconds: how long a lease lasts, when work ends without renewal, and how often to try."""

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease > self.renew > self.retry > 0:
            raise Misconfigured(
                f"leader election needs lease > renew > retry > 0 seconds, "
                f"not {self.lease:g}, {self.renew:g} and {self.retry:g}"
            )


def new_identity(rng: Random) -> str:
    """A name for this process that no other has: the host's name and a random part."""
    return f"{socket.gethostname()}_{UUID(int=rng.getrandbits(128), version=4)}"


class Leader:
    """Acquires, holds and releases one Lease. Needs a client of its own, without a fence or a rate limit."""

    def __init__(
        self,
        client: Client,
        *,
        name: str,
        namespace: str,
        identity: str,
        clock: Clock,
        rng: Random,
        times: LeaseTimes = LeaseTimes(),  # noqa: B008 (frozen, so sharing one is safe)
        metrics: Metrics | None = None,
    ) -> None:
        self.identity = identity
        self.name = name
        self.namespace = namespace
        self.times = times
        self._client = client
        self._clock = clock
        self._rng = rng
        self._metrics = metrics
        self._lease: Object | None = None  # as last read or written
        self._observed: Record | None = None
        self._observed_at = 0.0
        self._renewed: tuple[float, datetime] | None = None  # None: not leading
        self._report()

    @property
    def leading(self) -> bool:
        """Whether this process holds the lease, as far as it knows."""
        return self._renewed is not None

    @property
    def holder(self) -> str:
        """Who held the lease when it was last seen."""
        return self._observed.holder if self._observed else ""

    def since_renewal(self) -> float:
        """Seconds since the last successful renewal began, by the clock that says more."""
        if self._renewed is None:
            return float("inf")
        monotonic, wall = self._renewed
        return max(self._clock.monotonic() - monotonic, (self._clock.now() - wall).total_seconds())

    def fence(self) -> float:
        """Seconds within which a write sent now must have happened; raises ``NotLeader`` when none may be."""
        if self._renewed is None:
            raise NotLeader(f"the lease {self.namespace}/{self.name} is not ours, so nothing was written")
        left = self.times.renew - self.since_renewal()
        if left < SHORTEST_WRITE:
            raise NotLeader(
                f"the lease {self.namespace}/{self.name} was not renewed in time, so nothing was written"
            )
        return left

    async def acquire(self) -> None:
        """Wait until the lease is ours."""
        last = ""
        while True:
            try:
                if await self._try():
                    break
                if self.holder != last:
                    last = self.holder
                    _log.info("standing by", lease=self.name, leader=last)
            except ApiError as error:
                _log.warning("the lease could not be asked for", lease=self.name, error=str(error))
            await self._clock.sleep(self._until_next_try())
        self._report()
        _log.info("became leader", lease=self.name, namespace=self.namespace, identity=self.identity)

    async def hold(self) -> str:
        """Renew the lease until that fails; says why it did. From then on nothing can be written."""
        try:
            return await self._renew_until_lost()
        finally:
            self._renewed = None
            self._report()

    async def release(self) -> None:
        """Give the lease back, so that a standby need not wait; does nothing if it is not ours.

        Call it when all work and ``hold`` have ended.
        """
        lease = self._lease
        if lease is None or self.holder != self.identity:
            return
        try:
            await self._client.replace(
                LEASES,
                released(lease, self._clock.now()),
                reason="shutting down",
                owner=URGENT,
                deadline=self.times.retry,
            )
            _log.info("released the lease", lease=self.name)
        except ApiError as error:
            _log.warning("the lease could not be released and will lapse", lease=self.name, error=str(error))

    async def announce(self) -> None:
        """Record an event on the Lease that says who leads now. Best effort."""
        now = self._clock.now()
        moment = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        uid = ((self._lease or {}).get("metadata") or {}).get("uid", "")
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{self.name}.", "namespace": self.namespace},
            "involvedObject": {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "name": self.name,
                "namespace": self.namespace,
                "uid": uid,
            },
            "type": "Normal",
            "reason": "LeaderElection",
            "message": f"{self.identity} became leader",
            "source": {"component": self.identity},
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
        try:
            await self._client.create(
                CORE_EVENTS, event, reason="a new leader", owner=URGENT, deadline=self.times.retry
            )
        except ApiError as error:
            _log.debug("the event about the new leader was not recorded", error=str(error))

    async def _renew_until_lost(self) -> str:
        problem = "the process was held up"
        while True:
            left = self.times.renew - self.since_renewal()
            if left > 0:
                await self._clock.sleep(min(self.times.retry, left))
            if self.since_renewal() >= self.times.renew:
                return f"the lease was not renewed within {self.times.renew:g} s: {problem}"
            try:
                if not await self._try():
                    return f"the lease was taken by {self.holder}"
            except ApiError as error:
                problem = str(error)
                _log.warning("the lease could not be renewed", lease=self.name, error=problem)

    async def _try(self) -> bool:
        """Claim or renew the lease if that is allowed; tells whether it is ours."""
        if self.leading and self._lease is not None:
            try:
                return await self._claim(self._lease)
            except (Conflict, NotFound):
                pass  # somebody touched it: look at what it is now
        try:
            lease = await self._client.get(
                LEASES, self.name, self.namespace, owner=URGENT, deadline=self._limit()
            )
        except NotFound:
            lease = new_lease(self.name, self.namespace)
        self._observe(lease)
        record = record_of(lease)
        if record.holder not in ("", self.identity) and self._since_observed() < record.duration:
            return False
        try:
            return await self._claim(lease)
        except (Conflict, AlreadyExists):
            return False  # another was quicker

    async def _claim(self, lease: Object) -> bool:
        started = self._clock.monotonic(), self._clock.now()
        body = claimed(lease, self.identity, self.times.lease, started[1])
        exists = "resourceVersion" in lease["metadata"]
        write = self._client.replace if exists else self._client.create
        reason = "renew the lease" if self.leading else "become leader"
        answer = await write(LEASES, body, reason=reason, owner=URGENT, deadline=self._limit())
        self._observe(answer)
        self._renewed = started
        return True

    def _observe(self, lease: Object) -> None:
        self._lease = lease
        record = record_of(lease)
        if record != self._observed:
            self._observed = record
            self._observed_at = self._clock.monotonic()

    def _until_next_try(self) -> float:
        """The retry period, or less if the lease lapses before: then nobody leads, and somebody should."""
        wait = self.times.retry * (1.0 - JITTER * self._rng.random())
        if self._observed is None or not self._observed.holder:
            return wait
        lapses_in = self._observed.duration - self._since_observed()
        return min(wait, lapses_in) if lapses_in > 0 else wait

    def _since_observed(self) -> float:
        return self._clock.monotonic() - self._observed_at

    def _limit(self) -> float:
        """Seconds one request may take, so that there is time for another before the lease is lost."""
        half = self.times.renew / 2
        return max(0.1, min(half, self.times.renew - self.since_renewal())) if self.leading else half

    def _report(self) -> None:
        if self._metrics:
            self._metrics.leader(self.name, leading=self.leading)
