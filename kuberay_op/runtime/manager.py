"""Puts the parts together: caches, controllers, leader, health and the order in which they start and stop.

::

    manager = Manager(client, clock=clock, rng=rng, metrics=metrics, leader=leader)
    pods = manager.cache(PODS, label_selector="app=ray")
    manager.controller("things", THINGS, reconcile).owns(PODS)
    await manager.run()

Starting: all caches fill, in leaders and standbys alike; whoever leads then looks at every object once.
Stopping (``stop`` is set): no more keys are taken; running passes finish, at most for the grace period; what
was registered with ``on_stop`` runs; events are flushed; the lease is given back; the caches end.

Losing the lease ends the running passes at once, and the process stands by again with warm caches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import Any, Final, NoReturn

from kuberay_op.clock import Clock
from kuberay_op.kube.cache import Indexer, Store
from kuberay_op.kube.client import Client
from kuberay_op.kube.events import Events
from kuberay_op.kube.reflector import Handler, Reflector
from kuberay_op.kube.resource import Key, Resource
from kuberay_op.kube.trim import EVERYTHING, Trim
from kuberay_op.logs import get_logger
from kuberay_op.metrics import Metrics
from kuberay_op.runtime.controller import CONCURRENCY, TIMEOUT, Controller, Reconcile
from kuberay_op.runtime.expectations import Expectations
from kuberay_op.runtime.health import Health, Hearing, Heartbeat
from kuberay_op.runtime.leader import Leader
from kuberay_op.runtime.queue import COALESCE, Queue
from kuberay_op.runtime.result import Result
from kuberay_op.runtime.shutdown import GRACE
from kuberay_op.runtime.supervisor import Supervisor
from kuberay_op.runtime.waiting import happens
from kuberay_op.runtime.wiring import Predicate, Wiring, any_change

#: Seconds that a new leader waits for watches that are failing.
CATCH_UP: Final = 10.0

#: Seconds for each task registered with ``on_stop``, and for the last events.
LAST_WORD: Final = 3.0

_log = get_logger("manager")


class Manager:
    """See the module. Everything is declared before ``run``, which returns after ``stop`` is set.

    ``namespaces`` empty means all. Without a ``leader`` this process takes itself for the only one.
    """

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        rng: Random,
        metrics: Metrics,
        leader: Leader | None = None,
        namespaces: Sequence[str] = (),
        concurrency: int = CONCURRENCY,
        coalesce: float = COALESCE,
        grace: float = GRACE,
        stop: asyncio.Event | None = None,
    ) -> None:
        self.client = client
        self.leader = leader
        self.stop = stop or asyncio.Event()
        self.reflectors: dict[str, Reflector] = {}
        self.wirings: dict[str, Wiring] = {}
        #: What users read with ``kubectl describe``; written in the background, flushed at the end.
        self.events = Events(client, clock=clock, rng=rng)
        self.supervisor = Supervisor(clock, rng)
        self.heartbeat = Heartbeat(clock)
        metrics.loop_lag(lambda: self.heartbeat.lag)
        self.health = Health(
            live={
                "loop": self.heartbeat.check,
                "watches": Hearing(client, self.reflectors, clock=clock).check,
            },
            ready={"caches": self._caches_filled, "shutdown": self._not_stopping},
        )
        self._clock = clock
        self._rng = rng
        self._metrics = metrics
        self._namespaces = namespaces
        self._concurrency = concurrency
        self._coalesce = coalesce
        self._grace = grace
        self._selectors: dict[str, str | None] = {}
        self._last_words: list[Callable[[], Awaitable[None]]] = []
        self._finished = asyncio.Event()  # no pass is running and none will
        #: Called when all caches are filled, before the first pass of each term.
        self.on_filled: Callable[[], None] = lambda: None

    # Declaring

    def cache(
        self,
        resource: Resource,
        *,
        label_selector: str | None = None,
        trim: Trim = EVERYTHING,
        indexers: Mapping[str, Indexer] | None = None,
    ) -> Store:
        """The cache of a resource; declare it with its options before others use it without."""
        name = str(resource)
        reflector = self.reflectors.get(name)
        if reflector is None:
            store = Store(resource, trim=trim, indexers=indexers)
            reflector = self.reflectors[name] = Reflector(
                self.client,
                resource,
                store,
                clock=self._clock,
                rng=self._rng,
                namespaces=self._namespaces if resource.namespaced else (),
                label_selector=label_selector,
            )
            self._selectors[name] = label_selector
        elif label_selector is not None and self._selectors[name] != label_selector:
            raise ValueError(
                f"the cache of {name} exists already, with the selector {self._selectors[name]!r}"
            )
        elif trim is not EVERYTHING or indexers:
            raise ValueError(f"the cache of {name} exists already; declare its options first")
        return reflector.store

    def on_change(self, resource: Resource, handler: Handler) -> None:
        """Call ``handler`` for every change in the cache of a resource."""
        self.cache(resource)
        self.reflectors[str(resource)].add_handler(handler)

    def controller(
        self,
        name: str,
        resource: Resource,
        reconcile: Reconcile,
        *,
        when: Predicate = any_change,
        logger: str = "",
        concurrency: int | None = None,
        timeout: float = TIMEOUT,
    ) -> Wiring:
        """Add a controller for the objects of ``resource``; ``when`` tells which changes of them matter.

        ``logger`` tells its lines from those of another controller for the same objects.
        """
        if name in self.wirings:
            raise ValueError(f"there is a controller named {name!r} already")
        expectations = Expectations(clock=self._clock)

        async def pass_over(key: Key) -> Result:
            result = await reconcile(key)
            if result.is_gone:
                expectations.forget(key)
            return result

        queue = Queue(
            clock=self._clock, rng=self._rng, coalesce=self._coalesce, metrics=self._metrics.queue(name)
        )
        controller = Controller(
            name,
            pass_over,
            queue=queue,
            clock=self._clock,
            rng=self._rng,
            kind=resource.kind,
            logger=logger,
            concurrency=concurrency or self._concurrency,
            timeout=timeout,
            metrics=self._metrics.controller(name),
        )
        wiring = self.wirings[name] = Wiring(self, controller, resource, expectations)
        return wiring.reconciles(when)

    def on_stop(self, last_word: Callable[[], Awaitable[None]]) -> None:
        """Run this when all passes have ended and writing is still allowed."""
        self._last_words.append(last_word)

    # Running

    async def run(self) -> None:
        """Fill the caches, lead or stand by, until ``stop`` is set and everything has ended."""
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(self.supervisor.keep(f"reflector {name}", reflector.run))
                for name, reflector in self.reflectors.items()
            ]
            background.append(group.create_task(self.heartbeat.run(), name="heartbeat"))
            events = group.create_task(self.supervisor.keep("events", self.events.run), name="events")
            terms = group.create_task(self._terms(), name="terms")
            await self.stop.wait()
            await self._wind_down(terms, events)
            for task in background:
                task.cancel()

    async def _terms(self) -> None:
        while True:
            if self.leader is None:
                await self._work()
                return
            await self.leader.acquire()
            reason = await self._term(self.leader)
            _log.warning("no longer leader, standing by", reason=reason)

    async def _term(self, leader: Leader) -> str:
        """Work for as long as the lease is held; says why it was lost."""
        async with asyncio.TaskGroup() as group:
            work = group.create_task(self._work(), name="work")
            announcement = group.create_task(leader.announce(), name="announce the leader")
            # In this task, so that nothing comes between the loss of the lease and the end of the passes.
            reason = await leader.hold()
            work.cancel()
            announcement.cancel()
        return reason

    async def _work(self) -> None:
        """Run all controllers until their queues are closed and empty."""
        for reflector in self.reflectors.values():
            await reflector.synced.wait()
        self.on_filled()
        await self._hearing_again()
        try:
            async with asyncio.TaskGroup() as group:
                for wiring in self.wirings.values():
                    wiring.wake_up(self.cache(wiring.resource).keys())
                    group.create_task(wiring.controller.run(), name=wiring.controller.name)
                self._finished.clear()
                if self.stop.is_set():
                    self._close_queues()
        finally:
            self._close_queues()
            self._finished.set()

    async def _hearing_again(self) -> None:
        """Wait for watches that are failing: what they have not told us yet, we must not decide without."""
        give_up = self._clock.monotonic() + CATCH_UP
        while deaf := [name for name, each in self.reflectors.items() if each.failing_since is not None]:
            if self._clock.monotonic() >= give_up:
                _log.warning("working although watches fail", watches=deaf)
                return
            await self._clock.sleep(0.1)

    async def _wind_down(self, terms: asyncio.Task[None], events: asyncio.Task[NoReturn]) -> None:
        self._close_queues()
        working = sum(wiring.controller.queue.in_work for wiring in self.wirings.values())
        if working:
            _log.info("waiting for running passes", passes=working, seconds=self._grace)
            if not await happens(self._finished, self._grace, self._clock):
                _log.warning("running passes are cut off", seconds=self._grace)
        for last_word in self._last_words:
            try:
                async with asyncio.timeout(LAST_WORD):
                    await last_word()
            except Exception:  # noqa: BLE001 (the lease must be given back all the same)
                _log.exception("a task at shutdown failed")
        await _ended(events)
        await self.events.flush(LAST_WORD)
        await _ended(terms)
        if self.leader is not None:
            await self.leader.release()

    def _close_queues(self) -> None:
        for wiring in self.wirings.values():
            wiring.go_to_sleep()

    # Health

    async def _caches_filled(self) -> str | None:
        missing = [name for name, reflector in self.reflectors.items() if not reflector.synced.is_set()]
        return f"not filled yet: {', '.join(missing)}" if missing else None

    async def _not_stopping(self) -> str | None:
        return "shutting down" if self.stop.is_set() else None


async def _ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
