"""Reading YAML that anybody may have written: positions kept, scalars as kubectl reads them, no way to hang.

The C parser of PyYAML is fast, but its composer recurses in C and takes the process down on deep nesting. So
a text that could nest deeply is first walked event by event, which does not recurse. Aliases are shared nodes
and never copies; :class:`Document` keeps them shared and refuses what would be too large when written out.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode
from yaml._yaml import CParser

#: Deeper than any real manifest, and far from what could exhaust a stack.
MAX_DEPTH: Final = 200
#: More values than any object the API server would store.
MAX_VALUES: Final = 500_000

_PLAIN: Final = "plain"
_QUOTED: Final = "quoted"
_TAG: Final = "tag:yaml.org,2002:"

# Every level of flow nesting needs a bracket, and two of block nesting a place at the start of a line: below
# these limits, a text cannot be deeper than MAX_DEPTH.
_DEEP_BLOCK: Final = re.compile("(?:\\A|[\n\r\x85\u2028\u2029])[ \t\\-?:]{50}")

_OTHER_BREAK: Final = re.compile("\r(?!\n)|[\x85\u2028\u2029]")

_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_INTEGER: Final = re.compile(
    r"[-+]?(?:0[xX][0-9a-fA-F]{1,40}|0[bB][01]{1,80}|0[oO][0-7]{1,40}|0[0-7]{0,40}|[1-9][0-9]{0,40})",
    re.ASCII,
)
_OCTAL: Final = re.compile(r"[-+]?0[0-7]+", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)


class YamlTextError(ValueError):
    """The text is not YAML, or not YAML we are willing to read. Lines and columns count from one."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"{message} (line {line}, column {column})" if line else message)
        self.message = message
        self.line = line
        self.column = column


class Place(NamedTuple):
    """A position in a text; both count from one."""

    line: int
    column: int


class _Loader(CParser):
    """Composes nodes; leaves the meaning of scalars to :func:`scalar`."""

    def resolve(self, kind: type[Node], _value: str | None, implicit: Any) -> str:
        """Only note whether a scalar was written without quotes."""
        if kind is ScalarNode:
            return _PLAIN if implicit[0] else _QUOTED
        return ""

    def descend_resolver(self, *_: Any) -> None:
        """We have no resolvers that depend on the path."""

    def ascend_resolver(self) -> None:
        """We have no resolvers that depend on the path."""


def line_breaks(text: str) -> int:
    """How many lines end in the text, as YAML counts them: not only at line feeds."""
    return text.count("\n") + len(_OTHER_BREAK.findall(text))


def documents(text: str) -> Iterator[Node]:
    """The root node of every document that is not empty. A mistake ends it with YamlTextError."""
    try:
        if text.count("[") + text.count("{") > MAX_DEPTH // 2 or _DEEP_BLOCK.search(text):
            _check_depth(text)
        loader = _Loader(text)
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                yield node
    except (yaml.YAMLError, UnicodeError) as error:
        raise _translated(text, error) from error


def first_document(text: str) -> Node | None:
    """The root node of the first document; None when there is none."""
    return next(documents(text), None)


def is_mapping(node: Node) -> bool:
    """Whether the node is a mapping."""
    return isinstance(node, MappingNode)


def is_null(node: Node) -> bool:
    """Whether the node says "nothing"."""
    return isinstance(node, ScalarNode) and node.tag in (_PLAIN, f"{_TAG}null") and scalar(node.value) is None


def place(node: Node) -> Place:
    """Where the node begins."""
    return Place(node.start_mark.line + 1, node.start_mark.column + 1)


