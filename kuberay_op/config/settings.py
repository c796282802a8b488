"""How a setting is declared: its type, its sources and its text, beside the field it fills."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, fields
from typing import Any


class Kind(enum.Enum):
    """The type of a setting; the value is how messages name it."""

    TEXT = "a string"
    BOOL = "true or false"
    INT = "a whole number"
    FLOAT = "a number"
    CONTAINERS = "a list of containers"
    VARIABLES = "a list of environment variables"
    LABELS = "a map of strings"
    PLUGINS = "a map of plugins, each with enabled and options"


class Reading(enum.Enum):
    """How an environment variable is read; these differ, and deployments depend on how."""

    EXACTLY_TRUE = "`true` turns it on; anything else is off"
    TRUE = "`true` in any case turns it on"
    FALSE = "`false` in any case turns it off"
    TEXT = "any text that is not empty"
    SECONDS = "a whole number; anything else is ignored"
    POSITIVE_SECONDS = "a whole number above 0; anything else is ignored"


@dataclass(frozen=True, slots=True)
class Setting:
    """One declaration. ``name`` is the field of ``Config``."""

    name: str
    kind: Kind
    default: Any
    doc: str
    #: Name of the command-line flag, without dashes.
    flag: str | None = None
    #: Key in the configuration file.
    key: str | None = None
    #: Environment variable, and how it is read.
    env: str | None = None
    reading: Reading | None = None
    #: Whether an explicit flag counts although there is a configuration file with this key.
    flag_over_file: bool = False
    #: What to say when it is set although it does nothing or will go.
    deprecated: str | None = None


def setting(
    default: Any,
    kind: Kind,
    doc: str,
    *,
    flag: str | None = None,
    key: str | None = None,
    env: tuple[str, Reading] | None = None,
    flag_over_file: bool = False,
    deprecated: str | None = None,
) -> Any:
    """Declare a field of ``Config``; ``Any`` so that each field can have its own type."""
    variable, reading = env or (None, None)
    metadata = {
        "default": default,
        "kind": kind,
        "doc": doc,
        "flag": flag,
        "key": key,
        "env": variable,
        "reading": reading,
        "flag_over_file": flag_over_file,
        "deprecated": deprecated,
    }
    return field(default_factory=lambda: default, metadata=metadata)


def declared(config: type[Any]) -> tuple[Setting, ...]:
    """The declarations of a dataclass whose fields were made with ``setting``."""
    return tuple(Setting(name=item.name, **item.metadata) for item in fields(config))
