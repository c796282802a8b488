"""Cutting objects down to what is needed before they are cached, and storing equal parts once.

A :class:`Trim` says what to keep; trims of several readers are joined with ``|``. A :class:`Trimmer` is a
trim at work: it turns decoded JSON into frozen objects and remembers the parts it has seen, because the Pods
of a worker group differ in little more than name, node and address.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from sys import intern
from typing import Any, Final

import orjson

from kuberay_op.frozen import FrozenDict, FrozenList
from kuberay_op.kube.resource import Object

#: A path through dicts; lists on the way are passed through item by item.
Path = tuple[str, ...]

#: Dropped always: large, and of use to nobody here.
NEVER: Final[tuple[Path, ...]] = (
    ("metadata", "managedFields"),
    ("metadata", "selfLink"),
    ("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"),
)

#: Kept always: without these an object is not an object.
ALWAYS: Final[tuple[Path, ...]] = (("apiVersion",), ("kind",), ("metadata",))

#: How many strings, and how many parts in each of two generations, a trimmer remembers.
REMEMBERED: Final = 8192


def path(text: str | Iterable[str]) -> Path:
    """A path from ``"spec.nodeName"``, or from a tuple where a key has dots in it."""
    return tuple(text.split(".")) if isinstance(text, str) else tuple(text)


@dataclass(frozen=True, slots=True)
class Trim:
    """What to keep of an object: everything, only some paths, or all but some paths.

    ``metadata`` is always kept, without managedFields and the last-applied annotation. Make one with
    :meth:`only` or :meth:`without`; :data:`EVERYTHING` is the default of caches.
    """

    keep: frozenset[Path] | None = None
    drop: frozenset[Path] = frozenset()

    @classmethod
    def only(cls, *paths: str | Iterable[str]) -> Trim:
        """Keep these paths and the metadata: ``Trim.only("spec.nodeName", "status.phase")``."""
        return cls(frozenset(map(path, paths)))

    @classmethod
    def without(cls, *paths: str | Iterable[str]) -> Trim:
        """Keep everything but these paths."""
        return cls(None, frozenset(map(path, paths)))

    def __or__(self, other: Trim) -> Trim:
        """What satisfies both: nothing is dropped that one of them wants."""
        if self.keep is not None and other.keep is not None:
            return Trim(self.keep | other.keep)
        return Trim(None, frozenset(d for d in self.drop | other.drop if self._drops(d) and other._drops(d)))

    def _drops(self, unwanted: Path) -> bool:
        """Whether this trim needs nothing on, above or below that path."""
        if self.keep is None:
            return any(unwanted[: len(d)] == d for d in self.drop)
        return not any(_related(unwanted, wanted) for wanted in self.keep | set(ALWAYS))

    def plan(self) -> Node:
        """The trim as a tree that is quick to walk."""
        root = Node(keeps_rest=self.keep is None)
        for wanted in sorted(ALWAYS + tuple(self.keep or ())):
            root.keep(wanted)
        for unwanted in sorted(NEVER + tuple(self.drop)):
            root.drop(unwanted)
        return root


#: Keeps everything but managedFields and the last-applied annotation.
EVERYTHING: Final = Trim()


def join(trims: Iterable[Trim]) -> Trim:
    """What satisfies all of these; everything, if there are none."""
    found = list(trims)
    return reduce(Trim.__or__, found) if found else EVERYTHING


def _related(a: Path, b: Path) -> bool:
    shorter = min(len(a), len(b))
    return a[:shorter] == b[:shorter]


class Node:
    """What happens to the fields of one dict: those named are for a child to decide, the rest is kept or not.

    Without children it is a verdict: keep the whole, or drop it.
    """

    __slots__ = ("children", "keeps_rest")

    def __init__(self, *, keeps_rest: bool) -> None:
        self.keeps_rest = keeps_rest
        self.children: dict[str, Node] = {}

    def keep(self, wanted: Path) -> None:
        """Keep all below this path. Shorter paths must come first."""
        node = self
        for key in wanted:
            if node.keeps_rest:
                return  # all below is kept already
            node = node.children.setdefault(key, Node(keeps_rest=False))
        node.keeps_rest = True

    def drop(self, unwanted: Path) -> None:
        """Drop this path, if anything of it would be kept. Comes after all calls of ``keep``."""
        node = self
        for key in unwanted[:-1]:
            if key not in node.children:
                if not node.keeps_rest:
                    return
                node.children[key] = Node(keeps_rest=True)
            node = node.children[key]
        if node.keeps_rest:
            node.children[unwanted[-1]] = Node(keeps_rest=False)

    def select(self, fields: Object) -> Iterator[tuple[str, Any, Node]]:
        """The fields that are kept, each with the node for what is below it."""
        children, rest = self.children, WHOLE if self.keeps_rest else None
        for key, value in fields.items():
            node = children.get(key, rest)
            if node is not None and (node.children or node.keeps_rest):
                yield key, value, node


WHOLE: Final = Node(keeps_rest=True)


class Trimmer:
    """Turns decoded objects into trimmed, frozen ones that share equal parts. One for each cache."""

    def __init__(self, trim: Trim = EVERYTHING) -> None:
        self._plan = trim.plan()
        self._strings: dict[str, str] = {}
        # Two generations: what was not asked for while the young one filled up is forgotten.
        self._young: dict[int, Any] = {}
        self._old: dict[int, Any] = {}

    def __call__(self, obj: Object) -> FrozenDict:
        """The object as it goes into the cache. The argument is not changed."""
        if len(self._young) > REMEMBERED:
            self._old, self._young = self._young, {}
        if len(self._strings) > REMEMBERED:
            self._strings = {}
        # metadata, spec and status as a whole are never equal between objects; their parts often are.
        return FrozenDict(
            {
                intern(key): self._fields(value, node) if type(value) is dict else self._value(value, node)
                for key, value, node in self._plan.select(obj)
            }
        )

    def _fields(self, fields: Object, node: Node) -> FrozenDict:
        # The same as ``_value`` for each field, but without a call for each: this is where the time goes.
        strings, part = self._strings.setdefault, self._part
        if node.children:
            return FrozenDict(
                {
                    intern(key): strings(value, value)
                    if type(value) is str
                    else part(value, below)
                    if type(value) is dict or type(value) is list
                    else value
                    for key, value, below in node.select(fields)
                }
            )
        return FrozenDict(
            {
                intern(key): strings(value, value)
                if type(value) is str
                else part(value, node)
                if type(value) is dict or type(value) is list
                else value
                for key, value in fields.items()
            }
        )

    def _value(self, value: Any, node: Node) -> Any:
        if type(value) is str:
            return self._strings.setdefault(value, value)
        return self._part(value, node) if type(value) is dict or type(value) is list else value

    def _part(self, value: Object | list[Any], node: Node) -> Any:
        """The one frozen copy of this part of an object, made if it is not known."""
        if node.children:
            # What is cut away may be all that differs, so cut first and compare then.
            value = self._frozen(value, node)
        # Known by a hash, because the bytes orjson returns occupy kilobytes whatever their length; two parts
        # with the same hash are told apart by comparing them.
        mark = hash(orjson.dumps(value))
        found = self._young.get(mark)
        if found is None or found != value:
            found = self._old.get(mark)
            if found is None or found != value:
                found = value if node.children else self._frozen(value, node)
            self._young[mark] = found
        return found

    def _frozen(self, value: Object | list[Any], node: Node) -> Any:
        if isinstance(value, dict):
            return self._fields(value, node)
        if len(value) == 1 and type(value[0]) is dict:
            # Equal to another only if the list is, and that was looked up already.
            return FrozenList([self._fields(value[0], node)])
        return FrozenList([self._value(item, node) for item in value])
