"""A plugin's options: given by the administrator, checked against the manifest, completed with defaults."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Final

from kuberay_op.declarative.manifest import Option, PluginManifest, option_default
from kuberay_op.errors import Misconfigured
from kuberay_op.frozen import freeze

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "list": (list, tuple),
    "map": (dict,),
}


def checked_options(
    manifest: PluginManifest, given: Mapping[str, Any], *, complete: bool = True
) -> Mapping[str, Any]:
    """All options of the plugin, read-only; raises Misconfigured with every mistake at once.

    Without ``complete`` a required option may be missing, for tools that only look at a plugin.
    """
    mistakes = []
    for name in given:
        if name not in manifest.options:
            near = difflib.get_close_matches(name, manifest.options, n=1)
            mistakes.append(f"{name}: unknown option" + (f"; did you mean {near[0]!r}?" if near else ""))
    values: dict[str, Any] = {}
    for name, option in manifest.options.items():
        if given.get(name) is None:
            if option.required and complete:
                mistakes.append(f"{name}: is required")
            values[name] = option_default(option)
            continue
        mistake = option_mistake(option, given[name])
        if mistake:
            mistakes.append(f"{name}: {mistake}")
        values[name] = given[name]
    if mistakes:
        raise Misconfigured(
            "".join([f"options of plugin {manifest.name!r}:", *(f"\n  {m}" for m in mistakes)])
        )
    options: Mapping[str, Any] = freeze(values)
    return options


def option_mistake(option: Option, value: Any) -> str:
    """What is wrong with a value, "" if nothing. A secret value is not repeated."""
    given = "the value given" if option.secret else repr(value)
    # bool is an int to Python, but not to the person who wrote the option.
    if not isinstance(value, _TYPES[option.type]) or (isinstance(value, bool) and option.type != "bool"):
        return f"must be of type {option.type}, not {given}"
    if option.choices and value not in option.choices:
        return f"must be one of {', '.join(option.choices)}, not {given}"
    return ""
