"""The schema layer: what the API server would say about the structure of an object, without a server.

``schema_problems(obj)`` gives every mistake at once: wrong types, unknown and missing fields, values outside
their limits, doubled keys in lists, broken CEL rules. It follows the server in the details: a null reads as
"not set" (and then gets the default) except inside lists; a whole number may be written ``3.0``; the contents
of ``status`` are not checked, because a create drops them, but unknown fields in it are.

The schema of a kind is compiled once, field by field as objects need them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final

from kuberay_op.api.crds import VERSIONS, schema_of, view_of
from kuberay_op.api.fields import QUANTITY_PATTERN
from kuberay_op.api.formats import is_date_time
from kuberay_op.api.meta import GROUP, CustomResource, Metadata
from kuberay_op.api.metadata import metadata_problems
from kuberay_op.api.problems import Path, Problem, one_of, show
from kuberay_op.api.view import UNSET, Json, Rule, View, walk
from kuberay_op.hints import nearest

INT32: Final = 2**31
INT64: Final = 2**63
#: How many misspelt fields get a hint; looking for the nearest name takes its time.
HINTS: Final = 100
#: Beyond this a float is no exact whole number.
SAFE_FLOAT: Final = 2**53 - 1


class Found:
    """Collects problems; keeps apart those that the server finds before it looks at values."""

    __slots__ = ("problems", "unknown")

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.unknown: list[Problem] = []

    def add(self, path: Path, message: str, value: object = None) -> None:
        """A field with a wrong value."""
        self.problems.append(Problem(path, message, value))

    def add_unknown(self, path: Path, message: str) -> None:
        """A field that the schema does not have."""
        problem = Problem(path, message)
        self.problems.append(problem)
        self.unknown.append(problem)

    def wrong_type(self, path: Path, wanted: str, value: object, *, secret: bool = False) -> None:
        """A value of the wrong type; not repeated where it could be a secret in the wrong place."""
        shown = isinstance(value, str | int | float | bool) and not secret
        given = f"the {_type_of(value)} {show(value)}" if shown else f"a {_type_of(value)}"
        given = "null" if value is None else given
        problem = Problem(path, f"must be {wanted}, not {given}", value if shown else None)
        self.problems.append(problem)
        if _has_fields(value):
            self.unknown.append(problem)


#: Checks a value at a path; the last argument is the value before an update, or UNSET.
Check = Callable[[Any, Path, Found, Any], None]


def schema_problems(obj: Json, *, old: Json | None = None) -> list[Problem]:
    """All that the API server's schema layer has against ``obj``; empty if nothing.

    With ``old`` the rules about changes are checked as well: fields that may not change once set.
    """
    found = Found()
    view = _view_of(obj, found)
    if view is None:
        return found.problems
    check = _compiled(view)
    body = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
    before = UNSET if old is None else old
    check(body, (), found, before)
    _check_metadata(obj.get("metadata"), found)
    if obj.get("status") is not None:
        status = Found()
        check({"status": obj["status"]}, (), status, UNSET)
        found.problems.extend(status.unknown)
    return found.problems


def view_problems(view: type[View], value: Any) -> list[Problem]:
    """Mistakes in the structure of any dict that a view describes, such as the manifest of a plugin."""
    found = Found()
    _compiled_view(view)(value, (), found, UNSET)
    return found.problems


@cache
def _compiled_view(view: type[View]) -> Check:
    return _compile(view.schema(), {})


def _check_metadata(metadata: Any, found: Found) -> None:
    if isinstance(metadata, dict):
        # Bookkeeping of the server, never written by hand.
        metadata = {key: value for key, value in metadata.items() if key != "managedFields"}
        for key in ("creationTimestamp", "deletionTimestamp"):
            # Unlike in the rest of the object, the server does not let lists pass for times here.
            if isinstance(metadata.get(key), list | tuple):
                found.wrong_type(("metadata", key), "a string", metadata.pop(key))
    if metadata is not None:
        _compiled_view(Metadata)(metadata, ("metadata",), found, UNSET)
    found.problems.extend(metadata_problems(Metadata(metadata if isinstance(metadata, dict) else {})))


def _view_of(obj: Json, found: Found) -> type[CustomResource] | None:
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    known = sorted({view.VERSION for views in VERSIONS.values() for view in views})
    if not isinstance(kind, str) or kind not in VERSIONS:
        found.add(("kind",), f"must be {one_of(VERSIONS)}{_not(kind)}", kind)
        return None
    view = view_of(api_version, kind) if isinstance(api_version, str) else None
    if view is None:
        served = [f"{GROUP}/{version}" for version in known if view_of(f"{GROUP}/{version}", kind)]
        found.add(("apiVersion",), f"must be {one_of(served)} for {kind}{_not(api_version)}", api_version)
    return view


@cache
def _compiled(view: type[CustomResource]) -> Check:
    fields = [field for _, field in walk(view)]
    views = [view, *(field.children() for field in fields)]
    rules = [rule for source in (*fields, *views) if source is not None for rule in source.rules]
    return _compile(schema_of(view), {rule.expression: rule for rule in rules})


def _compile(schema: Json, rules: dict[str, Rule]) -> Check:
    """The check of one schema; the fields below it are compiled when an object first has them."""
    if schema.get("x-kubernetes-int-or-string"):
        check = _int_or_string(schema)
    elif "type" not in schema:
        return lambda value, path, found, old: None  # anything goes
    else:
        check = _BY_TYPE[schema["type"]](schema, rules)
    here = [rules[entry["rule"]] for entry in schema.get("x-kubernetes-validations", ())]
    if not here:
        return check
    kind = dict if schema["type"] == "object" else str

    def with_rules(value: Any, path: Path, found: Found, old: Any) -> None:
        check(value, path, found, old)
        if not isinstance(value, kind):
            return
        for rule in here:
            if rule.transition and (old is UNSET or old is None):
                continue
            if not rule.holds(value, old):
                found.add(path, rule.message, value if kind is str else None)

    return with_rules


def _object(schema: Json, rules: dict[str, Rule]) -> Check:
    properties: Json = schema.get("properties", {})
    entries: Json | None = schema.get("additionalProperties")
    required = [name for name in schema.get("required", ()) if "default" not in properties.get(name, {})]
    compiled: dict[str, Check] = {}
    entry_check = _compile(entries, rules) if entries else None

    def check(value: Any, path: Path, found: Found, old: Any) -> None:
        if not isinstance(value, dict):
            found.wrong_type(path, "a mapping", value, secret=True)
            return
        before = old if isinstance(old, dict) else {}
        for key, entry in value.items():
            if key in properties:
                if entry is None:
                    continue  # dropped by the server, or allowed where null is
                inner = compiled.get(key)
                if inner is None:
                    inner = compiled[key] = _compile(properties[key], rules)
                inner(entry, (*path, key), found, before.get(key, UNSET))
            elif entry_check is not None:
                if entry is not None:
                    entry_check(entry, (*path, str(key)), found, before.get(key, UNSET))
            else:
                hint = _nearest(str(key), properties) if len(found.unknown) < HINTS else ""
                found.add_unknown((*path, str(key)), f"unknown field{hint}")
        for name in required:
            if value.get(name) is None:
                found.add((*path, name), "is required")

    return check


def _array(schema: Json, rules: dict[str, Rule]) -> Check:
    items: Json = schema["items"]
    fewest: int = schema.get("minItems", 0)
    keys: list[str] = schema.get("x-kubernetes-list-map-keys", [])
    defaults = {key: items["properties"][key].get("default") for key in keys}
    item_check: list[Check] = []

    def check(value: Any, path: Path, found: Found, old: Any) -> None:
        if not isinstance(value, list | tuple):
            found.wrong_type(path, "a list", value, secret=True)
            return
        if not item_check:
            item_check.append(_compile(items, rules))
        inner = item_check[0]
        for index, entry in enumerate(value):
            # Entries have no identity across an update, so rules about changes do not reach into lists.
            inner(entry, (*path, index), found, UNSET)
        if len(value) < fewest:
            found.add(
                path, f"must have at least {fewest} {'entry' if fewest == 1 else 'entries'}", len(value)
            )
        if keys and len(value) > 1:
            _check_unique(value, path, found, defaults)

    return check


def _check_unique(value: Sequence[Any], path: Path, found: Found, defaults: Json) -> None:
    """Entries of a list map must differ in their keys, after defaults."""
    seen: set[str] = set()
    for index, entry in enumerate(value):
        if not isinstance(entry, dict):
            continue  # a wrong type, which has been noted
        parts = {
            name: default if entry.get(name) is None else entry[name] for name, default in defaults.items()
        }
        key = json.dumps([_whole(part) or part for part in parts.values()], sort_keys=True, default=repr)
        if key in seen:
            shown = ", ".join(f"{name} {show(part)}" for name, part in parts.items() if part is not None)
            found.add((*path, index), f"is there twice: {shown or 'an entry without ' + ', '.join(parts)}")
        seen.add(key)


def _string(schema: Json, _: dict[str, Rule]) -> Check:
    choices: list[str] = schema.get("enum", [])
    shortest: int = schema.get("minLength", 0)
    longest: float = schema.get("maxLength", math.inf)
    matches = _matcher(schema.get("pattern"))
    moment = schema.get("format") == "date-time"
    plain = not (choices or shortest or longest < math.inf or matches or moment)

    def check(value: Any, path: Path, found: Found, old: Any) -> None:
        if not isinstance(value, str):
            # The server lets lists pass for times, as long as it finds no fields in them.
            if not (moment and isinstance(value, list | tuple)) or _has_fields(value):
                found.wrong_type(path, "a string", value, secret=not choices)
        elif plain:
            pass
        elif choices and value not in choices:
            found.add(path, f"must be {one_of(choices)}, not {show(value)}{_nearest(value, choices)}", value)
        elif len(value) > longest:
            found.add(path, f"must have at most {longest} characters, not {len(value)}")
        elif len(value) < shortest:
            found.add(path, f"must have at least {shortest} character{'s' if shortest > 1 else ''}", value)
        elif matches and not matches(value):
            found.add(path, f"must match {schema['pattern']}, not {show(value)}", value)
        elif moment and not is_date_time(value):
            found.add(path, f"must be a time such as 2026-01-31T12:00:00Z, not {show(value)}", value)

    return check


def _int_or_string(schema: Json) -> Check:
    pattern: str | None = schema.get("pattern")
    matches = _matcher(pattern)
    quantity = pattern == QUANTITY_PATTERN
    wanted = "a quantity such as 500m or 2Gi" if quantity else "a whole number or a string"

    def check(value: Any, path: Path, found: Found, old: Any) -> None:
        if isinstance(value, str):
            if matches and not matches(value):
                found.add(path, f"must be {wanted}, not {show(value)}", value)
        elif _whole(value) is None:
            hint = "; put it in quotes" if quantity and isinstance(value, float) else ""
            found.wrong_type(path, f"{wanted}{hint}", value)

    return check


def _integer(schema: Json, _: dict[str, Rule]) -> Check:
    limit = INT32 if schema.get("format") == "int32" else INT64
    lowest: int = max(schema.get("minimum", -limit), -limit)

    def check(value: Any, path: Path, found: Found, old: Any) -> None:
        number = _whole(value)
        if number is None:
            found.wrong_type(path, "a whole number", value)
        elif number < lowest:
            found.add(path, f"must be at least {lowest}, not {number}", value)
        elif number >= limit:
            found.add(path, f"must be at most {limit - 1}, not {number}", value)

    return check


def _number(schema: Json, _: dict[str, Rule]) -> Check:
    def check(value: Any, path: Path, found: Found, old: Any) -> None:
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            found.wrong_type(path, "a number", value)

    return check


def _boolean(schema: Json, _: dict[str, Rule]) -> Check:
    def check(value: Any, path: Path, found: Found, old: Any) -> None:
        if not isinstance(value, bool):
            found.wrong_type(path, "true or false", value)

    return check


_BY_TYPE: Final[dict[str, Callable[[Json, dict[str, Rule]], Check]]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
}


def _whole(value: Any) -> int | None:
    """The whole number that the server would read: 3 and 3.0, but not true, "3" or 3.5."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if -INT64 <= value < INT64 else None
    if isinstance(value, float) and value.is_integer() and abs(value) <= SAFE_FLOAT:
        return int(value)
    return None


@cache
def _matcher(pattern: str | None) -> Callable[[str], Any] | None:
    """A pattern as the server reads it: ``$`` is the very end, not the place before a last newline."""
    if pattern is None:
        return None
    return re.compile(re.sub(r"\$$", r"\\Z", pattern)).search


def _has_fields(value: object) -> bool:
    """Whether there are fields in a value that should have none: the server calls them unknown."""
    if isinstance(value, list | tuple):
        return any(_has_fields(entry) for entry in value)
    return isinstance(value, dict) and bool(value)


def _type_of(value: object) -> str:
    names = (
        (bool, "flag"),
        (int | float, "number"),
        (str, "string"),
        (list | tuple, "list"),
        (dict, "mapping"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), type(value).__name__)


def _not(value: object) -> str:
    return f", not {show(value)}" if isinstance(value, str) else ""


def _nearest(name: str, known: Iterable[str]) -> str:
    near = nearest(name, known)
    return f"; did you mean {near!r}?" if near else ""
