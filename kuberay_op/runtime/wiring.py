"""Which changes wake which keys of a controller, and how urgently.

Built by ``Manager.controller`` and read like a sentence::

    manager.controller("copier", CONFIG_MAPS, reconcile).owns(SECRETS).watches(NAMESPACES, all_in_it)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kuberay_op.frozen import FrozenDict
from kuberay_op.kube.resource import Key, Resource, key_of
from kuberay_op.runtime.controller import Controller
from kuberay_op.runtime.expectations import Expectations
from kuberay_op.runtime.ready import Priority

if TYPE_CHECKING:
    from kuberay_op.runtime.manager import Manager

#: Whether a change of an object matters; the arguments are the old object and the new one.
Predicate = Callable[[FrozenDict, FrozenDict], bool]

#: The keys that a change of another object concerns.
KeysOf = Callable[[FrozenDict], Iterable[Key]]


def any_change(_: FrozenDict, __: FrozenDict) -> bool:
    """Every change matters."""
    return True


def edited(old: FrozenDict, new: FrozenDict) -> bool:
    """Only what people change matters: the spec (by its generation), labels and annotations, not status."""
    before, after = old["metadata"], new["metadata"]
    return any(before.get(field) != after.get(field) for field in ("generation", "labels", "annotations"))


def owner_key(obj: Mapping[str, Any], owner: Resource) -> Key | None:
    """The key of the object's controller, if that is of the given resource, in whatever version."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        group, _, _ = str(reference["apiVersion"]).rpartition("/")
        if reference.get("controller") and reference["kind"] == owner.kind and group == owner.group:
            namespace = obj["metadata"].get("namespace") or "" if owner.namespaced else ""
            return Key(namespace, reference["name"])
    return None


class Wiring:
    """A controller and the changes that wake it; all methods return the wiring itself."""

    def __init__(
        self, manager: Manager, controller: Controller, resource: Resource, expectations: Expectations
    ) -> None:
        self.controller = controller
        self.resource = resource
        #: Writes that the caches must show before the next pass decides; see ``Expectations``.
        self.expectations = expectations
        self._manager = manager
        self._awake = False
        self._over: list[Callable[[], None]] = []

    def owns(self, *resources: Resource, when: Predicate = any_change) -> Wiring:
        """Look at an object when something it controls appears, changes or goes."""

        def owner(obj: FrozenDict) -> Iterable[Key]:
            key = owner_key(obj, self.resource)
            return () if key is None else (key,)

        for resource in resources:
            self.watches(resource, owner, when=when)
        return self

    def watches(self, resource: Resource, keys: KeysOf, *, when: Predicate = any_change) -> Wiring:
        """Look at the objects that ``keys`` names when something else appears, changes or goes."""

        def changed(_: str, old: FrozenDict | None, new: FrozenDict | None) -> None:
            self._notice(old, new)
            if old is not None and new is not None and not when(old, new):
                return
            # Both: an object may have left one owner for another.
            for key in {key for obj in (old, new) if obj is not None for key in keys(obj)}:
                self._wake(key, Priority.CHANGE)

        self._manager.on_change(resource, changed)
        return self

    def reconciles(self, when: Predicate) -> Wiring:
        """Look at an object of the controller's own kind when it appears, goes or changes in what matters."""

        def changed(_: str, old: FrozenDict | None, new: FrozenDict | None) -> None:
            self._notice(old, new)
            if old is not None and new is not None:
                if not when(old, new):
                    return
                urgent = edited(old, new)
            else:
                urgent = True
            obj = new if new is not None else old
            if obj is not None:
                self._wake(key_of(obj), Priority.EDIT if urgent else Priority.CHANGE)

        self._manager.on_change(self.resource, changed)
        return self

    def wake_up(self, keys: Iterable[Key]) -> None:
        """A term as leader begins: forget the last one and look at everything once."""
        self.expectations.clear()
        self.controller.queue.reopen()
        self._awake = True
        for key in keys:
            self._wake(key, Priority.RESYNC)

    def go_to_sleep(self) -> None:
        """The term is over: changes no longer concern us. Who leads next looks at everything."""
        self._awake = False
        self.controller.queue.close()
        for callback in self._over:
            callback()

    def when_over(self, callback: Callable[[], None]) -> Wiring:
        """Call this at the end of every term: what goes on outside of passes must end, too."""
        self._over.append(callback)
        return self

    def wake(self, key: Key) -> None:
        """Look at this object for a reason that no cache knows, such as an answer from outside."""
        self._wake(key, Priority.CHANGE)

    def _notice(self, old: FrozenDict | None, new: FrozenDict | None) -> None:
        """News of an object that somebody waits for is welcome, even where such a change does not matter."""
        for obj in (old, new):
            owner = None if obj is None else self.expectations.waiting_for(obj)
            if owner is not None:
                self._wake(owner, Priority.CHANGE)
                return

    def _wake(self, key: Key, priority: Priority) -> None:
        if self._awake:
            self.controller.queue.add(key, priority=priority)
