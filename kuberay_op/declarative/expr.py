"""Expressions in YAML plugins: ``owner.metadata.labels["team"] in options.teams``.

Safe by construction. The text is parsed by Python's own parser, and each node must be of a kind listed here;
everything else is an error when the plugin is loaded. What is listed cannot harm:

* a dot or a bracket looks up a key of a mapping or an item of a list; it never reaches a Python attribute;
* a missing key, or a look-up in something that has none, is null;
* only the functions in ``FUNCTIONS`` can be called;
* there are no loops, so an expression ends after as many steps as it has nodes, and their number is limited;
  so are the size of every number, text and list that comes out of a step, and what one step may look at.

An expression is compiled once into closures; evaluating it costs about a microsecond per node.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from kuberay_op.api import names
from kuberay_op.errors import OperatorError
from kuberay_op.quantity import Quantity

#: Longest expression, in characters.
MOST_TEXT: Final = 1000
#: Most nodes of the syntax tree.
MOST_NODES: Final = 200
#: Longest text and longest list that a step may make.
MOST_CHARACTERS: Final = 20_000
MOST_ITEMS: Final = 1000
#: Longest pattern and longest quantity that a function looks at.
MOST_PATTERN: Final = 200
#: Largest whole number.
MOST_NUMBER: Final = 2**63

Variables = Mapping[str, Any]
Evaluate = Callable[[Variables], Any]


class BadExpression(OperatorError):
    """The expression is not in the language; found when the plugin is loaded."""


class Failed(OperatorError):
    """The expression cannot be evaluated on these values, e.g. a number added to a text."""


class Expression:
    """A compiled expression. Equal to another with the same text."""

    __slots__ = ("_evaluate", "names", "options", "steps", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        compiler = _Compiler(text)
        self._evaluate = compiler.compiled
        #: How many steps it takes at most.
        self.steps: int = compiler.nodes
        #: The variables it reads.
        self.names: frozenset[str] = frozenset(compiler.names)
        #: The options it reads by name (``options.x``), so that a misspelt one is found when linting.
        self.options: frozenset[str] = frozenset(compiler.options)

    def __call__(self, variables: Variables) -> Any:
        """The value; raises :class:`Failed`."""
        try:
            return self._evaluate(variables)
        except Failed as error:
            raise Failed(f"{self.text}: {error}") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


# -- functions ---------------------------------------------------------------------------------------------


def _length(value: Any) -> int:
    if isinstance(value, str | Sequence | Mapping):
        return len(value)
    if value is None:
        return 0
    raise Failed(f"len() takes a text, a list or a mapping, not {_type(value)}")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise Failed(f"str() takes a text or a number, not {_type(value)}")


def _number(value: Any, *otherwise: Any) -> Any:
    if len(otherwise) > 1:
        raise TypeError
    try:
        if isinstance(value, str) and len(value) > 20:
            raise ValueError
        return int(value)
    except (TypeError, ValueError, OverflowError):
        if otherwise:
            return otherwise[0]
        raise Failed(f"int() takes a number, not {_type(value)}") from None


def _json(value: Any) -> str:
    waiting, left = [value], MOST_ITEMS
    while waiting:
        part = waiting.pop()
        left -= 1
        if _holds_others(part):
            left -= len(part)
            waiting += part.values() if isinstance(part, Mapping) else part
        if left < 0:
            raise Failed(f"json() writes {MOST_ITEMS} values at most; this has more")
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # a number beyond 64 bits, or a text that is not one
        raise Failed("json() cannot write this value") from None


def _flat(value: Any) -> list[Any]:
    if value is not None and not _is_list(value):
        raise Failed(f"flat() takes a list of lists, not {_type(value)}")
    parts = [[] if part is None else part for part in value or ()]
    if not all(_is_list(part) for part in parts):
        raise Failed("flat() takes a list of lists")
    if sum(map(len, parts)) > MOST_ITEMS:
        raise Failed(f"a list may have {MOST_ITEMS} items, this would have more")
    return [item for part in parts for item in part]


def _lower(value: Any) -> str:
    return _text(value).lower()


def _quantity(value: Any) -> Quantity:
    if isinstance(value, str) and len(value) > MOST_PATTERN:
        raise Failed(f"a quantity may have {MOST_PATTERN} characters, this has {len(value)}")
    try:
        return Quantity.parse(value if value is not None else 0)
    except (ValueError, TypeError) as error:
        raise Failed(str(error)) from None


def _quantity_sum(*values: Any) -> str:
    total = Quantity()
    for value in values:
        total += _quantity(value)
    return str(total)


def _quantity_times(value: Any, factor: Any) -> str:
    return str(_quantity(value) * _number(factor))


def _glob(value: Any, patterns: Any) -> bool:
    wanted = [patterns] if isinstance(patterns, str) else patterns or ()
    if not isinstance(wanted, Sequence) or len(wanted) > MOST_ITEMS:
        raise Failed(f"glob() takes a pattern or a list of {MOST_ITEMS} at most, not {_type(patterns)}")
    text = _bounded(_text(value), Failed)
    return any(_matches(text, _text(pattern)) for pattern in wanted)


def _matches(text: str, pattern: str) -> bool:
    if len(pattern) > MOST_PATTERN:
        raise Failed(f"a pattern may have {MOST_PATTERN} characters, this has {len(pattern)}")
    # By hand: a regular expression takes longer to make than a step may take, and is remembered for ever.
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    if not text.startswith(first):
        return False
    at = len(first)
    for part in others[:-1]:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(text) - at >= len(others[-1]) and text.endswith(others[-1])


#: What an expression may call.
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "flat": _flat,
    "glob": _glob,
    "int": _number,
    "json": _json,
    "len": _length,
    "lower": _lower,
    "name": lambda value: names.check_name(_text(value)),
    "quantity_sum": _quantity_sum,
    "quantity_times": _quantity_times,
    "str": _text,
}

#: One line each, for the reference page.
FUNCTION_DOCS: Final[dict[str, str]] = {
    "flat": "flat(lists): the items of all lists in one",
    "glob": "glob(text, patterns): whether the text matches one of the patterns; * stands for any text",
    "int": "int(x, y): a whole number; y, if given, when x is none",
    "json": "json(x): as JSON, for annotations that hold it",
    "len": "len(x): length of a text, list or mapping; 0 for null",
    "lower": "lower(x): in lower case",
    "name": "name(x): shortened to 50 characters from the end, as the operator shortens object names",
    "quantity_sum": 'quantity_sum(a, b, ...): sum of quantities, e.g. quantity_sum("500m", "1") is "1500m"',
    "quantity_times": 'quantity_times(a, n): a quantity n times, e.g. quantity_times("1Gi", 3) is "3Gi"',
    "str": "str(x): as text; null is empty",
}

#: Words that mean a value, as YAML and as Python spell them.
CONSTANTS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}

_COMPARE: Final[dict[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

_ARITHMETIC: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


class _Compiler:
    """Turns a syntax tree into closures, refusing what is not in the language."""

    def __init__(self, text: str) -> None:
        if len(text) > MOST_TEXT:
            raise BadExpression(f"an expression may have {MOST_TEXT} characters, this has {len(text)}")
        self.names: set[str] = set()
        self.options: set[str] = set()
        self._text = text
        self.nodes = 0
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise BadExpression(f"{text!r} is not an expression: {error}") from None
        self.compiled = self._compile(tree.body)

    def _compile(self, node: ast.expr) -> Evaluate:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise BadExpression(f"an expression may have {MOST_NODES} parts; this has more")
        method = getattr(self, f"_compile_{type(node).__name__}", None)
        if method is None:
            raise BadExpression(f"{self._text!r}: {ast.unparse(node)[:60]!r} is not allowed in an expression")
        compiled: Evaluate = method(node)
        return compiled

    def _compile_Constant(self, node: ast.Constant) -> Evaluate:  # noqa: N802 (named after the node)
        value = node.value
        if value is not None and not isinstance(value, str | bool | int | float):
            raise BadExpression(f"{self._text!r}: {value!r} is not a text, number, true, false or null")
        _bounded(value, BadExpression)
        return lambda _: value

    def _compile_Name(self, node: ast.Name) -> Evaluate:  # noqa: N802 (named after the node)
        name = node.id
        if name in CONSTANTS:
            constant = CONSTANTS[name]
            return lambda _: constant
        if name in FUNCTIONS:
            raise BadExpression(f"{self._text!r}: {name} is a function; call it: {name}(...)")
        self.names.add(name)
        return lambda variables: variables.get(name)

    def _compile_Attribute(self, node: ast.Attribute) -> Evaluate:  # noqa: N802 (named after the node)
        inner, key = self._compile(node.value), node.attr
        if isinstance(node.value, ast.Name) and node.value.id == "options":
            self.options.add(key)
        return lambda variables: _look_up(inner(variables), key)

    def _compile_Subscript(self, node: ast.Subscript) -> Evaluate:  # noqa: N802 (named after the node)
        inner, key = self._compile(node.value), self._compile(node.slice)
        return lambda variables: _look_up(inner(variables), key(variables))

    def _compile_BoolOp(self, node: ast.BoolOp) -> Evaluate:  # noqa: N802 (named after the node)
        parts = [self._compile(value) for value in node.values]
        stop_at = isinstance(node.op, ast.Or)

        def evaluate(variables: Variables) -> Any:
            value = None
            for part in parts:
                value = part(variables)
                if bool(value) is stop_at:
                    break
            return value

        return evaluate

    def _compile_UnaryOp(self, node: ast.UnaryOp) -> Evaluate:  # noqa: N802 (named after the node)
        inner = self._compile(node.operand)
        if isinstance(node.op, ast.Not):
            return lambda variables: not inner(variables)
        if isinstance(node.op, ast.USub):
            return lambda variables: -_a_number(inner(variables), "-")
        raise BadExpression(f"{self._text!r}: only 'not' and '-' stand before a value")

    def _compile_Compare(self, node: ast.Compare) -> Evaluate:  # noqa: N802 (named after the node)
        if len(node.ops) != 1:
            raise BadExpression(f"{self._text!r}: join comparisons with 'and'")
        left, right = self._compile(node.left), self._compile(node.comparators[0])
        op = node.ops[0]
        if isinstance(op, ast.In):
            return lambda variables: _contains(right(variables), left(variables))
        if isinstance(op, ast.NotIn):
            return lambda variables: not _contains(right(variables), left(variables))
        compare = _COMPARE.get(type(op))
        if compare is None:
            raise BadExpression(f"{self._text!r}: 'is' is not in the language; use == or !=")
        return lambda variables: _compared(compare, left(variables), right(variables))

    def _compile_BinOp(self, node: ast.BinOp) -> Evaluate:  # noqa: N802 (named after the node)
        compute = _ARITHMETIC.get(type(node.op))
        if compute is None:
            raise BadExpression(f"{self._text!r}: arithmetic has + - * // % only")
        left, right = self._compile(node.left), self._compile(node.right)
        if isinstance(node.op, ast.Add):
            return lambda variables: _added(left(variables), right(variables))
        return lambda variables: _computed(compute, left(variables), right(variables))

    def _compile_IfExp(self, node: ast.IfExp) -> Evaluate:  # noqa: N802 (named after the node)
        test, yes, no = self._compile(node.test), self._compile(node.body), self._compile(node.orelse)
        return lambda variables: yes(variables) if test(variables) else no(variables)

    def _compile_List(self, node: ast.List) -> Evaluate:  # noqa: N802 (named after the node)
        parts = [self._compile(element) for element in node.elts]
        return lambda variables: [part(variables) for part in parts]

    def _compile_Call(self, node: ast.Call) -> Evaluate:  # noqa: N802 (named after the node)
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            known = ", ".join(sorted(FUNCTIONS))
            raise BadExpression(
                f"{self._text!r}: {ast.unparse(node.func)[:60]!r} cannot be called; functions are {known}"
            )
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise BadExpression(f"{self._text!r}: functions take plain arguments only")
        function, name = FUNCTIONS[node.func.id], node.func.id
        arguments = [self._compile(argument) for argument in node.args]

        def evaluate(variables: Variables) -> Any:
            values = [argument(variables) for argument in arguments]
            try:
                return _bounded(function(*values), Failed)
            except TypeError:
                raise Failed(f"{name}() does not take {len(values)} arguments") from None

        return evaluate


# -- steps -------------------------------------------------------------------------------------------------


def _look_up(value: Any, key: Any) -> Any:
    if isinstance(value, Mapping):
        return value.get(key) if isinstance(key, str) else None
    if _is_list(value) and isinstance(key, int) and not isinstance(key, bool):
        return value[key] if -len(value) <= key < len(value) else None
    return None


def _contains(container: Any, item: Any) -> bool:
    if container is None:
        return False
    if isinstance(container, str):
        return isinstance(item, str) and item in container
    if isinstance(container, Mapping):
        return isinstance(item, str) and item in container
    if isinstance(container, Sequence):
        if _holds_others(item):
            raise Failed("'in' looks for a text, a number, true, false or null in a list")
        return item in container
    raise Failed(f"'in' takes a text, a list or a mapping, not {_type(container)}")


def _compared(compare: Callable[[Any, Any], Any], left: Any, right: Any) -> bool:
    # Comparing two large objects would take longer than a step may.
    if not (_holds_others(left) and _holds_others(right)):
        try:
            return bool(compare(left, right))
        except TypeError:
            pass
    raise Failed(f"{_type(left)} and {_type(right)} cannot be compared") from None


def _added(left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        return _bounded(left + right, Failed)
    if _is_list(left) or _is_list(right):
        # null joins like an empty list: what a user left out is often the list one adds to
        parts = [[] if value is None else value for value in (left, right)]
        if not all(_is_list(part) for part in parts):
            raise Failed(f"{_type(left)} and {_type(right)} cannot be joined")
        return _bounded([*parts[0], *parts[1]], Failed)
    return _computed(operator.add, left, right)


def _computed(compute: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    a, b = _a_number(left, "arithmetic"), _a_number(right, "arithmetic")
    try:
        return _bounded(compute(a, b), Failed)
    except (ZeroDivisionError, OverflowError) as error:
        raise Failed(str(error)) from None


def _holds_others(value: Any) -> bool:
    return isinstance(value, Mapping) or _is_list(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _a_number(value: Any, what: str) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise Failed(f"{what} takes numbers, not {_type(value)}")


def _bounded(value: Any, error: type[OperatorError]) -> Any:
    if isinstance(value, int) and abs(value) > MOST_NUMBER:
        raise error(f"a number may not exceed {MOST_NUMBER}")
    if isinstance(value, float) and not math.isfinite(value):
        raise error("a number must be finite")
    if isinstance(value, str) and len(value) > MOST_CHARACTERS:
        raise error(f"a text may have {MOST_CHARACTERS} characters, this has {len(value)}")
    if isinstance(value, list) and len(value) > MOST_ITEMS:
        raise error(f"a list may have {MOST_ITEMS} items, this has {len(value)}")
    return value


def _type(value: Any) -> str:
    # Errors name types, never values: a value may be a secret option, and errors end up in logs.
    return "null" if value is None else type(value).__name__
