"""Keeps a cache equal to the server, whatever happens in between.

For each namespace (or once for all) a task lists and then watches::

    no version ──list──▶ version ──watch──▶ ended by the server, silent, broken: watch again from there
        ▲                                 └▶ 410 Gone: forget the version
        └───────────────────────────────────┘

The list is streamed as the start of a watch where the server can do that, and read in pages where it cannot.
Either way it becomes additions, changes and deletions against what is cached, so that nobody downstream can
tell a fresh list from a watch. The task never ends on its own: an error is logged, counted and tried again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from kuberay_op.clock import Clock
from kuberay_op.frozen import FrozenDict
from kuberay_op.kube import watch
from kuberay_op.kube.cache import Change, Store
from kuberay_op.kube.client import PAGE, SILENCE, Client
from kuberay_op.kube.errors import ApiError, BadRequest, Gone, InvalidObject, ServerError, Unreachable
from kuberay_op.kube.resource import Key, Object, Resource, key_of
from kuberay_op.kube.retry import backoff
from kuberay_op.kube.trim import Trim
from kuberay_op.logs import get_logger

log = get_logger("kube.reflector")

#: Called for each change of the cache with its type, the old object and the new one. Must not block.
Handler = Callable[[str, FrozenDict | None, FrozenDict | None], None]

#: The server ends a watch after a random time between these, so that not all come back at once.
WATCH_SECONDS: Final = (300, 600)

#: Waiting after failures: doubling from the first to the second, in seconds. The second is short because
#: while we wait we are deaf.
BACKOFF: Final = (0.2, 5.0)

#: A watch that ends sooner than this, without an event, counts as a failure.
SHORT: Final = 1.0

#: After so many failures of the server in a row the version itself is suspect (etcd restored from a backup).
SUSPECT: Final = 3

#: Objects of a page taken in before others get their turn.
ITEMS_AT_ONCE: Final = 32


@dataclass(slots=True)
class Stream:
    """One list-and-watch: of a namespace, or (empty) of all."""

    namespace: str
    version: str | None = None
    in_pages: bool = False
    synced: bool = False
    contact: float | None = None
    events: int = 0
    failures: int = 0
    failing_since: float | None = None
    seen: set[Key] = field(default_factory=set)


class Reflector:
    """Fills ``store`` with the objects that the selectors choose; see :meth:`run`.

    ``namespaces`` empty means all. ``synced`` is set once every stream has had its first full list.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        store: Store | None = None,
        *,
        clock: Clock,
        rng: random.Random,
        namespaces: Sequence[str] = (),
        label_selector: str | None = None,
        field_selector: str | None = None,
        trim: Trim | None = None,
        silence: float = SILENCE,
        streaming: bool = True,
        page: int = PAGE,
    ) -> None:
        if store is not None and trim is not None:
            raise ValueError("give the trim to the Store, or leave the Store to the Reflector")
        self.resource = resource
        if store is None:  # not "or": an empty store counts as false
            store = Store(resource) if trim is None else Store(resource, trim=trim)
        self.store = store
        self.synced = asyncio.Event()
        self.errors = 0
        self._client = client
        self._clock = clock
        self._rng = rng
        self._selectors: dict[str, Any] = {"label_selector": label_selector, "field_selector": field_selector}
        self._silence = silence
        self._streaming = streaming
        self._page = page
        self._handlers: list[Handler] = []
        self._streams = [Stream(namespace) for namespace in dict.fromkeys(namespaces)] or [Stream("")]

    # What others see

    def add_handler(self, handler: Handler) -> None:
        """Call this for every change from now on, and at once for what is cached already."""
        for obj in self.store.list():
            self._call(handler, Change(watch.ADDED, None, obj))
        self._handlers.append(handler)

    @property
    def last_contact(self) -> float | None:
        """When the stream that is worst off last heard from the server (monotonic); None if it never did."""
        contacts = [stream.contact for stream in self._streams]
        return None if None in contacts else min(contact for contact in contacts if contact is not None)

    @property
    def failing_since(self) -> float | None:
        """Since when some stream has done nothing but fail (monotonic); None while all is well."""
        return min((s.failing_since for s in self._streams if s.failing_since is not None), default=None)

    # The work

    async def run(self) -> None:
        """Keep the cache up to date until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for stream in self._streams:
                where = stream.namespace or "all namespaces"
                tasks.create_task(self._follow(stream), name=f"reflect {self.resource} in {where}")

    async def _follow(self, stream: Stream) -> None:
        while True:
            started, stream.events = self._clock.monotonic(), 0
            try:
                if stream.version is None and (stream.in_pages or not self._streaming):
                    await self._list(stream)
                else:
                    await self._watch(stream)
                # A server that knows nothing of streamed lists may just never say where they end.
                stream.in_pages = stream.version is None
                if stream.events or self._clock.monotonic() - started >= SHORT:
                    continue
                error: Exception = Unreachable("the API server ended a watch as soon as it had begun")
            except Gone:
                log.info("the version is too old, listing again", **self._where(stream))
                stream.version = None
                if stream.events:
                    continue
                error = Unreachable("the API server no longer knows the version to start from")
            except watch.Silence:
                log.info("nothing came for too long, connecting anew", **self._where(stream))
                stream.in_pages = stream.version is None
                continue
            except (BadRequest, InvalidObject) as refusal:
                if not self._streaming or stream.version is not None:
                    error = refusal
                else:
                    log.info("the server does not stream lists, reading pages", **self._where(stream))
                    self._streaming = False
                    continue
            except Exception as problem:  # noqa: BLE001 – whatever it is, a reflector goes on
                error = problem
            await self._rest(stream, error)

    async def _rest(self, stream: Stream, error: Exception) -> None:
        """Note a failure and wait a little, longer each time."""
        self.errors += 1
        stream.failures += 1
        if stream.failing_since is None:
            stream.failing_since = self._clock.monotonic()
        if isinstance(error, ServerError) and stream.failures >= SUSPECT:
            stream.version = None
        base, cap = BACKOFF
        delay = backoff(stream.failures, base=base, cap=cap, rng=self._rng)
        if isinstance(error, ApiError):
            delay = max(delay, error.retry_after or 0.0)
            # One line for an outage of ours, not one for each attempt.
            say = log.warning if stream.failures == 1 else log.debug
            say("watch failed, trying again", error=str(error), delay=delay, **self._where(stream))
        else:
            log.error("watch failed unexpectedly, trying again", exc_info=error, **self._where(stream))
            stream.version = None
        await self._clock.sleep(delay)

    async def _watch(self, stream: Stream) -> None:
        """Follow one watch to its end; without a version it begins with a list."""
        listing = stream.version is None
        stream.seen.clear()
        events = self._client.watch(
            self.resource,
            stream.namespace or None,
            **self._selectors,
            resource_version=stream.version,
            initial=listing,
            managed_fields=False,
            server_timeout=self._rng.randint(*WATCH_SECONDS),
            silence=self._silence,
            opened=lambda: self._opened(stream),
        )
        async with aclosing(events):
            async for kind, obj in events:
                self._heard(stream)
                metadata = obj["metadata"]
                if listing and kind == watch.ADDED:
                    stream.seen.add(key_of(obj))
                    self._publish(self.store.put(obj, listed=True))
                    continue
                if kind == watch.BOOKMARK:
                    if listing and _ends_list(metadata):
                        listing = False
                        await self._listed(stream)
                elif kind == watch.DELETED:
                    stream.seen.discard(key_of(obj))
                    self._publish(self.store.remove(obj))
                else:
                    self._publish(self.store.put(obj))
                if not listing:
                    stream.version = metadata["resourceVersion"]

    async def _list(self, stream: Stream) -> None:
        """Read all pages, for servers that do not stream lists."""
        stream.seen.clear()
        version = ""
        for limit in (self._page, 0):
            try:
                pages = self._client.pages(
                    self.resource, stream.namespace or None, **self._selectors, limit=limit
                )
                async with aclosing(pages):
                    async for page in pages:
                        self._heard(stream)
                        version = page.resource_version
                        await self._take(stream, page.items)
                break
            except Gone:
                if not limit:
                    raise
                # The continue token aged while we read: once more, in one piece.
                stream.seen.clear()
        await self._listed(stream)
        stream.version = version

    async def _take(self, stream: Stream, items: list[Object]) -> None:
        for count, item in enumerate(items, 1):
            stream.seen.add(key_of(item))
            self._publish(self.store.put(item, listed=True))
            if count % ITEMS_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _listed(self, stream: Stream) -> None:
        """A list is complete: what it did not have is gone."""
        for count, change in enumerate(self.store.retain(stream.namespace, stream.seen), 1):
            self._publish((change,))
            if count % ITEMS_AT_ONCE == 0:
                await asyncio.sleep(0)
        stream.seen.clear()
        stream.synced = True
        if all(each.synced for each in self._streams) and not self.synced.is_set():
            log.debug("cache is filled", objects=len(self.store), resource=str(self.resource))
            self.synced.set()

    def _opened(self, stream: Stream) -> None:
        stream.contact = self._clock.monotonic()
        stream.failing_since = None

    def _heard(self, stream: Stream) -> None:
        self._opened(stream)
        stream.events += 1
        stream.failures = 0

    def _publish(self, changes: Sequence[Change]) -> None:
        for change in changes:
            for handler in self._handlers:
                self._call(handler, change)

    def _call(self, handler: Handler, change: Change) -> None:
        try:
            handler(*change)
        except Exception:  # a handler's bug is not the cache's: the others must hear of it all the same
            self.errors += 1
            log.exception("a handler failed", handler=repr(handler), resource=str(self.resource))

    def _where(self, stream: Stream) -> dict[str, str]:
        return {"resource": str(self.resource), "namespace": stream.namespace}


def _ends_list(metadata: Object) -> bool:
    return (metadata.get("annotations") or {}).get(watch.INITIAL_EVENTS_END) == "true"
