"""The shapes of what the configuration file may hold: settings, containers, variables, labels.

A wrong type is a problem, as it is in the reference; a key that means nothing is a warning with the nearest
one that does. Values inside containers and variables are never quoted, since they may be secrets.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kuberay_op.config.goyaml import Place
from kuberay_op.config.settings import Kind
from kuberay_op.hints import nearest

#: What a checker says: where, what is wrong, and whether that is only a warning.
Finding = tuple[Place, str, bool]
Check = Callable[[Any, Place], Iterator[Finding]]

_INT64: Final = range(-(2**63), 2**63)


def integral(value: Any) -> bool:
    """Say whether this is a whole number, as JSON sees it: ``300.0`` is one, ``true`` is none."""
    if isinstance(value, float):
        return value.is_integer() and int(value) in _INT64
    return isinstance(value, int) and not isinstance(value, bool) and value in _INT64


def numeric(value: Any) -> bool:
    """Say whether this is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is(allowed: str, test: Callable[[Any], bool], *, shown: bool = False) -> Check:
    """A value that passes ``test``; ``shown`` when a wrong one may be quoted."""

    def check(value: Any, place: Place) -> Iterator[Finding]:
        if value is not None and not test(value):
            scalar = not isinstance(value, dict | list)
            is_what = json.dumps(value) if shown and scalar else describe(value)
            hint = "; put it in quotes" if scalar and allowed == Kind.TEXT.value else ""
            yield place, f"is {is_what}; allowed is {allowed}{hint}", False

    return check


def _list(item: Check, allowed: str = "a list") -> Check:
    def check(value: Any, place: Place) -> Iterator[Finding]:
        if isinstance(value, list):
            for index, element in enumerate(value):
                yield from item(element, (*place, index))
        else:
            yield from _is(allowed, lambda _: False)(value, place)

    return check


def _object(allowed: str, known: Mapping[str, Check], *, named: str | None = None) -> Check:
    """An object with these keys; ``named`` says what comes of it when ``name`` is missing."""

    def check(value: Any, place: Place) -> Iterator[Finding]:
        if not isinstance(value, dict):
            yield place, f"is {describe(value)}; allowed is {allowed}", False
            return
        for key, element in value.items():
            if key in known:
                yield from known[key](element, (*place, key))
            else:
                near = nearest(key, known)
                hint = f"; did you mean {near}?" if near else ""
                yield (*place, key), f"is unknown and does nothing{hint}", True
        if named and not value.get("name"):
            yield place, f"has no name; {named}", True

    return check


def _map(value: Any, place: Place) -> Iterator[Finding]:
    if not isinstance(value, dict):
        yield from _is(Kind.LABELS.value, lambda _: False)(value, place)
        return
    for key, element in value.items():
        yield from STRING(element, (*place, key))


def _plugins(value: Any, place: Place) -> Iterator[Finding]:
    if not isinstance(value, dict):
        yield from _is(Kind.PLUGINS.value, lambda _: False)(value, place)
        return
    for name, plugin in value.items():
        yield from PLUGIN(plugin, (*place, name))


def describe(value: Any) -> str:
    """The type of a value, for people."""
    match value:
        case None:
            return "empty"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"


STRING: Final = _is(Kind.TEXT.value, lambda value: isinstance(value, str))
BOOLEAN: Final = _is(Kind.BOOL.value, lambda value: isinstance(value, bool))
INTEGER: Final = _is(Kind.INT.value, integral)
ANY_OBJECT: Final = _is("an object", lambda value: isinstance(value, dict))

PLUGIN: Final = _object("a plugin", {"enabled": BOOLEAN, "options": ANY_OBJECT})

VARIABLE: Final = _object(
    "an environment variable with name and value",
    {"name": STRING, "value": STRING, "valueFrom": ANY_OBJECT},
    named="Kubernetes will refuse every Ray Pod",
)

_PORT: Final = _object(
    "a port",
    {"name": STRING, "containerPort": INTEGER, "hostPort": INTEGER, "hostIP": STRING, "protocol": STRING},
)

_MOUNT: Final = _object(
    "a volume mount",
    {
        "name": STRING,
        "mountPath": STRING,
        "subPath": STRING,
        "subPathExpr": STRING,
        "readOnly": BOOLEAN,
        "recursiveReadOnly": STRING,
        "mountPropagation": STRING,
    },
)

CONTAINER: Final = _object(
    "a container",
    {
        **dict.fromkeys(("name", "image", "imagePullPolicy", "workingDir", "restartPolicy"), STRING),
        **dict.fromkeys(("terminationMessagePath", "terminationMessagePolicy"), STRING),
        **dict.fromkeys(("command", "args"), _list(STRING)),
        **dict.fromkeys(("stdin", "stdinOnce", "tty"), BOOLEAN),
        **dict.fromkeys(("resources", "securityContext", "lifecycle"), ANY_OBJECT),
        **dict.fromkeys(("livenessProbe", "readinessProbe", "startupProbe"), ANY_OBJECT),
        **dict.fromkeys(
            ("envFrom", "volumeDevices", "resizePolicy", "restartPolicyRules"), _list(ANY_OBJECT)
        ),
        "env": _list(VARIABLE),
        "ports": _list(_PORT),
        "volumeMounts": _list(_MOUNT),
    },
    named="Kubernetes will refuse every Pod it is added to",
)

#: How a value of each type is checked.
CHECKS: Final[Mapping[Kind, Check]] = {
    Kind.TEXT: _is(Kind.TEXT.value, lambda value: isinstance(value, str), shown=True),
    Kind.BOOL: _is(Kind.BOOL.value, lambda value: isinstance(value, bool), shown=True),
    Kind.INT: _is(Kind.INT.value, integral, shown=True),
    Kind.FLOAT: _is(Kind.FLOAT.value, numeric, shown=True),
    Kind.CONTAINERS: _list(CONTAINER, Kind.CONTAINERS.value),
    Kind.VARIABLES: _list(VARIABLE, Kind.VARIABLES.value),
    Kind.LABELS: _map,
    Kind.PLUGINS: _plugins,
}
