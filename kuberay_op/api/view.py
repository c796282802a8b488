"""Typed views over plain dicts: the single source of our API.

An object of the API server is, and stays, a plain dict. A :class:`View` wraps one and reads it through typed
fields (their kinds are in :mod:`kuberay_op.api.fields`), so unknown fields survive every round trip: nothing
is ever rebuilt. The same declarations give the CRD schemas, the defaults, the reference pages and the help
of an editor::

    class ScaleStrategy(View):
        \"\"\"Which workers to remove.\"\"\"

        workers_to_delete = TextList("workersToDelete", "Names of the Pods to delete.")

    strategy = ScaleStrategy({"workersToDelete": ["a-worker-x"]})
    strategy.workers_to_delete        # ["a-worker-x"]
    ScaleStrategy.workers_to_delete   # the field itself: name, type, description

Reading never fails. An absent field reads as the empty value of its type (None for numbers), and so does a
value of the wrong type, which is for the schema layer to complain about. ``view.is_set("attr")`` tells
whether something is there. An absent nested view is falsy; one that is present but empty is truthy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar, overload

if TYPE_CHECKING:
    from kuberay_op.api.fields import Nested

T = TypeVar("T")
V = TypeVar("V", bound="View")

#: A JSON object.
Json = dict[str, Any]

#: "No default": None would be a legal JSON value.
UNSET: Final[Any] = type("Unset", (), {"__repr__": lambda _: "UNSET", "__bool__": lambda _: False})()


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule of the schema, and the same rule in Python.

    ``holds(value, old)`` must say what ``expression`` says. A transition rule (one that names ``oldSelf``) is
    asked only when the field has both an old and a new value.
    """

    expression: str
    message: str
    holds: Callable[[Any, Any], bool]

    @property
    def transition(self) -> bool:
        """Does the rule compare with the value before an update?"""
        return "oldSelf" in self.expression

    def schema(self) -> Json:
        """The entry in ``x-kubernetes-validations``."""
        return {"rule": self.expression, "message": self.message}


class Field(Generic[T]):
    """A field of a view: a descriptor that reads and writes one key of the wrapped dict.

    Assigning None to a number, or ``del view.attr`` on any field, removes the key.
    """

    #: How the reference pages and ``kuberay-op explain`` call the type.
    type_name: ClassVar[str] = ""

    def __init__(
        self,
        json: str,
        doc: str,
        *,
        required: bool = False,
        default: Any = UNSET,
        deprecated: str = "",
        rules: tuple[Rule, ...] = (),
    ) -> None:
        self.json = json
        self.doc = doc
        self.required = required
        self.default = default
        self.deprecated = deprecated
        self.rules = rules
        self.attr = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.attr = name

    @overload
    def __get__(self, view: None, owner: type) -> Self: ...
    @overload
    def __get__(self, view: View, owner: type) -> T: ...
    def __get__(self, view: View | None, owner: type) -> Self | T:
        if view is None:
            return self
        return self.read(view.raw.get(self.json))

    def __set__(self, view: View, value: T) -> None:
        view.raw[self.json] = self.write(value)

    def __delete__(self, view: View) -> None:
        view.raw.pop(self.json, None)

    def read(self, value: Any) -> T:
        """The value as Python code wants it; never fails."""
        raise AssertionError(f"{type(self).__name__} must say how it reads {value!r}")

    def write(self, value: T) -> Any:
        """The value as it stands in the dict."""
        return value

    def type_schema(self) -> Json:
        """The part of the schema that the type decides."""
        raise AssertionError(f"{type(self).__name__} must have a schema")

    def schema(self) -> Json:
        """The structural schema of this field, description and default included."""
        schema: Json = {}
        doc = f"{self.doc} Deprecated: {self.deprecated}" if self.deprecated else self.doc
        if doc:
            schema["description"] = doc
        if self.default is not UNSET:
            schema["default"] = self.default
        schema.update(self.type_schema())
        if self.rules:
            schema["x-kubernetes-validations"] = [rule.schema() for rule in self.rules]
        return schema

    def children(self) -> type[View] | None:
        """The view behind this field, if it has one of ours."""
        return None


class _Absent(dict[str, Any]):
    """The dict of a view that is not there: empty, and refuses to be written."""

    def __setitem__(self, key: str, value: Any) -> None:
        raise TypeError(f"cannot set {key!r}: the object around it is absent; call view.ensure(field) first")


#: Shared by all absent views.
ABSENT: Final = _Absent()


class _Slotted(type):
    """Gives every view empty ``__slots__``, so that a misspelt assignment fails instead of vanishing."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _Slotted:
        namespace.setdefault("__slots__", ())
        return super().__new__(mcs, name, bases, namespace)


class View(metaclass=_Slotted):
    """A typed window on a dict. Fields are declared on the class; see the module text."""

    __slots__ = ("raw",)

    #: CEL rules on the object as a whole.
    rules: ClassVar[tuple[Rule, ...]] = ()
    _fields: ClassVar[dict[str, Field[Any]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
        cls._fields = {**cls._fields, **own}

    def __init__(self, raw: Json | None = None) -> None:
        self.raw: Json = {} if raw is None else raw

    @classmethod
    def absent(cls) -> Self:
        """A view of nothing: falsy, every field unset."""
        return cls(ABSENT)

    @classmethod
    def fields(cls) -> Mapping[str, Field[Any]]:
        """All fields by Python name, inherited ones first, in the order of declaration."""
        return cls._fields

    def is_set(self, attr: str) -> bool:
        """Whether the field named ``attr`` (its Python name) is present and not null."""
        try:
            field = self._fields[attr]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no field {attr!r}") from None
        return self.raw.get(field.json) is not None

    def ensure(self, field: Nested[V]) -> V:
        """The nested view of ``field``, made as an empty object if it was absent."""
        if not isinstance(self.raw.get(field.json), dict):
            self.raw[field.json] = {}
        return field.read(self.raw[field.json])

    def __bool__(self) -> bool:
        return self.raw is not ABSENT

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View):
            return NotImplemented
        return type(self) is type(other) and bool(self) == bool(other) and self.raw == other.raw

    __hash__ = None  # type: ignore[assignment]  # a view changes with its dict

    def __repr__(self) -> str:
        # Names only: values may be secrets and a repr ends up in logs.
        return f"{type(self).__name__}({', '.join(map(str, self.raw)) if self else 'absent'})"

    @classmethod
    def schema(cls) -> Json:
        """The structural schema of the object, without a description of its own."""
        schema: Json = {"type": "object"}
        if cls._fields:
            schema["properties"] = {field.json: field.schema() for field in cls._fields.values()}
        required = sorted(field.json for field in cls._fields.values() if field.required)
        if required:
            schema["required"] = required
        if cls.rules:
            schema["x-kubernetes-validations"] = [rule.schema() for rule in cls.rules]
        return schema


def walk(view: type[View], prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Field[Any]]]:
    """Every field below ``view`` with its JSON path, depth first; Kubernetes types are not entered."""
    for field in view.fields().values():
        path = (*prefix, field.json)
        yield path, field
        below = field.children()
        if below is not None:
            yield from walk(below, path)
