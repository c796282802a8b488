"""Kubernetes Events: what we tell the user on ``kubectl describe``.

Recording never waits: an event goes into a bounded queue, and one task writes them out. What is said again
becomes a count on the first event (a series), an object that says too much is cut off for a while, and what
does not fit is dropped and counted. Events are a courtesy, so nothing here ever fails a pass.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Literal

from kuberay_op.clock import Clock
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import (
    AlreadyExists,
    ApiError,
    DeadlineExceeded,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from kuberay_op.kube.ratelimit import TokenBucket
from kuberay_op.kube.resource import EVENTS, Object
from kuberay_op.kube.retry import backoff
from kuberay_op.logs import get_logger, scrub

log = get_logger("kube.events")

EventType = Literal["Normal", "Warning"]

#: Bytes of a note that the server accepts, and characters of the other texts.
NOTE_LIMIT: Final = 1024
TEXT_LIMIT: Final = 128

#: Events waiting to be written; more are dropped.
QUEUE: Final = 1000

#: An object may say this much at once, and then one thing in so many seconds (the numbers of client-go).
OBJECT_BURST: Final = 25
OBJECT_SECONDS: Final = 300.0

#: An event that is not repeated for this long is said anew the next time.
SERIES_SECONDS: Final = 360.0

#: The growing count of a series is written this often.
COUNT_SECONDS: Final = 30.0

#: Objects and series remembered.
REMEMBERED: Final = 4096

#: Writing one event: how often it is tried, and for how long each time.
ATTEMPTS: Final = 5
WRITE_DEADLINE: Final = 10.0

#: Characters of an object's name that go into the name of its event, which has 17 more.
NAME_LIMIT: Final = 253 - 17

ELLIPSIS: Final = "…"

#: For the client's rate limit, all events together are one owner.
OWNER: Final = "events"


@dataclass(frozen=True, slots=True)
class Said:
    """What makes two events the same."""

    controller: str
    uid: str
    namespace: str
    name: str
    api_version: str
    kind: str
    type: EventType
    reason: str
    action: str
    note: str


@dataclass(slots=True)
class Series:
    """An event on the server, and how often it was said since."""

    namespace: str
    name: str
    last: datetime
    seen: float
    written_at: float
    count: int = 1
    written: int = 1


class Recorder:
    """Records events of one controller, for example ``raycluster-controller``."""

    def __init__(self, events: Events, controller: str) -> None:
        self._events = events
        self._controller = controller

    def normal(self, regarding: Mapping[str, Any], reason: str, action: str, note: str) -> None:
        """Say that something happened as it should."""
        self.event(regarding, "Normal", reason, action, note)

    def warning(self, regarding: Mapping[str, Any], reason: str, action: str, note: str) -> None:
        """Say that something is wrong."""
        self.event(regarding, "Warning", reason, action, note)

    def event(
        self, regarding: Mapping[str, Any], kind: EventType, reason: str, action: str, note: str
    ) -> None:
        """Record an event about an object. Returns at once; ``note`` is cut to what the server accepts."""
        metadata = regarding["metadata"]
        self._events.put(
            Said(
                controller=self._controller,
                uid=metadata.get("uid") or "",
                namespace=metadata.get("namespace") or "",
                name=metadata["name"],
                api_version=regarding.get("apiVersion") or "",
                kind=regarding.get("kind") or "",
                type=kind,
                reason=reason[:TEXT_LIMIT],
                action=action[:TEXT_LIMIT],
                note=truncated(scrub(note)),
            )
        )


class Events:
    """The queue and the tasks that empty it: keep :meth:`run` running, then call :meth:`flush`.

    ``dropped`` counts the events that were not written.
    """

    def __init__(
        self, client: Client, *, clock: Clock, rng: random.Random, hostname: str | None = None
    ) -> None:
        self.dropped = 0
        self._client = client
        self._clock = clock
        self._rng = rng
        self._hostname = hostname or socket.gethostname()
        self._queue: deque[tuple[Said, datetime]] = deque()
        self._filled = asyncio.Event()
        self._writing = asyncio.Lock()
        self._series: OrderedDict[Said, Series] = OrderedDict()
        self._buckets: OrderedDict[tuple[str, str, str], TokenBucket] = OrderedDict()

    def recorder(self, controller: str) -> Recorder:
        """A recorder whose events name this controller."""
        return Recorder(self, controller)

    def put(self, said: Said) -> None:
        """Queue an event, or drop it if there are too many."""
        if len(self._queue) >= QUEUE:
            self._drop("the queue of events is full")
            return
        self._queue.append((said, self._clock.now()))
        self._filled.set()

    async def run(self) -> None:
        """Write events until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._drain_forever(), name="events")
            tasks.create_task(self._count_forever(), name="event counts")

    async def flush(self, grace: float) -> None:
        """Write what is queued or counted, for at most ``grace`` seconds. Call it when ``run`` has ended."""
        try:
            async with asyncio.timeout(grace):
                await self._drain()
                await self._write_counts(after=0.0)
        except TimeoutError:
            self._drop("there was no time left to write it", len(self._queue))
            self._queue.clear()

    async def _drain_forever(self) -> None:
        while True:
            await self._filled.wait()
            self._filled.clear()
            await self._drain()

    async def _count_forever(self) -> None:
        while True:
            await self._clock.sleep(COUNT_SECONDS)
            await self._write_counts(after=COUNT_SECONDS)

    async def _drain(self) -> None:
        while self._queue:
            said, when = self._queue[0]
            await self._take(said, when)
            self._queue.popleft()  # only now: what a shutdown interrupts is written by flush

    async def _take(self, said: Said, when: datetime) -> None:
        now = self._clock.monotonic()
        series = self._series.get(said)
        if series is not None and now - series.seen <= SERIES_SECONDS:
            series.count += 1
            series.last, series.seen = when, now
            # The second time is news and written at once; after that the count can wait.
            if series.written == 1 and self._allowed(said):
                await self._write(said, partial(self._count, said, series))
        elif self._allowed(said):
            await self._write(said, partial(self._create, said, when, self._name(said)))
        else:
            self._drop("its object says too much")

    async def _write_counts(self, *, after: float) -> None:
        now = self._clock.monotonic()
        for said, series in list(self._series.items()):
            if series.count > series.written and now - series.written_at >= after:
                await self._write(said, partial(self._count, said, series))
            elif now - series.seen > SERIES_SECONDS:
                self._series.pop(said, None)

    async def _write(self, said: Said, write: Callable[[], Awaitable[None]]) -> None:
        """Try to write; give up after a few failures, since others wait."""
        async with self._writing:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    await write()
                    return
                except (Unreachable, DeadlineExceeded, ServerError, TooManyRequests) as error:
                    problem: ApiError = error
                    if attempt < ATTEMPTS:
                        await self._clock.sleep(backoff(attempt, base=0.5, cap=10.0, rng=self._rng))
                except ApiError as error:  # no use trying again: forbidden, or the namespace is going
                    problem = error
                    break
        self._drop("it could not be written", error=str(problem), reason=said.reason)

    def _name(self, said: Said) -> str:
        return f"{said.name[:NAME_LIMIT]}.{self._rng.getrandbits(64):016x}"

    async def _create(self, said: Said, when: datetime, name: str) -> None:
        namespace = said.namespace or "default"
        body = event_body(said, name, namespace, when, self._hostname)
        with contextlib.suppress(AlreadyExists):  # from an attempt whose answer got lost
            await self._client.create(EVENTS, body, reason="event", owner=OWNER, deadline=WRITE_DEADLINE)
        now = self._clock.monotonic()
        self._series[said] = Series(namespace, name, last=when, seen=now, written_at=now)
        self._series.move_to_end(said)
        if len(self._series) > REMEMBERED:
            self._series.popitem(last=False)

    async def _count(self, said: Said, series: Series) -> None:
        count = series.count
        body = {"series": {"count": count, "lastObservedTime": micro_time(series.last)}}
        try:
            await self._client.patch(
                EVENTS,
                series.name,
                series.namespace,
                body,
                reason="event repeated",
                owner=OWNER,
                deadline=WRITE_DEADLINE,
            )
        except NotFound:  # the server forgets events after an hour
            await self._create(said, series.last, self._name(said))
            return
        series.written, series.written_at = count, self._clock.monotonic()

    def _allowed(self, said: Said) -> bool:
        key = (said.controller, said.uid or said.name, said.namespace)
        bucket = self._buckets.pop(key, None) or TokenBucket(1 / OBJECT_SECONDS, OBJECT_BURST, self._clock)
        self._buckets[key] = bucket
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        return bucket.take()

    def _drop(self, why: str, count: int = 1, **fields: str) -> None:
        self.dropped += count
        log.debug("event dropped", why=why, count=count, dropped=self.dropped, **fields)


def event_body(said: Said, name: str, namespace: str, when: datetime, hostname: str) -> Object:
    """The Event as it is created."""
    regarding = {
        "apiVersion": said.api_version,
        "kind": said.kind,
        "namespace": said.namespace,
        "name": said.name,
        "uid": said.uid,
    }
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "eventTime": micro_time(when),
        "type": said.type,
        "reason": said.reason,
        "action": said.action,
        "note": said.note,
        "regarding": {field: value for field, value in regarding.items() if value},
        "reportingController": said.controller,
        "reportingInstance": f"{said.controller}-{hostname}"[:TEXT_LIMIT],
    }


def truncated(note: str) -> str:
    """The note, cut between characters so that it fits into what the server accepts."""
    data = note.encode()
    if len(data) <= NOTE_LIMIT:
        return note
    return data[: NOTE_LIMIT - len(ELLIPSIS.encode())].decode(errors="ignore") + ELLIPSIS


def micro_time(moment: datetime) -> str:
    """A time as the API writes it, with microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
