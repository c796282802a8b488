"""What must change so that an object has the fields we want: a JSON merge patch, or nothing.

``desired`` holds only fields that are ours. Everything else on the observed object belongs to somebody else
(the server's defaults, a user's labels, an injected sidecar) and is left alone:

* Maps are compared key by key; keys we do not name are not looked at.
* Lists of :data:`SHARED` are compared item by item by their key; items we do not name stay.
* Lists of :data:`KEYED` are ours as a whole, but an item keeps what the server has added to it.
* :data:`SETS` must contain our values; the others stay.
* Lists of :data:`EXACT` are ours to the last field: what somebody adds to an item makes it another one.
* Any other list is ours as a whole, in its order; items may have more fields than we name.
* ``None`` means that a field must not be there. What ``previous`` had and ``desired`` has not is taken away.
* Quantities are compared by value (``1000m`` is ``1``), and an empty value equals a missing one, because the
  server writes the first its own way and leaves the second out.
"""

from __future__ import annotations

import base64
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

from kuberay_op.frozen import thaw
from kuberay_op.kube.resource import Object
from kuberay_op.quantity import Quantity

#: Lists to which others add items of their own, and the fields that tell items apart.
SHARED: Final[Mapping[str, tuple[str, ...]]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}

#: Lists that are ours, but whose items the server completes (``nodePort``), and what tells items apart.
KEYED: Final[Mapping[str, tuple[str, ...]]] = {"ports": ("port", "containerPort", "protocol")}

#: Lists of values without order, to which others add.
SETS: Final = frozenset({"finalizers"})

#: Lists that say who may talk to whom, so that one field more or less means something else.
EXACT: Final = frozenset({"ingress", "egress"})

#: Maps whose values are quantities, and fields that are one.
QUANTITY_MAPS: Final = frozenset({"limits", "requests", "capacity", "hard"})
QUANTITY_FIELDS: Final = frozenset({"sizeLimit"})

#: Fields of the metadata that only the server sets; a desired object made from an observed one has them.
SERVERS: Final = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)

#: What the server fills in where a key field is missing.
KEY_DEFAULTS: Final = {"protocol": "TCP"}

#: Where we are: the names of the fields on the way.
_Path = tuple[str, ...]


def merge_patch(
    observed: Mapping[str, Any], desired: Mapping[str, Any], previous: Mapping[str, Any] | None = None
) -> Object | None:
    """The smallest merge patch that gives ``observed`` our fields; None if it has them.

    ``previous`` are the fields we wanted before, if they are known: what is no longer wanted is removed.
    """
    return _fields(observed, _with_data(desired), _with_data(previous or {}), ()) or None


def exact_patch(observed: Mapping[str, Any], desired: Mapping[str, Any]) -> Object:
    """The merge patch that makes ``observed`` the same as ``desired``; empty if it is.

    None is the same as not being there.
    """
    patch: Object = {}
    for name in {**observed, **desired}:
        have, want = observed.get(name), desired.get(name)
        if isinstance(have, Mapping) and isinstance(want, Mapping):
            if below := exact_patch(have, want):
                patch[name] = below
        elif have != want:
            patch[name] = thaw(overlay(None, want))
    return patch


