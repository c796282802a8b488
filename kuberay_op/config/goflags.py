"""Command-line flags exactly as Go's ``flag`` package reads them.

``-x`` and ``--x`` are the same. Values come as ``-x=v`` or ``-x v``; booleans only as ``-x`` or ``-x=v``, so
in ``-x true`` the ``true`` is no value but the end of the flags. ``--`` ends them as well. What is given
twice counts the last time. ``click`` reads none of this that way, hence our own few lines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kuberay_op.config.settings import Kind
from kuberay_op.features import BOOLEANS
from kuberay_op.hints import nearest

_INT64: Final = range(-(2**63), 2**63)

#: Integers as in Go source: decimal, 0x, 0o, 0b, or octal after a leading 0; single underscores inside.
_INTEGER: Final = re.compile(
    r"[+-]?(?:0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0(?:_?[0-7])*|[1-9](?:_?[0-9])*)"
)
#: Numbers as in Go source: underscores stand between digits, or after the 0x.
_DIGITS: Final = "[0-9](?:_?[0-9])*"
_HEX: Final = "[0-9a-fA-F](?:_?[0-9a-fA-F])*"
_DECIMAL_FLOAT: Final = re.compile(
    rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?"
)
_HEX_FLOAT: Final = re.compile(rf"[+-]?0[xX](?:_?{_HEX}(?:\.(?:{_HEX})?)?|\.{_HEX})[pP][+-]?{_DIGITS}")
_SPECIAL_FLOAT: Final = re.compile(r"[+-]?inf(?:inity)?|nan", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: its name without dashes and what its values are."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a command line says."""

    #: The value of every flag that was given.
    values: Mapping[str, Any]
    #: Everything from the first argument on that is no flag.
    rest: tuple[str, ...]
    #: A sentence for every mistake, in the order of the command line.
    problems: tuple[str, ...]
    #: Whether help was asked for.
    help: bool = False


class _Mistake(ValueError):
    pass


def parse(flags: Iterable[Flag], arguments: Sequence[str]) -> Parsed:
    """Read ``arguments``. Goes on after a wrong value, so that all of those are found at once."""
    known = {flag.name: flag for flag in flags}
    values: dict[str, Any] = {}
    problems: list[str] = []
    todo = list(arguments)
    while todo and len(todo[0]) > 1 and todo[0].startswith("-"):
        argument = todo.pop(0)
        if argument == "--":
            break
        body = argument.removeprefix("-").removeprefix("-")
        if not body or body[0] in "-=":
            problems.append(f"bad flag syntax: {argument}")
            break
        name, equals, text = body.partition("=")
        flag = known.get(name)
        if flag is None:
            if name in ("h", "help"):
                return Parsed(values, tuple(todo), tuple(problems), help=True)
            near = nearest(name, known)
            problems.append(
                f"flag provided but not defined: -{name}" + (f"; did you mean -{near}?" if near else "")
            )
            if not equals:
                break  # the next argument may be its value or not: nothing after this can be trusted
            continue
        if not equals and flag.kind is Kind.BOOL:
            text = "true"
        elif not equals:
            if not todo:
                problems.append(f"flag needs an argument: -{name}")
                break
            text = todo.pop(0)
        try:
            values[name] = PARSERS[flag.kind](text)
        except _Mistake as mistake:
            problems.append(f'invalid value "{text}" for flag -{name}: {mistake}')
    return Parsed(values, tuple(todo), tuple(problems))


def _text(text: str) -> str:
    return text


def _boolean(text: str) -> bool:
    if text not in BOOLEANS:
        raise _Mistake("allowed is true or false")
    return BOOLEANS[text]


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise _Mistake("allowed is a whole number")
    digits = text.replace("_", "")
    octal = re.fullmatch(r"([+-]?)0([0-7]+)", digits)
    value = int(octal[1] + octal[2], 8) if octal else int(digits, 0)
    if value not in _INT64:
        raise _Mistake("allowed is a whole number of 64 bits")
    return value


def _float(text: str) -> float:
    if _HEX_FLOAT.fullmatch(text):
        try:
            return float.fromhex(text.replace("_", ""))
        except OverflowError:
            raise _Mistake("allowed is a number of double precision") from None
    if not (_DECIMAL_FLOAT.fullmatch(text) or _SPECIAL_FLOAT.fullmatch(text)):
        raise _Mistake("allowed is a number")
    value = float(text.replace("_", ""))
    if math.isinf(value) and not _SPECIAL_FLOAT.fullmatch(text):
        raise _Mistake("allowed is a number of double precision")
    return value


#: How the text of a value is read, by type.
PARSERS: Final[Mapping[Kind, Callable[[str], Any]]] = {
    Kind.TEXT: _text,
    Kind.BOOL: _boolean,
    Kind.INT: _integer,
    Kind.FLOAT: _float,
}
