"""Nobody makes an expression reach an attribute, import something, or take much time or memory.

Expressions are made at random, from a grammar and by mutation, and evaluated on values that are hostile too:
objects that report every attribute that is touched, and texts and lists as large as the language allows. Time
is counted in calls, memory by ``tracemalloc``, so that a busy machine fails nothing. The normal run does a
seeded part; ``make fuzz`` the whole.
"""

from __future__ import annotations

import gc
import os
import random
import string
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from kuberay_op.declarative.expr import (
    FUNCTIONS,
    MOST_CHARACTERS,
    MOST_ITEMS,
    MOST_NUMBER,
    BadExpression,
    Expression,
    Failed,
)
from kuberay_op.declarative.template import MOST_CHARACTERS as MOST_OF_A_CALL
from kuberay_op.declarative.template import MOST_VALUES, Budget, Template

SEED = 20260901
COUNT = int(os.environ.get("FUZZ_COUNT", "100000"))

#: Python calls that one step of an expression may take: the longest is ``glob`` with many long patterns.
CALLS_PER_STEP = 300 * MOST_ITEMS
#: And most steps take: everything but functions.
CALLS_PER_PLAIN_STEP = 40
#: Bytes that evaluating one expression may take on top of its variables.
MOST_BYTES = 30 * 2**20

