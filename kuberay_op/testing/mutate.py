"""Mutated manifests: valid objects with a few random mistakes, the same ones for the same seed.

::

    for obj in mutants(seeds(), count=1000, seed=1):
        examine(obj)

Half of the changes are blind (wrong types, missing, misspelt, doubled, moved); the other half know the schema
and add fields that exist, with values near the border of what is allowed. Both are needed: blind changes
rarely get past the first check, informed ones never misspell.
"""

from __future__ import annotations

import copy
import random
import string
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from kuberay_op.api.crds import schema_of, view_of
from kuberay_op.api.meta import Metadata
from kuberay_op.api.view import Json
from kuberay_op.testing import make

#: Values that have broken something somewhere.
INTERESTING: Final[tuple[Any, ...]] = (
    None, True, False, 0, 1, -1, 2, 3.0, 3.5, -0.0, 1e3, 2**31 - 1, 2**31, -(2**31) - 1, 2**53, 2**63, 10**30,
    "", " ", "a", "A", "-", "true", "null", "0", "1", "-1", "1e3", "1e1.5", "500m", "1Gi", "1.5Ki", "+1",
    ".5", "v1", "v2", "None", "2.52.0", "nightly", "@every 1s", "* * * * *", "TZ=UTC", "Europe/Berlin",
    "Local", "../x", "a" * 64, "é", "\u0000", "\n", "\u2028", "${x}", "{{ x }}", "a: [", "- a", "24h",
    "2026-01-31T12:00:00Z", [], [None], [1], ["a"], [[]], [{}], {}, {"": ""}, {"a": None}, {"a": "b"},
    {"name": "a"},
)  # fmt: skip

_LEAVE: Final = frozenset({"apiVersion", "kind", "namespace"})

Path = tuple[str | int, ...]


def seeds() -> list[Json]:
    """Valid objects of all kinds that together use much of the API."""
    full = (make.workers(2, "a"), make.workers(1, "b", numOfHosts=2), make.autoscaling("v2"))
    rule = {"policy": "DeleteCluster", "condition": {"jobStatus": "FAILED", "ttlSeconds": 5}}
    upgrade = {
        "type": "NewClusterWithIncrementalUpgrade",
        "clusterUpgradeOptions": {"stepSizePercent": 5, "intervalSeconds": 5, "gatewayClassName": "a"},
    }
    policy = {"head": {"ingressRules": [{}]}, "workerGroups": [{"groupName": "a"}]}
    collector = {"image": "a", "env": [{"name": "STORAGE_BACKEND", "value": "S3"}]}
    return [
        make.raycluster("a"),
        make.raycluster("a", *full, make.redis()),
        make.raycluster("a", *full, make.cluster(networkPolicy=policy, tlsOptions={"enabled": True})),
        make.raycluster("a", make.cluster(historyServerOptions={"collectorOptions": collector})),
        make.raycluster(
            "a", make.cluster(authOptions={"mode": "token"}, upgradeStrategy={"type": "Recreate"})
        ),
        make.rayjob("a", *full),
        make.rayjob(
            "a", make.spec(deletionStrategy={"deletionRules": [rule]}, shutdownAfterJobFinishes=False)
        ),
        make.rayjob("a", make.spec(clusterSelector={"ray.io/cluster": "b"}, runtimeEnvYAML="a: b")),
        make.rayservice("a", *full, make.spec(upgradeStrategy=upgrade)),
        make.raycronjob("a", *full, make.spec(timeZone="Europe/Berlin")),
        {**make.raycluster("a", make.workers(1)), "apiVersion": "ray.io/v1alpha1"},
    ]


def mutants(given: Sequence[Json], *, count: int, seed: int, most: int = 4) -> Iterator[Json]:
    """So many changed copies of the given objects, with one to ``most`` changes each."""
    rng = random.Random(seed)  # noqa: S311 - a test kit, not a secret
    for _ in range(count):
        obj = copy.deepcopy(rng.choice(given))
        for _ in range(rng.randint(1, most)):
            mutate(obj, rng)
        yield obj


def mutate(obj: Json, rng: random.Random) -> None:
    """One random change. The kind, the version and the namespace stay, so that a server can be asked."""
    places = list(_places(obj, ()))
    path, value = rng.choice(places)
    change = rng.choice(_BLIND) if rng.random() < 0.5 else _add_field
    change(obj, path, value, rng)


def mutated_text(text: bytes, rng: random.Random) -> bytes:
    """The text of a manifest with some bytes changed, doubled, cut or made up."""
    data = bytearray(text)
    for _ in range(rng.randint(1, 8)):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice((0, 1, 1, 2, 8, 64)))
        part = bytes(data[start:end])
        data[start:end] = rng.choice(
            (
                b"",
                part * 2,
                part[::-1],
                rng.randbytes(len(part)),
                rng.choice(_TEXTS),
                part + rng.choice(_TEXTS),
            )
        )
    return bytes(data)


_TEXTS: Final = (
    b"\n", b"\n---\n", b"\t", b": ", b"- ", b"[", b"{", b"]", b"}", b"&a ", b"*a", b"<<: *a\n", b"!!int ",
    b"|\n", b'"', b"'", b"#", b"%YAML 1.1\n", b"\x00", b"\xff", b"\xc3\xa9", b"? ", b"null", b"1e999",
    b"...\n", b"@",
)  # fmt: skip


# --- where


