"""The hash that tells whether a cluster spec changed in a way that needs new Pods or a new cluster.

SHA-1 of a canonical JSON text, written in 32 characters ``0-9A-V``. The canonical text is our own: sorted
keys, and one form for things that can be written in several ways. A program in Go that reads an object and
writes it back may turn ``cpu: 1`` into ``cpu: "1"``, ``1024Mi`` into ``1Gi``, add ``resources: {}`` or drop
``hostNetwork: false``; none of that may start an upgrade.

Values are therefore not comparable with those of another implementation or version, and never are compared:
the annotation ``ray.io/kuberay-version`` stands beside each hash and says who wrote it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from kuberay_op.quantity import Quantity

#: Changes of these need no new Pods.
_SCALING: Final = ("replicas", "minReplicas", "maxReplicas")
_SCHEDULING: Final = ("tolerations", "schedulingGates")

#: Objects for which "empty" and "absent" are the same.
_EMPTY_IS_ABSENT: Final = frozenset(
    {"annotations", "labels", "limits", "metadata", "nodeSelector", "rayStartParams", "requests", "resources",
     "scaleStrategy", "status", "loadBalancer"}
)  # fmt: skip
#: Switches for which "false" and "absent" are the same.
_FALSE_IS_ABSENT: Final = frozenset(
    {"hostIPC", "hostNetwork", "hostPID", "readOnly", "stdin", "stdinOnce", "tty"}
)
#: Fields that hold a quantity, and maps of quantities.
_QUANTITIES: Final = frozenset({"divisor", "size", "sizeLimit"})
_QUANTITY_MAPS: Final = frozenset({"limits", "requests"})


def raycluster_spec_hash(spec: Mapping[str, Any]) -> str:
    """Hash of a RayCluster's spec, for ``upgradeStrategy: {type: Recreate}``."""
    return _hash(_relevant(spec))


def rayservice_spec_hash(spec: Mapping[str, Any], *, worker_groups: int | None = None) -> str:
    """Hash of a RayService's cluster spec, which leaves ``suspend`` out.

    ``worker_groups`` looks only at the first so many groups: if that hash is unchanged, groups were merely
    appended, and the cluster can be changed in place.
    """
    relevant = _relevant(spec, worker_groups)
    relevant.pop("suspend", None)
    return _hash(relevant)


def _relevant(spec: Mapping[str, Any], worker_groups: int | None = None) -> dict[str, Any]:
    """A copy of ``spec`` without what may change freely; the original is not touched."""
    relevant = {key: value for key, value in spec.items() if key != "upgradeStrategy"}
    if isinstance(head := spec.get("headGroupSpec"), Mapping):
        relevant["headGroupSpec"] = _without_scheduling(head)
    if isinstance(groups := spec.get("workerGroupSpecs"), Sequence):
        relevant["workerGroupSpecs"] = [_relevant_group(group) for group in groups[:worker_groups]]
    return relevant


def _relevant_group(group: Any) -> Any:
    if not isinstance(group, Mapping):
        return group
    relevant = _without(_without_scheduling(group), _SCALING)
    if isinstance(strategy := relevant.get("scaleStrategy"), Mapping):
        relevant["scaleStrategy"] = _without(strategy, ("workersToDelete",))
    return relevant


def _without_scheduling(group: Mapping[str, Any]) -> dict[str, Any]:
    relevant = dict(group)
    template = group.get("template")
    if isinstance(template, Mapping) and isinstance(pod := template.get("spec"), Mapping):
        relevant["template"] = {**template, "spec": _without(pod, _SCHEDULING)}
    return relevant


def _without(mapping: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key not in keys}


def _hash(value: dict[str, Any]) -> str:
    text = orjson.dumps(_canonical(value), option=orjson.OPT_SORT_KEYS)
    digest = hashlib.sha1(text, usedforsecurity=False).digest()
    return base64.b32hexencode(digest).decode()


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        items = ((key, _canonical_field(key, item)) for key, item in value.items())
        return {key: item for key, item in items if item is not None}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    return value


def _canonical_field(key: str, value: Any) -> Any:
    """The one form of a field's value; None when it says no more than its absence."""
    if key in _QUANTITIES:
        text = _canonical_quantity(value)
        return None if key == "divisor" and text == "0" else text
    if key in _QUANTITY_MAPS and isinstance(value, Mapping):
        return {name: _canonical_quantity(amount) for name, amount in value.items()} or None
    if value is False and key in _FALSE_IS_ABSENT:
        return None
    result = _canonical(value)
    if result == [] or (result == {} and key in _EMPTY_IS_ABSENT):
        return None
    return result


def _canonical_quantity(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return value
    try:
        return str(Quantity.parse(value))
    except ValueError:
        return value
