"""Settings from the configuration file, ``config.ray.io/v1alpha1`` ``Configuration``.

A file written for the reference is accepted as it is. What the reference silently ignores (unknown keys, a
key given twice, further documents) is a warning here; what it refuses (wrong types, another kind) is a
problem, and all problems are found at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from kuberay_op.config.goyaml import Document, Place, Unreadable, load
from kuberay_op.config.model import SETTINGS
from kuberay_op.config.settings import Kind, Setting
from kuberay_op.config.shapes import CHECKS
from kuberay_op.hints import nearest

API_VERSION: Final = "config.ray.io/v1alpha1"
KIND: Final = "Configuration"

_BY_KEY: Final = {setting.key: setting for setting in SETTINGS if setting.key is not None}
_KEYS: Final = (*_BY_KEY, "apiVersion", "kind")


@dataclass(slots=True)
class FileSettings:
    """What a file says: values and their place (``config.yaml:3``), by name of the setting."""

    values: dict[str, Any] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read(text: str, path: str) -> FileSettings:
    """Read the text of the file ``path``."""
    result = FileSettings()
    try:
        document = load(text)
    except Unreadable as error:
        where = f"{path}:{error.line}" if error.line else path
        result.problems.append(f"{where}: not readable as YAML: {error}")
        return result
    if document.value is None:
        result.warnings.append(f"{path}: the file is empty; every setting has its default")
        return result
    if not isinstance(document.value, dict):
        result.problems.append(
            f"{path}: the file must hold an object of kind {KIND}, with keys like `burst: 200`"
        )
        return result
    _check_header(document, path, result)
    for place in document.repeated:
        result.warnings.append(
            f"{_where(document, path, place)}: {_name(place)} is given twice; the last counts"
        )
    if document.more:
        result.warnings.append(f"{path}: only the first document of the file is read")
    for key, value in document.value.items():
        _read_key(document, path, key, value, result)
    return result


def _check_header(document: Document, path: str, result: FileSettings) -> None:
    for key, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        value = document.value.get(key)
        if value is None or value == "":
            result.warnings.append(f"{path}: {key} is missing; write `{key}: {expected}`")
        elif value != expected:
            where = _where(document, path, (key,))
            result.problems.append(f"{where}: {key} is {value!r}; allowed is {expected}")


def _read_key(document: Document, path: str, key: str, value: Any, result: FileSettings) -> None:
    if key in ("apiVersion", "kind"):
        return
    where = _where(document, path, (key,))
    setting = _BY_KEY.get(key)
    if setting is None:
        near = nearest(key, _KEYS)
        hint = f"; did you mean {near}?" if near else ""
        result.warnings.append(f"{where}: {key} is unknown and does nothing{hint}")
        return
    wrong = False
    for place, says, mild in CHECKS[setting.kind](value, (key,)):
        (result.warnings if mild else result.problems).append(
            f"{_where(document, path, place)}: {_name(place)} {says}"
        )
        wrong = wrong or not mild
    if not wrong and value is not None and value != "":
        result.values[setting.name] = _converted(setting, value)
        result.places[setting.name] = where


def _converted(setting: Setting, value: Any) -> Any:
    """The value as ``Config`` holds it."""
    match setting.kind:
        case Kind.INT:
            return int(value)
        case Kind.FLOAT:
            return float(value)
        case Kind.CONTAINERS | Kind.VARIABLES:
            return tuple(value)
        case Kind.LABELS:
            labels: Mapping[str, str] = {name: text or "" for name, text in value.items()}
            return MappingProxyType(labels)
        case Kind.PLUGINS:
            return MappingProxyType({name: plugin or {} for name, plugin in value.items()})
        case _:
            return value


def _where(document: Document, path: str, place: Place) -> str:
    line = document.lines.get(place)
    return f"{path}:{line}" if line else path


def _name(place: Place) -> str:
    """``headSidecarContainers[0].env`` and the like."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
