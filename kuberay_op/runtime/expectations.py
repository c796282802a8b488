"""Read your own writes: a pass must not decide on a view that lacks what the last pass wrote.

The cache follows the API server with a small delay. After a write the controller notes here what the cache
must show before the next decision::

    pod = await client.create(PODS, body, reason="head is missing")
    expectations.created(key, pods, pod)
    ...
    match expectations.check(key):
        case View.BEHIND: return Result.after(expectations.limit)  # news of the object comes sooner
        case View.OVERDUE: observed = <read from the API server>; expectations.forget(key)
        case View.CURRENT: observed = <read from the cache>

An event that never comes delays the controller by the time limit and then costs one read from the server;
it never freezes it and never makes it decide on old data. No event is needed: the cache itself is asked, so
a list after a broken watch counts as well. Events only make it quicker: once an owner was found behind, a
controller's wiring wakes it at news of an object it waits for. An owner whose writes show before anybody asks
is not woken by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol

from kuberay_op.clock import Clock
from kuberay_op.kube.resource import Key, key_of

#: Seconds to wait for the cache before the API server is asked.
LIMIT: Final = 10.0


class View(Enum):
    """Whether the cache may be trusted for an owner's objects."""

    CURRENT = "current"  # it shows all our writes
    BEHIND = "behind"  # it does not yet: come back
    OVERDUE = "overdue"  # it did not in time: read from the API server instead


class Cache(Protocol):
    """The part of ``kuberay_op.kube.cache.Store`` that is needed here."""

    def get(self, key: Key) -> Mapping[str, Any] | None:
        """The object as the cache knows it."""
        ...


@dataclass(frozen=True, slots=True)
class Expectation:
    """One write that the cache has to show."""

    what: str  # created, changed or deleted
    cache: Cache
    key: Key
    uid: str
    version: str
    deadline: float

    def met(self) -> bool:
        """Whether the cache shows the write, or something later."""
        seen = self.cache.get(self.key)
        metadata: Mapping[str, Any] = seen["metadata"] if seen is not None else {}
        if self.what == "deleted":
            # Deletion only starts with the call; an object marked for it counts as seen.
            return metadata.get("uid") != self.uid or "deletionTimestamp" in metadata
        if metadata.get("uid") != self.uid:
            # Replaced by another object, or gone: what we changed had been there before, so that is news.
            return self.what == "changed"
        return not older(str(metadata.get("resourceVersion", "")), self.version)


def older(version: str, other: str) -> bool:
    """Whether a resourceVersion is older than another one of the same resource.

    Kubernetes promises since 1.35 what had been true long before: they are decimal numbers that grow.
    Anything else is taken as older unless it is the same.
    """
    if version.isdecimal() and other.isdecimal():
        return int(version) < int(other)
    return version != other


class Expectations:
    """The writes of every owner that the caches have not shown yet. Owners are keys of a controller."""

    def __init__(self, *, clock: Clock, limit: float = LIMIT) -> None:
        self.limit = limit
        self._clock = clock
        self._unmet: dict[Key, dict[str, Expectation]] = {}
        self._waiting: dict[str, Key] = {}  # by the UID they wait for
        self._behind: set[Key] = set()  # owners whose pass was put off

    def created(self, owner: Key, cache: Cache, obj: Mapping[str, Any]) -> None:
        """``obj``, as the server returned it, was created for ``owner``."""
        self._expect("created", owner, cache, obj)

    def changed(self, owner: Key, cache: Cache, obj: Mapping[str, Any]) -> None:
        """``obj``, as the server returned it, was changed for ``owner``."""
        self._expect("changed", owner, cache, obj)

    def deleted(self, owner: Key, cache: Cache, obj: Mapping[str, Any]) -> None:
        """``obj``, as last seen, was deleted for ``owner``."""
        self._expect("deleted", owner, cache, obj)

    def check(self, owner: Key) -> View:
        """Whether the caches show everything written for ``owner``."""
        unmet = self._unmet.get(owner)
        if not unmet:
            return View.CURRENT
        for uid in [uid for uid, expectation in unmet.items() if expectation.met()]:
            del unmet[uid]
            self._waiting.pop(uid, None)
        if not unmet:
            del self._unmet[owner]
            self._behind.discard(owner)
            return View.CURRENT
        now = self._clock.monotonic()
        if any(expectation.deadline <= now for expectation in unmet.values()):
            return View.OVERDUE
        self._behind.add(owner)
        return View.BEHIND

    def satisfied(self, owner: Key) -> bool:
        """Whether the cache may be used for ``owner`` now."""
        return self.check(owner) is View.CURRENT

    def unmet(self, owner: Key) -> list[Expectation]:
        """What the caches have not shown yet, for logs and ``/debug``."""
        return list(self._unmet.get(owner, {}).values())

    def waiting_for(self, obj: Mapping[str, Any]) -> Key | None:
        """The owner whose pass was put off until there is news of this very object."""
        owner = self._waiting.get(obj["metadata"]["uid"])
        return owner if owner in self._behind else None

    def forget(self, owner: Key) -> None:
        """Expect nothing any more: the owner is gone, or was read from the server."""
        self._behind.discard(owner)
        for uid in self._unmet.pop(owner, {}):
            self._waiting.pop(uid, None)

    def clear(self) -> None:
        """Expect nothing of anybody: somebody else was leader meanwhile."""
        self._unmet.clear()
        self._waiting.clear()
        self._behind.clear()

    def __len__(self) -> int:
        """Owners whose view is behind or overdue, as far as was last checked."""
        return len(self._unmet)

    def owners(self) -> list[Key]:
        """Owners with something unmet, as far as was last checked."""
        return list(self._unmet)

    def _expect(self, what: str, owner: Key, cache: Cache, obj: Mapping[str, Any]) -> None:
        metadata = obj["metadata"]
        expectation = Expectation(
            what=what,
            cache=cache,
            key=key_of(obj),
            uid=metadata["uid"],
            version=str(metadata.get("resourceVersion", "")),
            deadline=self._clock.monotonic() + self.limit,
        )
        unmet = self._unmet.setdefault(owner, {})
        before = unmet.get(expectation.uid)
        if before is not None and before.what == "created" and what == "changed":
            # The change is of an object the cache has never shown: absence still means "not yet".
            expectation = Expectation(
                "created", cache, expectation.key, expectation.uid, expectation.version, before.deadline
            )
        unmet[expectation.uid] = expectation
        self._waiting[expectation.uid] = owner
