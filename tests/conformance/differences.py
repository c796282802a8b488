"""How two sets of objects differ, once all that chance, time and place decide has been taken out.

Differences that are meant stand in ``allowed-differences.yaml``, each with a reason and a section of the
contract.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import yaml

from kuberay_op.build.metadata import OPERATOR_VERSION

Json = dict[str, Any]

#: Stands for a value that is not there.
ABSENT: Final = "<absent>"

_SERVERS: Final = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")
_REPLICA_NAME: Final = "ray.io/worker-group-replica-name"
_PLACE: Final = ("ray.io/group", "ray.io/worker-group-replica-index", "ray.io/replica-host-index")
_TOKEN_VOLUME: Final = re.compile(r"kube-api-access-[a-z0-9]{5}")


# --- taking out what chance decides


def key_of(obj: Json) -> str:
    """What an object is called on both sides."""
    metadata = obj["metadata"]
    prefix = metadata.get("generateName")
    if not prefix:
        return f"{obj['kind']} {metadata['name']}"
    own = metadata.get("labels") or {}
    place = "/".join(own[key] for key in _PLACE if key in own)
    return f"{obj['kind']} {prefix}* {place}"


def stable(obj: Json, *, namespace: str, uid: str) -> Json:
    """The object without what differs between any two of its kind. ``uid`` is its cluster's."""
    text = json.dumps(obj).replace(namespace, "NAMESPACE").replace(uid, "CLUSTER-UID")
    result: Json = json.loads(_TOKEN_VOLUME.sub("kube-api-access-RANDOM", text))
    result.pop("status", None)
    metadata = result["metadata"]
    for key in _SERVERS:
        metadata.pop(key, None)
    if str(metadata.get("name", "")).startswith(metadata.get("generateName", "\0")):
        del metadata["name"]
    own = metadata.get("labels") or {}
    if _REPLICA_NAME in own:
        own[_REPLICA_NAME] = re.sub(r"-[a-z0-9]{5}$", "-RANDOM", own[_REPLICA_NAME])
    spec = result.get("spec") or {}
    spec.pop("nodeName", None)
    if result["kind"] == "Service":
        _without_chance(spec)
    if result["kind"] == "Secret":
        result["data"] = {key: _shape(value) for key, value in (result.get("data") or {}).items()}
    return result


def _without_chance(service: Json) -> None:
    """Addresses and ports that the server chose, and the order of ports, which the reference leaves open."""
    for key in ("clusterIP", "clusterIPs", "healthCheckNodePort"):
        if service.get(key) not in (None, "None", ["None"]):
            service[key] = "CHOSEN"
    for port in service.get("ports") or ():
        if "nodePort" in port:
            port["nodePort"] = "CHOSEN"
    service["ports"] = sorted(service.get("ports") or (), key=lambda port: str(port.get("name")))


def _shape(value: str) -> str:
    """What can be said about a secret: its length, and whether it is base64 of so many bytes."""
    text = base64.b64decode(value).decode()
    return f"{len(text)} characters, {len(base64.b64decode(text, validate=True))} bytes"


# --- comparing


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that is not the same on both sides."""

    manifest: str
    obj: str
    path: str
    theirs: Any
    ours: Any

    def __str__(self) -> str:
        sides = f"  theirs: {_short(self.theirs)}\n  ours:   {_short(self.ours)}"
        return f"{self.manifest}: {self.obj}: {self.path}\n{sides}"


def compare(manifest: str, theirs: Mapping[str, Json], ours: Mapping[str, Json]) -> Iterator[Difference]:
    """All differences between two sets of objects by their keys."""
    for key in sorted({*theirs, *ours}):
        if key not in ours:
            yield Difference(manifest, key, "", "<exists>", ABSENT)
        elif key not in theirs:
            yield Difference(manifest, key, "", ABSENT, "<exists>")
        else:
            for path, before, after in _values(theirs[key], ours[key], ""):
                yield Difference(manifest, key, path, before, after)


def _values(theirs: Any, ours: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted({*theirs, *ours}):
            here = f"{path}.{key}" if path else key
            yield from _values(theirs.get(key, ABSENT), ours.get(key, ABSENT), here)
    elif isinstance(theirs, list) and isinstance(ours, list):
        left, right = _by_name(theirs), _by_name(ours)
        shared = [key for key in left if key in right]
        if shared != [key for key in right if key in left]:
            yield f"{path} (order)", [*left], [*right]
        for key in [*left, *(key for key in right if key not in left)]:
            yield from _values(left.get(key, ABSENT), right.get(key, ABSENT), f"{path}[{key}]")
    elif theirs != ours or isinstance(theirs, bool) is not isinstance(ours, bool):
        yield path, theirs, ours


def _by_name(items: Sequence[Any]) -> dict[str, Any]:
    """The items by name, or by position where they have none; a second of a name is ``name#2``."""
    found: dict[str, Any] = {}
    for index, item in enumerate(items):
        name = str(item["name"]) if isinstance(item, dict) and "name" in item else str(index)
        seen = sum(key == name or key.startswith(f"{name}#") for key in found)
        found[f"{name}#{seen + 1}" if seen else name] = item
    return found


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 600 else f"{text[:600]}…"


# --- what is allowed


@dataclass(slots=True)
class Allowed:
    """One entry of the list. Without ``theirs`` and ``ours`` any values may stand there.

    With both, the reference's value must become ours when the one text is replaced by the other, so that
    nothing else can hide behind the entry. With ``ours`` alone it is our value that is fixed.
    """

    obj: str
    path: str
    section: str
    reason: str
    manifests: str = "*"
    theirs: Any = None
    ours: Any = None
    used: int = field(default=0, compare=False)

    def about(self, difference: Difference) -> bool:
        """Whether it speaks of this place."""
        return (
            fnmatchcase(difference.manifest, self.manifests)
            and fnmatchcase(difference.obj, self.obj)
            and _path_matches(difference.path, self.path)
            and (self.exact or self.ours in (None, difference.ours))
        )

    @property
    def exact(self) -> bool:
        """Whether it names values."""
        return self.theirs is not None


def _path_matches(path: str, pattern: str) -> bool:
    # Brackets are part of paths, so only the star means something.
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), path) is not None


def load(path: Path) -> list[Allowed]:
    """The list of allowed differences."""
    text = path.read_text(encoding="utf-8").replace("OPERATOR_VERSION", OPERATOR_VERSION)
    return [Allowed(**entry) for entry in yaml.safe_load(text)]


def unexplained(differences: Iterable[Difference], allowed: Sequence[Allowed]) -> list[Difference]:
    """The differences that no entry explains; entries that explain one are marked as used."""
    left = []
    for difference in differences:
        about = [entry for entry in allowed if entry.about(difference)]
        loose = [entry for entry in about if not entry.exact]
        exact = _explanation(difference, [entry for entry in about if entry.exact])
        if exact is None and not loose:
            left.append(difference)
        for entry in exact if exact is not None else loose[:1]:
            entry.used += 1
    return left


def _explanation(difference: Difference, entries: Sequence[Allowed]) -> list[Allowed] | None:
    """The entries that turn the reference's value into ours, all applied in turn; None if they do not."""
    value, used = difference.theirs, []
    for entry in entries:
        if value == entry.theirs:
            value = entry.ours
            used.append(entry)
        elif isinstance(value, str) and isinstance(entry.theirs, str) and entry.theirs in value:
            value = value.replace(entry.theirs, entry.ours)
            used.append(entry)
    return used if used and value == difference.ours else None
