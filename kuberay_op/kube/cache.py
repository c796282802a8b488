"""The cache of one resource: what the API server last told us, trimmed, frozen and indexed.

A reflector writes, everybody reads. Reads never wait and give shared objects; to change one, copy it with
``kuberay_op.frozen.thaw``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from kuberay_op.frozen import FrozenDict
from kuberay_op.kube.resource import Key, Object, Resource, key_of
from kuberay_op.kube.trim import EVERYTHING, Trim, Trimmer
from kuberay_op.kube.watch import ADDED, DELETED, MODIFIED
from kuberay_op.logs import get_logger

log = get_logger("kube.cache")

#: Gives the values under which an object is found in an index.
Indexer = Callable[[Mapping[str, Any]], Iterable[Hashable]]

#: What reads give. (Inside the class below, ``list`` is a method.)
Objects = list[FrozenDict]
Keys = list[Key]

#: The index every store has: ``store.by_index(OWNER, uid)``.
OWNER: Final = "owner"
NAMESPACE: Final = "namespace"

#: Deletions remembered, so that a late event does not bring a deleted object back.
TOMBSTONES: Final = 4096


def owner_uids(obj: Mapping[str, Any]) -> Iterable[Hashable]:
    """Index by the UIDs of all owners."""
    return [owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ()]


def label(name: str) -> Indexer:
    """Index by the value of a label; objects without it are in no bucket."""

    def values(obj: Mapping[str, Any]) -> Iterable[Hashable]:
        labels = obj["metadata"].get("labels") or {}
        return (labels[name],) if name in labels else ()

    return values


def _namespace(obj: Mapping[str, Any]) -> Iterable[Hashable]:
    return (obj["metadata"].get("namespace") or "",)


class Change(NamedTuple):
    """What a cache did: ``ADDED`` (old is None), ``MODIFIED``, or ``DELETED`` (new is None)."""

    type: str
    old: FrozenDict | None
    new: FrozenDict | None


class Store:
    """All objects of a resource that match the reflector's selectors."""

    def __init__(
        self, resource: Resource, *, trim: Trim = EVERYTHING, indexers: Mapping[str, Indexer] | None = None
    ) -> None:
        self.resource = resource
        self._trimmer = Trimmer(trim)
        self._objects: dict[Key, FrozenDict] = {}
        self._buried: OrderedDict[Key, int] = OrderedDict()
        self._indexers: dict[str, Indexer] = {NAMESPACE: _namespace, OWNER: owner_uids, **(indexers or {})}
        self._indexes: dict[str, dict[Hashable, dict[Key, FrozenDict]]] = {
            name: {} for name in self._indexers
        }

    # Reading

    def get(self, key: Key) -> FrozenDict | None:
        """The object, if there is one."""
        return self._objects.get(key)

    def list(self, namespace: str | None = None) -> Objects:
        """All objects, or those of one namespace."""
        if namespace is None:
            return [*self._objects.values()]
        return self.by_index(NAMESPACE, namespace)

    def by_index(self, index: str, value: Hashable) -> Objects:
        """The objects that an index has under a value, for example all that an object owns."""
        return [*self._indexes[index].get(value, {}).values()]

    def keys(self) -> Keys:
        """The keys of all objects."""
        return [*self._objects]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._objects)

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: object) -> bool:
        return key in self._objects

    # Preparing

    def add_index(self, name: str, indexer: Indexer) -> None:
        """Add an index, also over what is cached already."""
        if self._indexers.get(name, indexer) is not indexer:
            raise ValueError(f"the cache of {self.resource} has another index named {name!r}")
        self._indexers[name] = indexer
        index = self._indexes[name] = {}
        for key, obj in self._objects.items():
            for value in _values(name, indexer, obj):
                index.setdefault(value, {})[key] = obj

    # Writing, for the reflector

    def put(self, obj: Object, *, listed: bool = False) -> tuple[Change, ...]:
        """Take in what the server says an object is now.

        Events may come twice or late, so an older version than the cached one is ignored. A list is what
        the server has *now*: with ``listed`` every other version than the cached one is taken.
        """
        key = key_of(obj)
        old = self._objects.get(key)
        if old is None:
            if not listed and self._is_buried(key, obj):
                return ()
            return (self._enter(key, None, self._trimmer(obj)),)
        if old["metadata"].get("uid") != obj["metadata"].get("uid"):
            if not listed and not _newer(obj, old):
                return ()
            gone = self._leave(key, old)
            return (gone, self._enter(key, None, self._trimmer(obj)))
        if _version(old) == _version(obj) or not (listed or _newer(obj, old)):
            return ()
        return (self._enter(key, old, self._trimmer(obj)),)

    def remove(self, obj: Object) -> tuple[Change, ...]:
        """Take in that the server has deleted an object; ``obj`` is its last state."""
        key = key_of(obj)
        self._bury(key, _ordinal(obj))
        old = self._objects.get(key)
        if old is None or not (_newer(obj, old) or _version(old) == _version(obj)):
            return ()
        self._leave(key, old)
        return (Change(DELETED, self._trimmer(obj), None),)

    def retain(self, namespace: str, seen: Iterable[Key]) -> tuple[Change, ...]:
        """After a list: drop what it did not have, in one namespace or (if empty) in all."""
        known = self._indexes[NAMESPACE].get(namespace, {}) if namespace else self._objects
        unseen = known.keys() - set(seen)
        return tuple(self._leave(key, self._objects[key]) for key in [k for k in known if k in unseen])

    def _enter(self, key: Key, old: FrozenDict | None, new: FrozenDict) -> Change:
        if old is not None:
            self._unindex(key, old)
        self._buried.pop(key, None)
        self._objects[key] = new
        for name, indexer in self._indexers.items():
            index = self._indexes[name]
            for value in _values(name, indexer, new):
                index.setdefault(value, {})[key] = new
        return Change(ADDED if old is None else MODIFIED, old, new)

    def _leave(self, key: Key, old: FrozenDict) -> Change:
        self._unindex(key, old)
        del self._objects[key]
        self._bury(key, _ordinal(old))
        return Change(DELETED, old, None)

    def _unindex(self, key: Key, obj: FrozenDict) -> None:
        for name, indexer in self._indexers.items():
            index = self._indexes[name]
            for value in _values(name, indexer, obj):
                bucket = index.get(value)
                if bucket is not None:
                    bucket.pop(key, None)
                    if not bucket:
                        del index[value]

    def _bury(self, key: Key, ordinal: int | None) -> None:
        if ordinal is None:
            return
        self._buried[key] = max(ordinal, self._buried.get(key, 0))
        self._buried.move_to_end(key)
        if len(self._buried) > TOMBSTONES:
            self._buried.popitem(last=False)

    def _is_buried(self, key: Key, obj: Object) -> bool:
        ordinal = _ordinal(obj)
        return ordinal is not None and ordinal <= self._buried.get(key, 0)


def _values(name: str, indexer: Indexer, obj: FrozenDict) -> frozenset[Hashable]:
    """What an indexer gives; nothing if it fails, since a plugin's index must not cost us the cache."""
    try:
        return frozenset(indexer(obj))
    except Exception:
        log.exception("an indexer failed", index=name, object=str(key_of(obj)))
        return frozenset()


def _version(obj: Mapping[str, Any]) -> str:
    version: str = obj["metadata"].get("resourceVersion") or ""
    return version


def _ordinal(obj: Mapping[str, Any]) -> int | None:
    """The version as a number: Kubernetes' own storage counts; other API servers may not."""
    version = _version(obj)
    return int(version) if version.isdecimal() else None


def _newer(obj: Mapping[str, Any], than: Mapping[str, Any]) -> bool:
    """Whether an object is later than another. Versions that do not count are taken to be."""
    new, old = _ordinal(obj), _ordinal(than)
    return new is None or old is None or new > old