def _check_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=cast(Any, _Loader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                mark = event.start_mark
                where = (mark.line + 1, mark.column + 1) if mark else ()
                raise YamlTextError(f"nested more than {MAX_DEPTH} levels deep", *where)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _translated(text: str, error: Exception) -> YamlTextError:
    """A mistake in our words, with its position. Texts that the library quotes are left out."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        message = ", ".join(part for part in (error.problem, error.context) if part)
        if mark is None:
            return YamlTextError(message)
        if mark.line > line_breaks(text):  # the parser ends every text with a line break
            return YamlTextError(message, mark.line, len(text) - text.rfind("\n"))
        return YamlTextError(message, mark.line + 1, mark.column + 1)
    if isinstance(error, yaml.reader.ReaderError):
        before = text.encode("utf-8", "replace")[: error.position].decode("utf-8", "replace")
        line = line_breaks(before) + 1
        return YamlTextError(
            f"{error.reason} (character {error.character:#x})", line, len(before) - before.rfind("\n")
        )
    return YamlTextError("it holds characters that are not text")


# --- scalars


def scalar(text: str) -> Any:
    """The value of an unquoted scalar, as Kubernetes' own tools read it.

    That is YAML 1.1 without its oddest parts: ``on`` is true and ``010`` is eight, but ``12:30`` and
    ``2026-01-31`` are text.
    """
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first == ".":
        return _float(text) if _FLOAT.fullmatch(text) else text
    if first not in "+-0123456789":
        return text
    digits = text.replace("_", "")
    if _INTEGER.fullmatch(digits):
        number = int(digits, 8) if _OCTAL.fullmatch(digits) else int(digits, 0)
        if -(2**63) <= number < (2**63 if first == "+" else 2**64):
            return number
    return _float(digits) if _FLOAT.fullmatch(digits) else text


def _float(text: str) -> float | str:
    number = float(text)
    return text if math.isinf(number) else number


# --- from nodes to values


class _Written(NamedTuple):
    """What a node became, and how large and deep it is with all aliases written out."""

    value: Any
    size: int
    depth: int


class Document:
    """One document: its value as JSON has it, and where each field of it stands.

    ``value`` is read at once and may raise YamlTextError. What stands behind an anchor that is used in
    several places is one shared value, so do not change it. ``duplicates`` are the keys that some mapping has
    twice; the last one counts. Say ``aliases=False`` when the text has no ``&``: reading is quicker then.
    """

    def __init__(self, root: Node, *, aliases: bool = True) -> None:
        self.root = root
        self.duplicates: list[tuple[str, Place]] = []
        self._written: dict[int, _Written] = {}
        self._tables: dict[int, dict[str, tuple[Node, Node]]] = {}
        self._open: set[int] = set()
        self.value: Any = self._value(aliases)

    def _value(self, aliases: bool) -> Any:
        if not aliases:  # as nearly always, and then there is a quick way
            try:
                return _unshared(self.root)
            except _NotSimpleError:
                pass
        try:
            return self._read(self.root).value
        except RecursionError:  # by way of aliases; nesting itself is limited
            raise YamlTextError("aliases lead too deep", *place(self.root)) from None

    def locate(self, path: tuple[str | int, ...]) -> Place:
        """Where the field at ``path`` is written; for one that is not there, where its nearest parent is."""
        node, found = self.root, place(self.root)
        for step in path:
            if isinstance(node, MappingNode) and isinstance(step, str) and step in self._table(node):
                key, node = self._table(node)[step]
                found = place(key)
            elif isinstance(node, SequenceNode) and isinstance(step, int) and 0 <= step < len(node.value):
                node = node.value[step]
                found = place(node)
            else:
                break
        return found

    def _read(self, node: Node) -> _Written:
        if isinstance(node, ScalarNode):
            return _Written(_scalar_value(node), 1, 1)
        if id(node) in self._written:
            return self._written[id(node)]
        self._enter(node)
        value: Any
        if isinstance(node, MappingNode):
            below = {name: self._read(child) for name, (_, child) in self._table(node).items()}
            value = {name: written.value for name, written in below.items()}
            children = list(below.values())
        else:
            children = [self._read(child) for child in node.value]
            value = [written.value for written in children]
        size = 1 + sum(child.size for child in children)
        depth = 1 + max((child.depth for child in children), default=0)
        if size > MAX_VALUES:
            raise YamlTextError(f"it is larger than {MAX_VALUES} values", *place(node))
        if depth > MAX_DEPTH:
            raise YamlTextError(f"nested more than {MAX_DEPTH} levels deep", *place(node))
        self._open.discard(id(node))
        self._written[id(node)] = _Written(value, size, depth)
        return self._written[id(node)]

    def _table(self, node: MappingNode) -> dict[str, tuple[Node, Node]]:
        """Key and value nodes by name: what the mapping merges (``<<``), then its own, which win."""
        if id(node) not in self._tables:
            merged: dict[str, tuple[Node, Node]] = {}
            own: dict[str, tuple[Node, Node]] = {}
            for key, child in node.value:
                if _is_merge(key):
                    self._merge(child, merged)
                    continue
                name = _name(key)
                if name in own:
                    self.duplicates.append((name, place(key)))
                own[name] = key, child
            self._tables[id(node)] = merged | own
        return self._tables[id(node)]

    def _merge(self, node: Node, into: dict[str, tuple[Node, Node]]) -> None:
        # Of several mappings the first wins, so it comes last.
        for source in reversed(node.value) if isinstance(node, SequenceNode) else (node,):
            if not isinstance(source, MappingNode):
                raise YamlTextError("only mappings can be merged with <<", *place(source))
            known = id(source) in self._tables
            if not known:
                self._enter(source)
            into.update(self._table(source))
            if not known:
                self._open.discard(id(source))

    def _enter(self, node: Node) -> None:
        if id(node) in self._open:
            raise YamlTextError("an alias refers to the value it is part of", *place(node))
        self._open.add(id(node))


class _NotSimpleError(Exception):
    """A mapping has a key twice, or merges another: the quick way does not go there."""


def _unshared(node: Node) -> Any:
    """The value of a node that has no aliases below it."""
    if isinstance(node, ScalarNode):
        return _scalar_value(node)
    if isinstance(node, SequenceNode):
        return [_unshared(child) for child in node.value]
    value: dict[str, Any] = {}
    for key, child in node.value:
        name = _name(key)
        if name in value or name == "<<":
            raise _NotSimpleError
        value[name] = _unshared(child)
    return value


def _is_merge(key: Node) -> bool:
    return isinstance(key, ScalarNode) and key.value == "<<" and key.tag in (_PLAIN, f"{_TAG}merge")


def _name(key: Node) -> str:
    """The key of an entry as text: JSON knows no other keys."""
    value = _scalar_value(key) if isinstance(key, ScalarNode) else None
    if value is None:
        raise YamlTextError("the key of an entry must be text", *place(key))
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def _scalar_value(node: ScalarNode) -> Any:
    tag, text = node.tag, node.value
    if tag == _PLAIN:
        return scalar(text)
    if tag == _QUOTED or not tag.startswith(_TAG):
        return text
    kind = tag[len(_TAG) :]
    if kind == "binary":
        try:
            return base64.b64decode(text, validate=False).decode()
        except ValueError:
            raise YamlTextError("!!binary must hold text in base64", *place(node)) from None
    wanted = {"bool": bool, "int": int, "float": float, "null": type(None)}.get(kind)
    if wanted is None:
        return text
    value = scalar(text)
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted:
        raise YamlTextError(f"the tag !!{kind} does not fit its value", *place(node))
    return value
