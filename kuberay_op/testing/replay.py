"""An API server for one collection that plays a recording: a LIST, then a watch at a steady rate.

For benchmarks and for tests that want thousands of events a second, which no real API server on a small
machine makes. Everything is encoded beforehand, so that serving costs next to nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import orjson
from aiohttp import web

#: Seconds between two writes to a stream; all events due by then go out together, as from a busy server.
TICK: Final = 0.01

#: Objects per page when the client names no limit.
ALL: Final = 10**9


@dataclass(frozen=True, slots=True)
class Recording:
    """What to serve: objects that exist at the start, and the watch events that come later."""

    path: str  # of the collection, such as "/api/v1/pods"
    api_version: str
    kind: str
    objects: tuple[bytes, ...]
    events: tuple[bytes, ...]

    @classmethod
    def of(
        cls,
        path: str,
        api_version: str,
        kind: str,
        objects: Iterable[Mapping[str, Any]],
        events: Iterable[tuple[str, Mapping[str, Any]]] = (),
    ) -> Self:
        """Encode a recording. Objects get resource versions 1, 2, …; the events go on counting."""
        encoded: list[bytes] = []
        for obj in objects:
            encoded.append(orjson.dumps(_versioned(obj, len(encoded) + 1)))
        lines: list[bytes] = []
        for kind_of_event, obj in events:
            versioned = _versioned(obj, len(encoded) + len(lines) + 1)
            event = {"type": kind_of_event, "object": versioned}
            lines.append(orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE))
        return cls(path, api_version, kind, tuple(encoded), tuple(lines))

    @property
    def version(self) -> int:
        """Resource version of the list."""
        return len(self.objects)


def _versioned(obj: Mapping[str, Any], version: int) -> dict[str, Any]:
    # A version that is there already keeps its place: clients may rely on the order servers write in.
    return {**obj, "metadata": {**obj.get("metadata", {}), "resourceVersion": str(version)}}


class ReplayServer:
    """Serve a recording on loopback.

    Args:
        recording: What to serve.
        rate: Events a second on each watch.
        started: Whether events flow at once; otherwise they wait for :meth:`start` (or ``POST /-/start``).
    """

    def __init__(self, recording: Recording, *, rate: float, started: bool = True) -> None:
        self.recording = recording
        self.rate = rate
        self.sent = 0
        self.url = ""
        self._go = asyncio.Event()
        if started:
            self._go.set()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get(self.recording.path, self._collection)
        app.router.add_post("/-/start", self._start)
        app.router.add_get("/-/sent", self._sent)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def start(self) -> None:
        """Let the events flow."""
        self._go.set()

    async def _start(self, request: web.Request) -> web.Response:
        self.start()
        return web.Response()

    async def _sent(self, request: web.Request) -> web.Response:
        return web.Response(text=str(self.sent))

    async def _collection(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch") in {"1", "true"}:
            return await self._watch(request)
        return self._list(request)

    def _list(self, request: web.Request) -> web.Response:
        objects = self.recording.objects
        first = int(request.query.get("continue") or 0)
        last = first + int(request.query.get("limit") or ALL)
        meta = {"resourceVersion": str(self.recording.version)}
        if last < len(objects):
            meta |= {"continue": str(last), "remainingItemCount": str(len(objects) - last)}
        head = {
            "kind": f"{self.recording.kind}List",
            "apiVersion": self.recording.api_version,
            "metadata": meta,
        }
        items = b",".join(objects[first:last])
        body = orjson.dumps(head)[:-1] + b',"items":[' + items + b"]}"
        return web.Response(body=body, content_type="application/json")

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        begin = 0
        if request.query.get("sendInitialEvents") == "true":
            await self._initial_events(response)
        else:
            begin = max(0, int(request.query.get("resourceVersion") or 0) - self.recording.version)
        # Only the end of the watch is a time-out; a client that went away is none of ours to report.
        with suppress(TimeoutError, ConnectionResetError):
            async with asyncio.timeout(float(request.query.get("timeoutSeconds") or ALL)):
                await self._go.wait()
                await self._play(response, begin)
                await asyncio.Event().wait()  # all played: an open, quiet watch
        return response

    async def _initial_events(self, response: web.StreamResponse) -> None:
        for start in range(0, len(self.recording.objects), 100):
            page = self.recording.objects[start : start + 100]
            await response.write(b"".join(b'{"type":"ADDED","object":' + obj + b"}\n" for obj in page))
        bookmark = {
            "kind": self.recording.kind,
            "apiVersion": self.recording.api_version,
            "metadata": {
                "resourceVersion": str(self.recording.version),
                "annotations": {"k8s.io/initial-events-end": "true"},
            },
        }
        await response.write(orjson.dumps({"type": "BOOKMARK", "object": bookmark}) + b"\n")

    async def _play(self, response: web.StreamResponse, begin: int) -> None:
        events = self.recording.events
        loop = asyncio.get_running_loop()
        started = loop.time()
        done = begin
        while done < len(events):
            due = min(len(events), begin + int((loop.time() - started) * self.rate))
            if due > done:
                await response.write(b"".join(events[done:due]))
                self.sent += due - done
                done = due
            await asyncio.sleep(TICK)
