"""The kinds of fields a view can have. Each knows how to read, how to write and its part of the schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from kuberay_op.api.view import UNSET, Field, Json, Rule, View

T = TypeVar("T")
V = TypeVar("V", bound=View)


class Text(Field[str]):
    """A string; "" when unset."""

    type_name = "string"

    def __init__(
        self,
        json: str,
        doc: str,
        *,
        choices: tuple[str, ...] = (),
        pattern: str = "",
        min_length: int | None = None,
        max_length: int | None = None,
        required: bool = False,
        default: Any = UNSET,
        deprecated: str = "",
        rules: tuple[Rule, ...] = (),
    ) -> None:
        super().__init__(json, doc, required=required, default=default, deprecated=deprecated, rules=rules)
        self.choices = choices
        self.pattern = pattern
        self.min_length = min_length
        self.max_length = max_length

    def read(self, value: Any) -> str:
        """The string, or ""."""
        return value if isinstance(value, str) else ""

    def type_schema(self) -> Json:
        """A string with its limits."""
        schema: Json = {"type": "string"}
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.max_length is not None:
            schema["maxLength"] = self.max_length
        if self.min_length is not None:
            schema["minLength"] = self.min_length
        if self.pattern:
            schema["pattern"] = self.pattern
        return schema


class Time(Field[str]):
    """A moment, as RFC 3339 text in UTC; "" when unset."""

    type_name = "time"

    def __init__(self, json: str, doc: str, *, required: bool = False, nullable: bool = False) -> None:
        super().__init__(json, doc, required=required)
        self.nullable = nullable

    def read(self, value: Any) -> str:
        """The text, or ""."""
        return value if isinstance(value, str) else ""

    def type_schema(self) -> Json:
        """A string in the date-time format."""
        schema: Json = {"type": "string", "format": "date-time"}
        if self.nullable:
            schema["nullable"] = True
        return schema


class Flag(Field[bool]):
    """True or false; False when unset."""

    type_name = "boolean"

    def read(self, value: Any) -> bool:
        """The flag, or False."""
        return value is True

    def type_schema(self) -> Json:
        """A boolean."""
        return {"type": "boolean"}


class Integer(Field[int | None]):
    """A whole number; None when unset."""

    type_name = "integer"

    def __init__(
        self,
        json: str,
        doc: str,
        *,
        bits: int = 32,
        minimum: int | None = None,
        required: bool = False,
        default: Any = UNSET,
        deprecated: str = "",
    ) -> None:
        super().__init__(json, doc, required=required, default=default, deprecated=deprecated)
        self.bits = bits
        self.minimum = minimum

    def __set__(self, view: View, value: int | None) -> None:
        _set_or_remove(view, self.json, value)

    def read(self, value: Any) -> int | None:
        """The number, or None."""
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def type_schema(self) -> Json:
        """An integer with its width and lower limit."""
        schema: Json = {"type": "integer", "format": f"int{self.bits}"}
        if self.minimum is not None:
            schema["minimum"] = self.minimum
        return schema


class Number(Field[float | None]):
    """A number that may have a fraction; None when unset."""

    type_name = "number"

    def __set__(self, view: View, value: float | None) -> None:
        _set_or_remove(view, self.json, value)

    def read(self, value: Any) -> float | None:
        """The number, or None."""
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def type_schema(self) -> Json:
        """A number."""
        return {"type": "number"}


#: What Kubernetes accepts as a quantity, as its own CRD tools write it.
QUANTITY_PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)


class Quantity(Field[str | int | None]):
    """A Kubernetes quantity such as ``500m`` or ``2Gi``; None when unset."""

    type_name = "quantity"

    def __set__(self, view: View, value: str | int | None) -> None:
        _set_or_remove(view, self.json, value)

    def read(self, value: Any) -> str | int | None:
        """The quantity as it was written, or None."""
        return value if isinstance(value, str | int) and not isinstance(value, bool) else None

    def type_schema(self) -> Json:
        """A number or a string that matches the pattern of quantities."""
        return quantity_schema()


class TextMap(Field[Mapping[str, str]]):
    """Strings by name; empty when unset."""

    type_name = "map of strings"

    def read(self, value: Any) -> Mapping[str, str]:
        """The map; entries that are not strings are left out."""
        if not isinstance(value, dict):
            return {}
        if all(isinstance(entry, str) for entry in value.values()):
            return value
        return {key: entry for key, entry in value.items() if isinstance(entry, str)}

    def type_schema(self) -> Json:
        """An object whose values are strings."""
        return {"type": "object", "additionalProperties": {"type": "string"}}


class TimeMap(TextMap):
    """Moments by name; empty when unset."""

    type_name = "map of times"

    def type_schema(self) -> Json:
        """An object whose values are times."""
        return {"type": "object", "additionalProperties": {"type": "string", "format": "date-time"}}


class TextList(Field[Sequence[str]]):
    """A list of strings; empty when unset."""

    type_name = "list of strings"

    def read(self, value: Any) -> Sequence[str]:
        """The list; entries that are not strings are left out."""
        if not isinstance(value, list | tuple):
            return ()
        return value if all(isinstance(x, str) for x in value) else [x for x in value if isinstance(x, str)]

    def type_schema(self) -> Json:
        """An array of strings."""
        return {"type": "array", "items": {"type": "string"}}


class _Holder(Field[T], Generic[T, V]):
    """What the fields that lead to other views share."""

    def __init__(
        self,
        json: str,
        doc: str,
        view: type[V],
        *,
        required: bool = False,
        deprecated: str = "",
        map_keys: tuple[str, ...] = (),
        atomic: bool = False,
        min_items: int | None = None,
    ) -> None:
        super().__init__(json, doc, required=required, deprecated=deprecated)
        self.view = view
        self.map_keys = map_keys
        self.atomic = atomic
        self.min_items = min_items

    def children(self) -> type[View] | None:
        """The view behind this field."""
        return self.view


class Nested(_Holder[V, V]):
    """Another view; absent (falsy) when unset."""

    type_name = "object"

    def read(self, value: Any) -> V:
        """The view, or an absent one."""
        return self.view(value) if isinstance(value, dict) else self.view.absent()

    def write(self, value: V) -> Any:
        """The dict of the view."""
        return value.raw

    def type_schema(self) -> Json:
        """The schema of the view."""
        return self.view.schema()


class NestedList(_Holder[Sequence[V], V]):
    """A list of views; empty when unset. An entry that is no object reads as an absent view."""

    type_name = "list of objects"

    def read(self, value: Any) -> Sequence[V]:
        """One view per entry, so that positions stay true."""
        if not isinstance(value, list | tuple):
            return ()
        return [self.view(x) if isinstance(x, dict) else self.view.absent() for x in value]

    def write(self, value: Sequence[V]) -> Any:
        """The dicts of the views."""
        return [view.raw for view in value]

    def type_schema(self) -> Json:
        """An array of the view's schema."""
        schema: Json = {"type": "array", "items": self.view.schema()}
        if self.min_items is not None:
            schema["minItems"] = self.min_items
        if self.map_keys:
            schema["x-kubernetes-list-map-keys"] = list(self.map_keys)
            schema["x-kubernetes-list-type"] = "map"
        elif self.atomic:
            schema["x-kubernetes-list-type"] = "atomic"
        return schema


