"""Which of the keys that may run now runs next.

Two rules, both cheap and both easy to reason about:

1. The highest priority first; within it the namespaces take turns, and each namespace goes in order of
   arrival. A namespace with ten thousand objects cannot crowd out one with a single object.
2. Every ``oldest_every``-th pick takes the key that has waited longest, whatever its priority. That is the
   ageing: of the keys waiting, the r-th oldest runs within ``r × oldest_every`` picks, however many
   urgent keys arrive meanwhile, while urgent keys keep all other picks.

Every operation takes constant time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from kuberay_op.kube.resource import Key

OLDEST_EVERY: Final = 4


class Priority(IntEnum):
    """What asked for the pass; the number is the ``priority`` label of ``workqueue_depth``."""

    EDIT = 100  # somebody changed the object itself
    CHANGE = 0  # something it owns or watches changed, or a timer fell due
    RESYNC = -100  # nothing changed: first list, new leader, periodic check


class Ready:
    """Keys that may run now, in the order described above. Holds each key once."""

    def __init__(self, *, oldest_every: int = OLDEST_EVERY) -> None:
        self._oldest_every = oldest_every
        self._picks = 0
        self._by_age: OrderedDict[Key, Priority] = OrderedDict()
        self._depth = dict.fromkeys(Priority, 0)
        #: priority → namespace whose turn is next first → its keys in order of arrival
        self._levels: dict[Priority, OrderedDict[str, OrderedDict[Key, None]]] = {
            priority: OrderedDict() for priority in sorted(Priority, reverse=True)
        }

    def __len__(self) -> int:
        return len(self._by_age)

    def __contains__(self, key: Key) -> bool:
        return key in self._by_age

    def __iter__(self) -> Iterator[Key]:
        return iter(self._by_age)

    def depth(self, priority: Priority) -> int:
        """How many keys of this priority wait."""
        return self._depth[priority]

    def add(self, key: Key, priority: Priority) -> None:
        """Take in a key; if it is here already, its priority may rise, its age stays."""
        known = self._by_age.get(key)
        if known is not None:
            if priority <= known:
                return
            self._leave_level(key, known)
        self._by_age[key] = priority
        self._depth[priority] += 1
        self._levels[priority].setdefault(key.namespace, OrderedDict())[key] = None

    def pop(self) -> Key:
        """Remove and return the key that runs next; ``LookupError`` when there is none."""
        if not self._by_age:
            raise LookupError("no key is ready")
        self._picks += 1
        key = self._oldest() if self._picks % self._oldest_every == 0 else self._next_in_turn()
        self._leave_level(key, self._by_age.pop(key))
        return key

    def _oldest(self) -> Key:
        return next(iter(self._by_age))

    def _next_in_turn(self) -> Key:
        namespaces = next(level for level in self._levels.values() if level)
        namespace, keys = next(iter(namespaces.items()))
        namespaces.move_to_end(namespace)
        return next(iter(keys))

    def _leave_level(self, key: Key, priority: Priority) -> None:
        self._depth[priority] -= 1
        namespaces = self._levels[priority]
        keys = namespaces[key.namespace]
        del keys[key]
        if not keys:
            del namespaces[key.namespace]