WORDS = [
    *FUNCTIONS,
    *("owner", "options", "item", "trap", "text", "wide", "list", "deep", "n", "big", "f", "none", "x"),
    *("true", "false", "null", "None", "True", "__import__", "open", "eval", "type", "getattr", "os"),
]
FIELDS = [
    *("metadata", "labels", "spec", "a", "b", "reached"),
    *(
        "__class__",
        "__dict__",
        "__globals__",
        "__subclasses__",
        "__init__",
        "mro",
        "keys",
        "append",
        "format",
    ),
]
OPERATORS = ["+", "-", "*", "//", "%", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
OTHERS = ["**", "<<", "|", "is", "is not", ":=", "@", "/", "if", "for", "lambda:", "await", "yield"]


class Trap:
    """Reports whoever touches an attribute of it."""

    touched: list[str] = []  # noqa: RUF012 (for the whole run)
    reached = "reached"

    def __getattribute__(self, name: str) -> Any:
        if name != "__class__":  # isinstance asks for it
            Trap.touched.append(name)
        return object.__getattribute__(self, name)


VARIABLES: dict[str, Any] = {
    "owner": {"metadata": {"labels": {"a": "1", "b": "x"}}, "spec": {"a": [1, 2, {"b": None}]}},
    "options": {"a": "*a*b*" * 40, "b": [f"{'*a' * 90}{number}" for number in range(MOST_ITEMS)]},
    "item": {"key": "a", "value": 1.5},
    "trap": Trap(),
    "text": "a" * MOST_CHARACTERS,
    "wide": "\U0001f600" * MOST_CHARACTERS,
    "list": list(range(MOST_ITEMS)),
    "deep": {"a": {"a": {"a": {"b": ["x"] * MOST_ITEMS}}}},
    "n": 3,
    "big": MOST_NUMBER - 1,
    "f": 1e308,
    "none": None,
}


def grown(rng: random.Random, depth: int) -> str:
    """An expression from the grammar, now and then with something that is not in it."""
    if depth <= 0 or rng.random() < 0.1:
        return rng.choice(
            [
                rng.choice(WORDS),
                str(rng.choice([0, 1, -1, 7, 2**31, 2**63, 2**70, 1.5, 1e308])),
                repr("".join(rng.choices(string.printable, k=rng.randrange(6)))),
                rng.choice(["[]", "()", "{}", "''", "...", "b''", "f'{x}'", "1j", "'%s'", "'{0.a}'"]),
            ]
        )

    def inner() -> str:
        return grown(rng, depth - 1)

    shapes: list[Callable[[], str]] = [
        lambda: f"({inner()} {rng.choice(OPERATORS)} {inner()})",
        lambda: f"({inner()} {rng.choice(OPERATORS)} {inner()})",
        lambda: f"({inner()} {rng.choice(OTHERS)} {inner()})",
        lambda: f"{inner()}.{rng.choice(FIELDS)}",
        lambda: f"{inner()}[{inner()}]",
        lambda: f"{rng.choice(WORDS)}({', '.join(inner() for _ in range(rng.randrange(4)))})",
        lambda: f"{inner()}({inner()})",
        lambda: f"({inner()} if {inner()} else {inner()})",
        lambda: f"[{', '.join(inner() for _ in range(rng.randrange(5)))}]",
        lambda: f"not {inner()}",
        lambda: f"-{inner()}",
    ]
    shape = rng.choice(shapes)
    return shape()


def mutated(rng: random.Random, text: str) -> str:
    """The same with pieces moved, doubled or replaced."""
    for _ in range(rng.randrange(4)):
        at, to = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        piece = rng.choice(["", text[at:to] * 2, rng.choice(string.printable), rng.choice(WORDS), "("])
        text = text[:at] + piece + text[to:]
    return text[:1100]


def texts(count: int, seed: int) -> Iterator[str]:
    rng = random.Random(seed)  # noqa: S311 (seeded on purpose)
    for _ in range(count):
        text = grown(rng, rng.randrange(1, 7))[:1100]
        yield mutated(rng, text) if rng.random() < 0.3 else text


class Watch:
    """Counts calls, notes what Python's own audit sees, and measures memory, while it is on."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.calls = 0
        self.peak = 0
        self._on = False
        self._thread = threading.get_ident()
        sys.addaudithook(self._audit)  # for good: there is no way to take it off again

    @contextmanager
    def watching(self, *, memory: bool) -> Iterator[None]:
        self.calls, self.peak, self._on = 0, 0, True
        gc.disable()  # finalizers of what other tests left would count as ours
        if memory:
            tracemalloc.start()
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            self._on = False
            gc.enable()
            if memory:
                self.peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()

    def _audit(self, event: str, _: Any) -> None:
        # Reading an attribute of a code object and the like is Python's own business, and what other threads
        # do (pytest's own talk to each other) is theirs.
        if not self._on or threading.get_ident() != self._thread:
            return
        if event.split(".", maxsplit=1)[0] in (
            "import",
            "exec",
            "compile",
            "open",
            "os",
            "subprocess",
            "socket",
        ):
            self.events.append(event)

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        # An ``isinstance`` with an abstract class asks every class that was ever made from it, whenever a new
        # one has come up anywhere: how many there are is not the expression's doing.
        if event in ("call", "c_call") and frame.f_globals.get("__name__") != "abc":
            self.calls += 1


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch()


def plain(value: Any) -> bool:
    """JSON and nothing else."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and plain(item) for key, item in value.items())
    if isinstance(value, list):
        return len(value) <= MOST_ITEMS and all(plain(item) for item in value)
    if isinstance(value, str):
        return len(value) <= MOST_CHARACTERS
    if isinstance(value, int):
        return abs(value) <= MOST_NUMBER
    return value is None or isinstance(value, float | Trap)


def fuzz_expressions(count: int, seed: int, watch: Watch) -> None:
    Trap.touched.clear()
    evaluated = 0
    for number, text in enumerate(texts(count, seed)):
        try:
            expression = Expression(text)
        except BadExpression:
            continue
        budget = expression.steps * (CALLS_PER_STEP if "(" in text else CALLS_PER_PLAIN_STEP) + 100
        value: Any = None
        failed = False
        # Measuring memory is slow, and there is less to find: every fourth.
        with watch.watching(memory=number % 4 == 0):
            try:
                value = expression(VARIABLES)
            except Failed:
                failed = True
        note = f"expression {number} of seed {seed}: {text}"
        assert not Trap.touched, note
        assert not watch.events, f"{watch.events}: {note}"
        assert watch.calls <= budget, note
        assert watch.peak <= MOST_BYTES, note
        assert failed or plain(value), note
        evaluated += not failed
    assert evaluated > count / 20, "hardly any expression could be evaluated"


def fuzz_templates(count: int, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 (seeded on purpose)

    def source(depth: int) -> Any:
        if depth <= 0 or rng.random() < 0.2:
            pieces = [rng.choice(["", "x", "$", "$$", "${", "}", f"${{{grown(rng, 2)}}}"]) for _ in range(3)]
            return rng.choice([*pieces, "".join(pieces), rng.choice([1, None, True])])
        if rng.random() < 0.5:
            return [source(depth - 1) for _ in range(rng.randrange(5))]
        return {str(source(0)): source(depth - 1) for _ in range(rng.randrange(5))}

    rendered = 0
    for _ in range(count):
        made = source(rng.randrange(5))
        budget = Budget()
        try:
            result = Template(made)(VARIABLES, budget)
        except (BadExpression, Failed):
            continue
        rendered += 1
        values, characters = measured(result)
        assert values <= MOST_VALUES
        assert characters <= MOST_OF_A_CALL
    assert rendered > count / 20, "hardly any template could be rendered"
    assert not Trap.touched


def measured(value: Any) -> tuple[int, int]:
    """How many values there are, and how many characters."""
    if isinstance(value, dict):
        parts = [measured(part) for item in value.items() for part in item]
    elif isinstance(value, list):
        parts = [measured(item) for item in value]
    else:
        return 1, len(value) if isinstance(value, str) else 0
    return 1 + sum(count for count, _ in parts) // 2, sum(size for _, size in parts)


def test_a_part_of_the_expressions(watch: Watch) -> None:
    fuzz_expressions(4_000, SEED, watch)


def test_a_part_of_the_templates() -> None:
    fuzz_templates(2_000, SEED)


@pytest.mark.slow
def test_all_expressions(watch: Watch) -> None:
    fuzz_expressions(COUNT, random.randrange(2**32), watch)  # noqa: S311 (the seed is in the note)


@pytest.mark.slow
def test_all_templates() -> None:
    fuzz_templates(COUNT // 4, random.randrange(2**32))  # noqa: S311 (a new one each time)


#: The worst that a clever author could think of; each must be refused or end within its bounds.
WORST = {
    "many stars": 'glob(text, "' + "*a" * 99 + 'b")',
    "many patterns": "glob(text, options.b)",
    "a list that doubles": "(" + "list + " * 60 + "list)",
    "a text that doubles": "(" + "wide + " * 60 + "wide)",
    "lists of long texts": "[" + ", ".join(["wide + ''"] * 60) + "]",
    "a long quantity": "quantity_sum(text, text)",
    "a quantity with an exponent": 'quantity_times("1e999999999", 9)',
    "a number with many digits": "int(text)",
    "numbers that grow": "big" + " * big" * 60,
    "floats that grow": "f" + " * f" * 60,
    "deep comparisons": " or ".join(["deep == deep"] * 30),
    "deep look-ups": "deep" + ".a" * 190,
    "a long search": " or ".join(['"x" in list'] * 50),
    "format": '"%99999999d" % 1',
}


@pytest.mark.parametrize("text", WORST.values(), ids=WORST.keys())
def test_the_worst_stays_within_its_bounds(watch: Watch, text: str) -> None:
    expression = Expression(text)
    with watch.watching(memory=True):
        try:
            value = expression(VARIABLES)
        except Failed:
            value = None
    assert watch.calls <= expression.steps * CALLS_PER_STEP
    assert watch.peak <= MOST_BYTES
    assert plain(value)
