"""Templates: YAML in which a text may hold ``${expression}``.

A text that is nothing but one expression becomes its value, whatever its type; otherwise the values are put
into the text. Keys may hold expressions too. A key or list item whose value is null is left out, so that
``nodeSelector: ${options.nodeSelector}`` does the right thing when the option is not set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from kuberay_op.declarative.expr import BadExpression, Expression, Failed, Variables

#: Most values that one template may make, so that a loop over a large object stays small.
MOST_VALUES: Final = 10_000

_MARK: Final = re.compile(r"\$(?:\$|\{((?:[^{}\"']|\"[^\"]*\"|'[^']*')*)\})")

Render = Callable[[Variables], Any]


class Template:
    """A compiled template: call it with variables to get plain dicts, lists and scalars."""

    __slots__ = ("_render", "expressions")

    def __init__(self, source: Any) -> None:
        #: The expressions in it.
        self.expressions: list[Expression] = []
        self._render = _compile(source, self.expressions)

    @property
    def names(self) -> frozenset[str]:
        """The variables it reads."""
        return frozenset().union(*(expression.names for expression in self.expressions))

    def __call__(self, variables: Variables) -> Any:
        """The result; raises :class:`~kuberay_op.declarative.expr.Failed`."""
        result = self._render(variables)
        if sum(1 for _ in _walk(result)) > MOST_VALUES:
            raise Failed(f"a template may make {MOST_VALUES} values; this made more")
        return result


def _compile(source: Any, found: list[Expression]) -> Render:
    if isinstance(source, str):
        return _compile_text(source, found)
    if isinstance(source, Mapping):
        pairs = [(_compile_text(str(key), found), _compile(value, found)) for key, value in source.items()]
        return lambda variables: {
            _key(key(variables)): value for key, render in pairs if (value := render(variables)) is not None
        }
    if isinstance(source, Sequence):
        parts = [_compile(item, found) for item in source]
        return lambda variables: [value for part in parts if (value := part(variables)) is not None]
    return lambda _: source


def _compile_text(text: str, found: list[Expression]) -> Render:
    parts: list[str | Expression] = []
    end = 0
    for match in _MARK.finditer(text):
        parts.append(text[end : match.start()])
        if match[1] is None:
            parts.append("$")
        else:
            expression = Expression(match[1])
            found.append(expression)
            parts.append(expression)
        end = match.end()
    parts.append(text[end:])
    if any("${" in part for part in parts if isinstance(part, str)):
        raise BadExpression(f"{text!r}: '${{' without its '}}'; write '$${{' for the characters themselves")
    parts = [part for part in parts if part != ""]
    if not any(isinstance(part, Expression) for part in parts):
        plain = "".join(str(part) for part in parts)
        return lambda _: plain
    if len(parts) == 1 and isinstance(parts[0], Expression):
        return parts[0]
    return lambda variables: "".join(
        part if isinstance(part, str) else _in_text(part(variables), part) for part in parts
    )


def _in_text(value: Any, expression: Expression) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise Failed(f"{expression.text}: a list or a mapping cannot be put into a text")


def _key(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise Failed("a key must be a text that is not empty")
    return value


def _walk(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _walk(item)
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item)
