"""Manifest files: a text with any number of YAML (or JSON) documents, cut into objects with their positions.

A document with a mistake does not hide the ones after it: the text is cut at the document markers first,
which YAML allows nowhere else at the start of a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kuberay_op.api.problems import Path
from kuberay_op.api.yamltext import Document, Place, YamlTextError, documents, line_breaks

_MARKER: Final = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_DIRECTIVE: Final = re.compile(r"^%", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Mistake:
    """Something in a file that keeps a document from being read, or that is written twice."""

    message: str
    place: Place
    fatal: bool = True


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of a file. ``value`` is whatever the document holds; nobody has looked at it yet."""

    value: Any
    document: Document | None
    #: Where the object is in its document: not at the top for an entry of a List.
    at: Path
    #: Lines of the file before the document.
    offset: int

    def place(self, path: Path) -> Place:
        """Where the field at ``path`` of the object is in the file."""
        if self.document is None:
            return Place(self.offset + 1, 1)
        line, column = self.document.locate((*self.at, *path))
        return Place(self.offset + line, column)


def decode(data: bytes) -> str:
    """The text of a file: UTF-8, or UTF-16 with a byte order mark. YamlTextError says where it is neither."""
    try:
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return data.decode("utf-16")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise YamlTextError("it is not text in UTF-8", line, 1) from None


def read_manifests(text: str) -> Iterator[Manifest | Mistake]:
    """Every object in ``text``, and every mistake that keeps one from being read, in order."""
    for piece, offset in _pieces(text):
        try:
            for node in documents(piece):
                document = Document(node, aliases="&" in piece)
                for key, place in document.duplicates:
                    where = Place(offset + place.line, place.column)
                    yield Mistake(f"the key {key!r} is there twice; the last one counts", where, fatal=False)
                yield from _objects(document.value, document, offset)
        except YamlTextError as error:
            value = _json(piece)
            if value is None:
                yield Mistake(error.message, Place(offset + max(error.line, 1), max(error.column, 1)))
            else:
                yield from _objects(value, None, offset)


def _pieces(text: str) -> Iterator[tuple[str, int]]:
    """Each document's text with the number of lines before it."""
    start, offset = 0, 0
    for marker in _MARKER.finditer(text):
        piece = text[start : marker.start()]
        if _DIRECTIVE.search(piece) and all(map(_no_content, piece.split("\n"))):
            continue  # directives belong to the document after the marker
        yield piece, offset
        offset += line_breaks(piece)
        start = marker.start()
    yield text[start:], offset


def _no_content(line: str) -> bool:
    return line.startswith("%") or not line.strip() or line.lstrip().startswith("#")


def _json(piece: str) -> Any:
    """JSON that the YAML parser does not take, such as some escapes; None when it is no JSON either."""
    if not piece.lstrip().startswith("{"):
        return None
    try:
        return orjson.loads(piece)
    except ValueError:
        return None


def _objects(value: Any, document: Document | None, offset: int) -> Iterator[Manifest]:
    if value is None:
        return
    kind = value.get("kind") if isinstance(value, Mapping) else None
    items = value.get("items") if isinstance(value, Mapping) else None
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
        for index, item in enumerate(items):
            yield Manifest(item, document, ("items", index), offset)
    else:
        yield Manifest(value, document, (), offset)
