"""Objects that cannot be changed by accident: those in a cache, and those that a plugin is shown.

Everybody who asks a cache gets the same object, so a change would be seen by all and undone by nobody. The
classes here are dicts and lists in every respect (``isinstance``, ``==``, iteration, orjson) except that
changing one raises. ``thaw`` gives a copy to change.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

import orjson

HINT: Final = "this object is shared and cannot be changed; change a copy: kuberay_op.frozen.thaw(obj)"


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError(HINT)


class FrozenDict(dict[str, Any]):
    """A dict that refuses to be changed."""

    __slots__ = ()

    __setitem__ = _refuse
    __delitem__ = _refuse
    __ior__ = _refuse
    clear = _refuse
    pop = _refuse
    popitem = _refuse
    setdefault = _refuse
    update = _refuse

    def copy(self) -> dict[str, Any]:
        """A plain dict of the same, still frozen values."""
        return dict(self)

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> dict[str, Any]:
        copied: dict[str, Any] = thaw(self)
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class FrozenList(list[Any]):
    """A list that refuses to be changed."""

    __slots__ = ()

    __setitem__ = _refuse
    __delitem__ = _refuse
    __iadd__ = _refuse
    __imul__ = _refuse
    append = _refuse
    clear = _refuse
    extend = _refuse
    insert = _refuse
    pop = _refuse
    remove = _refuse
    reverse = _refuse
    sort = _refuse

    def copy(self) -> list[Any]:
        """A plain list of the same, still frozen values."""
        return list(self)

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> list[Any]:
        return [thaw(item) for item in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def thaw(value: Any) -> Any:
    """A deep copy, made of plain dicts and lists, that may be changed."""
    # Objects are JSON, and orjson there and back is many times faster than a walk in Python.
    return orjson.loads(orjson.dumps(value))


#: Values that cannot be changed anyway; nearly all are of these types, so they are looked for first.
_ATOMS: Final = frozenset({str, int, float, bool, type(None)})


def freeze(value: Any) -> Any:
    """A deep copy that refuses to be changed; what is frozen already is used as it is."""
    kind = type(value)
    if kind in _ATOMS or kind is FrozenDict or kind is FrozenList:
        return value
    if isinstance(value, dict):
        return FrozenDict(
            {key: item if type(item) in _ATOMS else freeze(item) for key, item in value.items()}
        )
    if isinstance(value, list | tuple):
        return FrozenList([item if type(item) in _ATOMS else freeze(item) for item in value])
    return value