class NestedMap(_Holder[Mapping[str, V], V]):
    """Views by name; empty when unset."""

    type_name = "map of objects"

    def read(self, value: Any) -> Mapping[str, V]:
        """One view per entry; entries that are no objects are left out."""
        if not isinstance(value, dict):
            return {}
        return {key: self.view(entry) for key, entry in value.items() if isinstance(entry, dict)}

    def write(self, value: Mapping[str, V]) -> Any:
        """The dicts of the views."""
        return {key: view.raw for key, view in value.items()}

    def type_schema(self) -> Json:
        """An object whose values are the view."""
        return {"type": "object", "additionalProperties": self.view.schema()}


class Kube(Field[Json]):
    """A plain dict of a type that Kubernetes defines, such as a Pod template; empty when unset."""

    def __init__(
        self, json: str, doc: str, definition: str, *, required: bool = False, deprecated: str = ""
    ) -> None:
        super().__init__(json, doc, required=required, deprecated=deprecated)
        self.definition = definition

    @property
    def type_name(self) -> str:  # type: ignore[override]  # here it depends on the definition
        """The last part of the definition's name, as Kubernetes documents it."""
        return self.definition.rpartition(".")[2]

    def read(self, value: Any) -> Json:
        """The dict itself, or an empty one."""
        return value if isinstance(value, dict) else {}

    def type_schema(self) -> Json:
        """The structural schema of the Kubernetes type."""
        return _kubernetes(self.definition)


class KubeList(Field[Sequence[Json]]):
    """A list of plain dicts of a type that Kubernetes defines; empty when unset."""

    def __init__(self, json: str, doc: str, definition: str) -> None:
        super().__init__(json, doc)
        self.definition = definition

    @property
    def type_name(self) -> str:  # type: ignore[override]  # here it depends on the definition
        """The type of an entry, as Kubernetes documents it."""
        return f"list of {self.definition.rpartition('.')[2]}"

    def read(self, value: Any) -> Sequence[Json]:
        """One dict per entry, so that positions stay true."""
        if not isinstance(value, list | tuple):
            return ()
        return [entry if isinstance(entry, dict) else {} for entry in value]

    def type_schema(self) -> Json:
        """An array of the Kubernetes type."""
        return {"type": "array", "items": _kubernetes(self.definition)}


def quantity_schema() -> Json:
    """The schema of a quantity: a number, or text of the right form."""
    return {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": QUANTITY_PATTERN,
        "x-kubernetes-int-or-string": True,
    }


def _set_or_remove(view: View, key: str, value: object) -> None:
    if value is None:
        view.raw.pop(key, None)
    else:
        view.raw[key] = value


def _kubernetes(definition: str) -> Json:
    # Late, because the data file is large and reading objects never needs it.
    from kuberay_op.api.kube_schema import definition_schema

    return definition_schema(definition)
