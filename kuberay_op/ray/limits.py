"""What stands between us and one cluster's Ray: so many requests at once, and a breaker.

``Gates`` keeps one ``Gate`` per Ray cluster, so that a cluster in trouble costs only itself.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Protocol

from kuberay_op.clock import Clock
from kuberay_op.ray.breaker import Breaker, BreakerSettings, State
from kuberay_op.ray.errors import HeldBack, RayError

#: Requests to one cluster that may be under way at once.
CONCURRENCY: Final = 4


class RayMetrics(Protocol):
    """Where numbers go; the operator passes one that feeds Prometheus."""

    def request(self, *, call: str, outcome: str, seconds: float) -> None:
        """A request is over. ``outcome`` is ``ok`` or that of its error."""
        ...

    def breaker(self, *, cluster: str, state: State | None) -> None:
        """The breaker of a cluster changed; None when the cluster is gone."""
        ...


class NoMetrics:
    """Counts nothing."""

    def request(self, *, call: str, outcome: str, seconds: float) -> None:
        """Ignore it."""

    def breaker(self, *, cluster: str, state: State | None) -> None:
        """Ignore it."""


class Gate:
    """One cluster's limit and breaker."""

    def __init__(self, cluster: str, *, limit: int, breaker: Breaker) -> None:
        self.cluster = cluster
        self.breaker = breaker
        self._limit = limit
        self._slots = asyncio.Semaphore(limit)

    @asynccontextmanager
    async def slot(self, doing: str, *, patience: float) -> AsyncIterator[None]:
        """One of the cluster's requests at a time; gives up after ``patience`` seconds in the queue."""
        try:
            async with asyncio.timeout(patience):
                await self._slots.acquire()
        except TimeoutError:
            raise HeldBack(
                f"{doing}: not sent, {self._limit} requests to {self.cluster} are under way and none ended "
                f"within {patience:g} s"
            ) from None
        try:
            yield
        finally:
            self._slots.release()

    @asynccontextmanager
    async def guard(self, doing: str, *, patience: float) -> AsyncIterator[None]:
        """A slot, if the breaker allows; what happens inside is told to the breaker."""
        self._check(doing)
        async with self.slot(doing, patience=patience):
            self._check(doing)  # the queue may have been long
            ticket = self.breaker.enter()
            healthy: bool | None = None
            try:
                yield
                healthy = True
            except RayError as error:
                healthy = not error.fault
                raise
            finally:
                self.breaker.leave(ticket, healthy=healthy)

    def _check(self, doing: str) -> None:
        wait = self.breaker.wait()
        if wait > 0:
            raise HeldBack(
                f"{doing}: not sent, {self.cluster} keeps failing and is left alone for another {wait:.1f} s",
                after=wait,
            )


class Gates:
    """The gate of every cluster, made when first asked for."""

    def __init__(
        self,
        *,
        clock: Clock,
        rng: random.Random,
        limit: int = CONCURRENCY,
        settings: BreakerSettings | None = None,
        metrics: RayMetrics | None = None,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._limit = limit
        self._settings = settings or BreakerSettings()
        self._metrics = metrics or NoMetrics()
        self._gates: dict[str, Gate] = {}

    def of(self, cluster: str) -> Gate:
        """The gate of a cluster (``namespace/name``)."""
        gate = self._gates.get(cluster)
        if gate is None:
            gate = self._gates[cluster] = self._make(cluster)
        return gate

    def forget(self, cluster: str) -> None:
        """The cluster is gone; requests under way end as they may."""
        if self._gates.pop(cluster, None) is not None:
            self._metrics.breaker(cluster=cluster, state=None)

    def __len__(self) -> int:
        return len(self._gates)

    def _make(self, cluster: str) -> Gate:
        breaker = Breaker(
            clock=self._clock,
            rng=self._rng,
            settings=self._settings,
            on_change=lambda state: self._report(cluster, breaker, state),
        )
        return Gate(cluster, limit=self._limit, breaker=breaker)

    def _report(self, cluster: str, breaker: Breaker, state: State) -> None:
        gate = self._gates.get(cluster)
        if gate is not None and gate.breaker is breaker:  # not the late news of a cluster that is gone
            self._metrics.breaker(cluster=cluster, state=state)