def overlay(target: Any, patch: Any) -> Any:
    """What a JSON merge patch makes of a value (RFC 7396). The arguments are not changed."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = overlay(result.get(name), value)
    return result


def _quantity(text: object) -> Quantity | None:
    """A Kubernetes quantity (``500m``, ``1Gi``), or None if it is not one."""
    try:
        return Quantity.parse(str(text))
    except ValueError:
        return None


def _with_data(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """A Secret with its ``stringData`` where the server keeps it."""
    texts = obj.get("stringData")
    if not texts:
        return obj
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
    rest = {name: value for name, value in obj.items() if name != "stringData"}
    return rest | {"data": {**(obj.get("data") or {}), **encoded}}


def _fields(
    observed: Mapping[str, Any], desired: Mapping[str, Any], previous: Mapping[str, Any], path: _Path
) -> Object:
    patch: Object = {}
    for name, want in desired.items():
        if path == ("metadata",) and name in SERVERS:
            continue
        have, before, here = observed.get(name), previous.get(name), (*path, name)
        if want is None:
            if have is not None:
                patch[name] = None
        elif isinstance(want, Mapping) and isinstance(have, Mapping):
            below = _fields(have, want, before if isinstance(before, Mapping) else {}, here)
            if below:
                patch[name] = below
        elif isinstance(want, list | tuple) and isinstance(have, list | tuple):
            items = _items(have, want, before if isinstance(before, list | tuple) else (), here)
            if items is not None:
                patch[name] = items
        elif not _has(have, want, here):
            patch[name] = thaw(overlay(None, want))
    for name in previous:
        if name not in desired and observed.get(name) is not None:
            patch[name] = None
    return patch


def _items(
    observed: Sequence[Any], desired: Sequence[Any], previous: Sequence[Any], path: _Path
) -> list[Any] | None:
    """The list as it must be, or None if it is good as it is."""
    field = path[-1]
    if field in SETS:
        stay = [value for value in observed if value in desired or value not in previous]
        result = stay + [value for value in desired if value not in observed]
        return None if len(result) == len(observed) == len(stay) else result
    if field in EXACT:
        return None if _bare(observed) == _bare(desired) else thaw(list(desired))
    names = SHARED.get(field) or KEYED.get(field)
    if names and _are_keyed(desired, names) and all(isinstance(item, Mapping) for item in observed):
        return _keyed(observed, desired, previous if _are_keyed(previous, names) else (), path, names)
    same = len(observed) == len(desired) and all(
        _has(have, want, path) for have, want in zip(observed, desired, strict=True)
    )
    return None if same else thaw([overlay(None, want) for want in desired])


def _bare(value: Any) -> Any:
    """A value without what the server leaves out: nulls, empty lists and empty maps of labels."""
    if isinstance(value, Mapping):
        bare = {name: _bare(item) for name, item in value.items()}
        return {name: item for name, item in bare.items() if not _left_out(name, item)}
    return [_bare(item) for item in value] if isinstance(value, list | tuple) else value


def _left_out(name: str, value: Any) -> bool:
    """Whether the server leaves a field out, or fills it in by itself."""
    return value in (None, [], KEY_DEFAULTS.get(name)) or (name == "matchLabels" and value == {})


def _keyed(
    observed: Sequence[Any],
    desired: Sequence[Any],
    previous: Sequence[Any],
    path: _Path,
    names: Sequence[str],
) -> list[Any] | None:
    wanted = {_key(item, names): item for item in desired}
    before = {_key(item, names): item for item in previous}
    result: list[Any] = []
    changed = False
    for item in observed:
        key = _key(item, names)
        if key in wanted:
            patch = _fields(item, wanted.pop(key), before.get(key, {}), path)
            changed |= bool(patch)
            result.append(overlay(item, patch) if patch else item)
        elif path[-1] in KEYED or key in before:
            changed = True
        else:
            result.append(item)  # somebody else's
    result += [overlay(None, item) for item in wanted.values()]
    return thaw(result) if changed or wanted else None


def _are_keyed(items: Sequence[Any], names: Sequence[str]) -> bool:
    """Whether the fields tell the items apart; if not, the list can only be taken as a whole."""
    if not all(isinstance(item, Mapping) and any(name in item for name in names) for item in items):
        return False
    return len({_key(item, names) for item in items}) == len(items)


def _key(item: Mapping[str, Any], names: Sequence[str]) -> Hashable:
    return tuple(item.get(name, KEY_DEFAULTS.get(name)) for name in names)


def _has(have: Any, want: Any, path: _Path) -> bool:
    """Whether a value is already what we want, the server's additions and spellings aside."""
    if have is None:
        return not want
    if isinstance(want, Mapping) and isinstance(have, Mapping):
        return not _fields(have, want, {}, path)
    if isinstance(want, list | tuple) and isinstance(have, list | tuple):
        return _items(have, want, (), path) is None
    if have == want:
        return isinstance(have, bool) == isinstance(want, bool)  # to Python, True is 1
    if path[-1] in QUANTITY_FIELDS or (len(path) > 1 and path[-2] in QUANTITY_MAPS):
        amount = _quantity(want)
        other = _quantity(have)
        return amount is not None and other is not None and amount.nanos == other.nanos
    return False