def _places(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Every object and list in the object."""
    if isinstance(value, dict):
        yield path, value
        for key, entry in value.items():
            if isinstance(entry, dict | list):
                yield from _places(entry, (*path, key))
    elif isinstance(value, list):
        yield path, value
        for index, entry in enumerate(value):
            if isinstance(entry, dict | list):
                yield from _places(entry, (*path, index))


def _key(value: Any, rng: random.Random) -> Any:
    """A key or index of an object or list; None when there is none to touch."""
    if isinstance(value, dict):
        keys = [key for key in value if key not in _LEAVE]
        return rng.choice(keys) if keys else None
    return rng.randrange(len(value)) if value else None


# --- blind changes


def _any(rng: random.Random) -> Any:
    return copy.deepcopy(rng.choice(INTERESTING))


def _remove(_: Json, _path: Path, value: Any, rng: random.Random) -> None:
    key = _key(value, rng)
    if key is not None:
        del value[key]


def _replace(_: Json, _path: Path, value: Any, rng: random.Random) -> None:
    key = _key(value, rng)
    if key is not None:
        value[key] = _any(rng)


def _misspell(_: Json, _path: Path, value: Any, rng: random.Random) -> None:
    key = _key(value, rng)
    if isinstance(key, str):
        place = rng.randrange(len(key) + 1)
        value[key[:place] + rng.choice(string.ascii_letters + "-_/.") + key[place + 1 :]] = value.pop(key)


def _double(_: Json, _path: Path, value: Any, rng: random.Random) -> None:
    if isinstance(value, list) and value:
        value.insert(rng.randrange(len(value) + 1), copy.deepcopy(rng.choice(value)))


def _other_type(_: Json, _path: Path, value: Any, rng: random.Random) -> None:
    key = _key(value, rng)
    if key is not None:
        entry = value[key]
        value[key] = rng.choice(
            (str(entry)[:200], [entry], {"a": entry}, len(str(entry)), not entry, float(bool(entry)))
        )


def _move(obj: Json, _path: Path, value: Any, rng: random.Random) -> None:
    """Put a copy of one part where another was."""
    key = _key(value, rng)
    if key is not None:
        _, part = rng.choice(list(_places(obj, ())))
        if len(str(part)) < 20_000:  # or copies of copies fill the memory
            value[key] = copy.deepcopy(part)


Change = Callable[[Json, Path, Any, random.Random], None]
_BLIND: Final[tuple[Change, ...]] = (_remove, _replace, _replace, _misspell, _double, _other_type, _move)


# --- changes that know the schema


def _add_field(obj: Json, path: Path, value: Any, rng: random.Random) -> None:
    schema = _schema_at(obj, path)
    if isinstance(value, list):
        value.append(_value(schema.get("items", {}), rng, 3))
        return
    properties = schema.get("properties", {})
    names = [name for name in properties if name not in _LEAVE]
    if names:
        name = rng.choice(names)
        value[name] = _value(properties[name], rng, 3)
    elif "additionalProperties" in schema:
        value[rng.choice(("a", "b-c", "ray.io/x", "-", "x" * 64))] = _value(
            schema["additionalProperties"], rng, 3
        )


def _schema_at(obj: Json, path: Path) -> Json:
    view = view_of(str(obj.get("apiVersion")), str(obj.get("kind")))
    if view is None:
        return {}
    schema = schema_of(view)
    for index, step in enumerate(path):
        if index == 0 and step == "metadata":
            schema = Metadata.schema()
        elif isinstance(step, int):
            schema = schema.get("items", {})
        else:
            schema = schema.get("properties", {}).get(step, schema.get("additionalProperties", {}))
    return schema


def _value(schema: Json, rng: random.Random, depth: int) -> Any:
    """A value for the schema: mostly right, sometimes just outside."""
    if rng.random() < 0.05 or depth == 0 or not schema:
        return _any(rng)
    if "enum" in schema and rng.random() < 0.9:
        return rng.choice(schema["enum"])
    kind: str = "quantity" if schema.get("x-kubernetes-int-or-string") else schema.get("type", "")
    if kind == "object":
        return _object(schema, rng, depth)
    if kind == "array":
        return [_value(schema.get("items", {}), rng, depth - 1) for _ in range(rng.randrange(3))]
    form: str = schema.get("format", kind)
    return rng.choice(_SCALARS.get(form, _SCALARS.get(kind, INTERESTING)))


def _object(schema: Json, rng: random.Random, depth: int) -> Json:
    properties = schema.get("properties", {})
    names = {*schema.get("required", ()), *rng.sample(sorted(properties), min(2, len(properties)))}
    made = {name: _value(properties[name], rng, depth - 1) for name in sorted(names) if name in properties}
    if "additionalProperties" in schema:
        made[rng.choice("abc")] = _value(schema["additionalProperties"], rng, depth - 1)
    return made


_SCALARS: Final[dict[str, tuple[Any, ...]]] = {
    "string": ("a", "", "a-b", "A_b", "true", "x" * 300, "a: b", "é", "1", "ray.io/kuberay-operator"),
    "date-time": ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00+01:00", "2026-02-30T00:00:00Z", "now"),
    "integer": (0, 1, -1, 5, 100, 2**31 - 1, -(2**31), 2**31, 3.0, 2**63),
    "quantity": (1, "1", "500m", "2Gi", "1e3", "1e1.5", "", "x", 1.5, -1, "0.1", 10**20),
    "number": (0, 1, 0.5, -1.5, 1e10),
    "boolean": (True, False),
}
