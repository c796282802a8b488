"""Templates: YAML in which a text may hold ``${expression}``.

A text that is nothing but one expression becomes its value, whatever its type; otherwise the values are put
into the text. Keys may hold expressions too. A key or list item whose value is null is left out, so that
``nodeSelector: ${options.nodeSelector}`` does the right thing when the option is not set.

Rendering spends from a :class:`Budget`, so that neither a large manifest nor a loop over a large object can
take much time or memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kuberay_op.declarative.expr import BadExpression, Expression, Failed, Variables

#: What one call of a plugin may do: steps of expressions, values made, characters made.
MOST_STEPS: Final = 50_000
MOST_VALUES: Final = 10_000
MOST_CHARACTERS: Final = 1_000_000

#: ``${...}``; inside, braces stand in quoted texts only.
_EXPRESSION: Final = re.compile(r"\$\{((?:[^{}\"']|\"[^\"]*\"|'[^']*')*)\}")


class Budget:
    """What is left of the work that one call of a plugin may do; raises Failed when it is used up."""

    __slots__ = ("characters", "steps", "values")

    def __init__(self) -> None:
        self.steps = MOST_STEPS
        self.values = MOST_VALUES
        self.characters = MOST_CHARACTERS

    def evaluate(self, expression: Expression, variables: Variables) -> Any:
        """The value of an expression, paid for beforehand."""
        self.steps -= expression.steps
        if self.steps < 0:
            raise Failed(f"the steps of one call may take {MOST_STEPS} steps of expressions; these take more")
        return expression(variables)

    def keep(self, value: Any) -> Any:
        """A value that becomes part of the result; what it holds is counted too."""
        waiting = [value]
        self.values -= 1
        while waiting and self.values >= 0 and self.characters >= 0:
            part = waiting.pop()
            if isinstance(part, str):
                self.characters -= len(part)
            elif isinstance(part, Mapping | Sequence):
                self.values -= len(part)
                waiting += part
                if isinstance(part, Mapping):
                    waiting += part.values()
        if self.values < 0 or self.characters < 0:
            raise Failed(
                f"one call may make {MOST_VALUES} values of {MOST_CHARACTERS} characters together; "
                "this makes more"
            )
        return value


Render = Callable[[Variables, Budget], Any]


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

    def __call__(self, variables: Variables, budget: Budget | None = None) -> Any:
        """The result; raises :class:`~kuberay_op.declarative.expr.Failed`."""
        return self._render(variables, budget or Budget())


def _compile(source: Any, found: list[Expression]) -> Render:
    if isinstance(source, str):
        return _compile_text(source, found)
    if isinstance(source, Mapping):
        pairs = [(_compile_text(str(key), found), _compile(value, found)) for key, value in source.items()]
        return lambda variables, budget: (
            budget.keep({})
            | {
                _key(key(variables, budget)): value
                for key, render in pairs
                if (value := render(variables, budget)) is not None
            }
        )
    if isinstance(source, Sequence):
        parts = [_compile(item, found) for item in source]
        return lambda variables, budget: (
            budget.keep([]) + [value for part in parts if (value := part(variables, budget)) is not None]
        )
    return lambda _, budget: budget.keep(source)


def _compile_text(text: str, found: list[Expression]) -> Render:
    parts = _parts(text)
    expressions = [part for part in parts if isinstance(part, Expression)]
    found += expressions
    if not expressions:
        plain = "".join(str(part) for part in parts)
        return lambda _, budget: budget.keep(plain)
    if len(parts) == 1:
        return lambda variables, budget: budget.keep(budget.evaluate(expressions[0], variables))
    return lambda variables, budget: "".join(
        budget.keep(part if isinstance(part, str) else _in_text(budget.evaluate(part, variables), part))
        for part in parts
    )


def _parts(text: str) -> list[str | Expression]:
    """The text, cut at its expressions; ``$$`` is a dollar sign."""
    parts: list[str | Expression] = []
    start = 0
    while (at := text.find("$", start)) >= 0:
        parts.append(text[start:at])
        if text.startswith("$$", at):
            parts.append("$")
            start = at + 2
        elif text.startswith("${", at):
            match = _EXPRESSION.match(text, at)
            if match is None:
                raise BadExpression(
                    f"{text!r}: '${{' without its '}}'; write '$${{' for the characters themselves"
                )
            parts.append(Expression(match[1]))
            start = match.end()
        else:
            parts.append("$")
            start = at + 1
    parts.append(text[start:])
    return [part for part in parts if part != ""]


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
