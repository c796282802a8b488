"""The bytes of a watch, turned into events.

A watch is one JSON object a line. Chunks of the network cut lines anywhere, a line may be a megabyte, and a
thousand lines may arrive at once; so lines are cut out of the chunks without copying more than the rest of a
line, and the loop gets its turn after every few events.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator
from typing import Any, Final, NamedTuple, Protocol

import orjson

from kuberay_op.kube.errors import Unreachable, error_of
from kuberay_op.kube.resource import Object

#: Others get their turn after so many events …
EVENTS_AT_ONCE: Final = 32

#: … or so many bytes, whichever comes first.
BYTES_AT_ONCE: Final = 1 << 18

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"

#: The annotation of the bookmark that ends a streamed list.
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


#: Where managedFields begin and end in a line. They are half of an object and nobody here reads them, so they
#: are cut out before decoding. They contain no list, so they end at the first ``}]``, unless that is part of
#: a text. It is not if a key follows: inside a text the key's quotation mark would be escaped, and the one
#: that closes a text is followed by punctuation. In any other case nothing is cut.
_MANAGED_FIELDS: Final = re.compile(rb',"managedFields":\[\{"(?:manager|apiVersion)":"')
_THEIR_END: Final = re.compile(rb'\}\](?=(?P<sure>\}?,"[^:,}\]"])|\}?,"|\}\})')


class WatchEvent(NamedTuple):
    """One line of a watch: ``ADDED``, ``MODIFIED``, ``DELETED`` or ``BOOKMARK``, and the object."""

    type: str
    object: Object


class Silence(Unreachable):
    """Nothing came for too long: the connection may be half open."""


class Chunks(Protocol):
    """The part of a stream reader that is needed here."""

    async def readany(self) -> bytes:
        """Whatever is there, or wait for something; empty at the end."""
        ...


class Lines:
    """Cuts lines out of chunks."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that this chunk completes."""
        head, newline, tail = chunk.partition(b"\n")
        if not newline:
            self._rest.append(chunk)
            return
        self._rest.append(head)
        line = b"".join(self._rest)
        *lines, rest = tail.split(b"\n")
        self._rest = [rest] if rest else []
        if line:
            yield line
        for line in lines:
            if line:
                yield line

    @property
    def unfinished(self) -> bool:
        """Whether the stream ended in the middle of a line."""
        return any(self._rest)


def without_managed_fields(line: bytes) -> bytes:
    """The line without the managedFields of its object, if they are where API servers write them."""
    start = _MANAGED_FIELDS.search(line)
    end = _THEIR_END.search(line, start.end()) if start else None
    if start and end and end["sure"]:
        return line[: start.start()] + line[end.end() :]
    return line


def decode(line: bytes, *, doing: str = "watch") -> WatchEvent:
    """The event of one line. An ``ERROR`` event raises what it says."""
    try:
        event: Any = orjson.loads(line)
        kind, obj = event["type"], event["object"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise Unreachable(f"{doing}: the API server sent a line that is not a watch event") from error
    if kind == ERROR:
        raise error_of(int(obj.get("code") or 500), obj, doing=doing)
    return WatchEvent(kind, obj)


async def events(
    chunks: Chunks, *, silence: float, doing: str, managed_fields: bool = True
) -> AsyncGenerator[WatchEvent]:
    """The events of a stream until the server ends it.

    Without ``managed_fields``, those are left out of the objects where that saves time.

    Raises :class:`Silence` after ``silence`` seconds without a byte, and
    :class:`~kuberay_op.kube.errors.Unreachable` when a line is cut short or not JSON.
    """
    lines = Lines()
    seen, size = 0, 0
    while True:
        try:
            async with asyncio.timeout(silence):
                chunk = await chunks.readany()
        except TimeoutError as error:
            raise Silence(f"{doing}: nothing came from the API server for {silence:g} s") from error
        if not chunk:
            break
        for line in lines.feed(chunk):
            yield decode(line if managed_fields else without_managed_fields(line), doing=doing)
            seen, size = seen + 1, size + len(line)
            if seen >= EVENTS_AT_ONCE or size >= BYTES_AT_ONCE:
                seen = size = 0
                await asyncio.sleep(0)
    if lines.unfinished:
        raise Unreachable(f"{doing}: the API server's answer was cut short")
