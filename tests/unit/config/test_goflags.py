"""Flags mean what they mean in Go: tables, and a comparison with Go itself where it is installed."""

from __future__ import annotations

import json
import math
import re
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuberay_op.config.goflags import Flag, Parsed, parse
from kuberay_op.config.settings import Kind
from kuberay_op.testing.go_modules import ModuleUnavailableError, find_go

FLAGS = (
    Flag("text", Kind.TEXT),
    Flag("other-text", Kind.TEXT),
    Flag("bool", Kind.BOOL),
    Flag("other-bool", Kind.BOOL),
    Flag("int", Kind.INT),
    Flag("float", Kind.FLOAT),
)


@pytest.mark.parametrize(
    ("arguments", "values", "rest"),
    [
        ([], {}, ()),
        (["-text", "a"], {"text": "a"}, ()),
        (["--text", "a"], {"text": "a"}, ()),
        (["-text=a"], {"text": "a"}, ()),
        (["--text=a=b"], {"text": "a=b"}, ()),
        (["--text="], {"text": ""}, ()),
        (["--text", "--bool"], {"text": "--bool"}, ()),
        (["--text", "--", "x"], {"text": "--"}, ("x",)),
        (["-bool"], {"bool": True}, ()),
        (["-bool=false", "-bool"], {"bool": True}, ()),
        (["-bool", "false", "-int=1"], {"bool": True}, ("false", "-int=1")),
        (["-int", "1", "--", "-int", "2"], {"int": 1}, ("-int", "2")),
        (["-int", "1", "-", "-int", "2"], {"int": 1}, ("-", "-int", "2")),
        (["-int", "-3"], {"int": -3}, ()),
        (["", "-int=1"], {}, ("", "-int=1")),
    ],
)
def test_syntax(arguments: list[str], values: dict[str, Any], rest: tuple[str, ...]) -> None:
    assert parse(FLAGS, arguments) == Parsed(values, rest, ())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["---text"], "bad flag syntax: ---text"),
        (["-=x"], "bad flag syntax: -=x"),
        (["--=x"], "bad flag syntax: --=x"),
        (["-nope"], "flag provided but not defined: -nope"),
        (["--txet=1"], "flag provided but not defined: -txet; did you mean -text?"),
        (["--OtherBool"], "flag provided but not defined: -OtherBool; did you mean -other-bool?"),
        (["--text"], "flag needs an argument: -text"),
        (["--bool=yes"], 'invalid value "yes" for flag -bool: allowed is true or false'),
        (["--int", "x"], 'invalid value "x" for flag -int: allowed is a whole number'),
        (["--int=300.5"], 'invalid value "300.5" for flag -int: allowed is a whole number'),
        (["--int=9223372036854775808"], "allowed is a whole number of 64 bits"),
        (["--float=1,5"], 'invalid value "1,5" for flag -float: allowed is a number'),
        (["--float=1e999"], "allowed is a number of double precision"),
        (["--float=0x1p99999"], "allowed is a number of double precision"),
    ],
)
def test_mistakes(arguments: list[str], problem: str) -> None:
    (found,) = parse(FLAGS, arguments).problems
    assert found.endswith(problem)


def test_wrong_values_are_all_found_at_once() -> None:
    parsed = parse(FLAGS, ["--int=a", "--nope=1", "--bool=b", "--text=ok"])
    assert len(parsed.problems) == 3
    assert parsed.values == {"text": "ok"}


@pytest.mark.parametrize("argument", ["-h", "--h", "-help", "--help", "--help=x"])
def test_help(argument: str) -> None:
    assert parse(FLAGS, ["-int=1", argument, "--nope"]).help


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x1F", 31),
        ("0b101", 5),
        ("0o17", 15),
        ("017", 15),
        ("1_000", 1000),
        ("+7", 7),
        ("-0", 0),
        ("0_7", 7),
    ],
)
def test_integers(text: str, value: int) -> None:
    assert parse(FLAGS, [f"-int={text}"]).values == {"int": value}


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "08", "1__0", "_1", "1_", "0x", "٣", "1e3", "--1", "0x_", "1.0"]
)
def test_what_is_no_integer(text: str) -> None:
    assert parse(FLAGS, [f"-int={text}"]).problems


@given(
    st.lists(
        st.text(max_size=12) | st.sampled_from(["-text", "--int=", "--bool", "--", "-float"]), max_size=6
    )
)
def test_any_arguments_are_read_without_an_exception(arguments: list[str]) -> None:
    parsed = parse(FLAGS, arguments)
    assert len(parsed.rest) <= len(arguments)


# The same arguments through Go


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        go = find_go()
    except ModuleUnavailableError as error:
        pytest.skip(f"there is no Go to compare with: {error}")
    binary = tmp_path_factory.mktemp("go") / "flagprobe"
    source = Path(__file__).with_name("flagprobe.go")
    subprocess.run([go, "build", "-o", binary, source], check=True, timeout=240)
    return binary


def ask_go(probe: Path, lists: list[list[str]]) -> list[dict[str, Any]]:
    lines = "".join(json.dumps(arguments) + "\n" for arguments in lists)
    run = subprocess.run([probe], input=lines, capture_output=True, text=True, check=True, timeout=60)
    return [json.loads(line) for line in run.stdout.splitlines()]


def mistake(problem: str) -> tuple[str, str]:
    """Its kind and the flag or argument it names: the words differ, the mistake must not."""
    if problem.startswith("invalid"):
        match = re.fullmatch(r'(?s)invalid (?:boolean )?value ".*" for (?:flag )?-([a-z-]+): [^:"]*', problem)
        assert match, problem
        return "invalid", match[1]
    kind, _, rest = problem.partition(": ")
    return kind, rest.partition("; did you mean")[0]


def same(ours: Any, theirs: str) -> bool:
    if isinstance(ours, bool):
        return theirs == str(ours).lower()
    if isinstance(ours, float):
        return float(theirs) == ours or (math.isnan(ours) and theirs == "NaN")
    return theirs == str(ours)


def disagreement(arguments: list[str], go: dict[str, Any]) -> str | None:
    """What differs between Go's reading and ours, or None. Go stops at the first mistake; we go on."""
    parsed = parse(FLAGS, arguments)
    if go["help"]:
        return None if parsed.help or parsed.problems else "Go shows help"
    if "error" in go:
        if not parsed.problems:
            return f"Go says {go['error']}"
        ours, theirs = mistake(parsed.problems[0]), mistake(go["error"])
        return None if ours == theirs else f"{ours} is not {theirs}"
    if parsed.problems:
        return f"Go finds nothing wrong, we do: {parsed.problems}"
    if set(parsed.values) != set(go["values"]) or list(parsed.rest) != go["rest"]:
        return f"{parsed} is not {go}"
    wrong = [name for name, value in parsed.values.items() if not same(value, go["values"][name])]
    return f"{parsed.values} is not {go['values']}" if wrong else None


NUMBERS = [
    "0",
    "1",
    "-1",
    "+5",
    "007",
    "0x10",
    "1_000",
    "3.5",
    "1e3",
    ".5",
    "5.",
    "inf",
    "-Inf",
    "nan",
    "1e400",
]
NUMBERS += [
    "9223372036854775807",
    "9223372036854775808",
    "0x1p-2",
    "0x1.8p1",
    "1_0.5",
    "0b11",
    "0o7",
    "08",
    "",
    " 1",
]
WORDS = ["a", "true", "false", "T", "yes", "FALSE", "tRUE", "-", "--", "=", "a=b", "a b", "é", *NUMBERS]
NAMES = ["text", "other-text", "bool", "other-bool", "int", "float", "nope", "h", "help", "Text", ""]


def random_arguments(rng: Random) -> list[str]:
    arguments = []
    for _ in range(rng.randrange(6)):
        dashes = rng.choice(["-", "--", "--", "---", ""])
        name, value = rng.choice(NAMES[:6] if rng.random() < 0.8 else NAMES), rng.choice(WORDS)
        arguments += rng.choice(
            [[f"{dashes}{name}={value}"], [dashes + name, value], [dashes + name], [value]]
        )
    return arguments


def random_number(rng: Random) -> str:
    alphabet = rng.choice(["0123456789_", "0123456789abcdefxX_pP.+-", "01_.eE+-", "01bBoOxX_", "infINFaty+-"])
    return "".join(rng.choice(alphabet) for _ in range(rng.randrange(1, 8)))


@pytest.mark.parametrize("seed", range(3))
def test_go_reads_random_arguments_alike(probe: Path, seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - test data
    lists = [random_arguments(rng) for _ in range(500)]
    answers = ask_go(probe, lists)
    assert sum("error" not in answer for answer in answers) > 50, "too few good command lines to compare"
    wrong = [(a, says) for a, go in zip(lists, answers, strict=True) if (says := disagreement(a, go))]
    assert wrong == []


@pytest.mark.parametrize("flag", ["int", "float"])
def test_go_reads_random_numbers_alike(probe: Path, flag: str) -> None:
    rng = Random(7)  # noqa: S311 - test data
    lists = [[f"-{flag}={number}"] for number in [*NUMBERS, *(random_number(rng) for _ in range(8000))]]
    answers = ask_go(probe, lists)
    assert sum("error" not in answer for answer in answers) > 500, "too few numbers to compare"
    wrong = [(a, says) for a, go in zip(lists, answers, strict=True) if (says := disagreement(a, go))]
    assert wrong == []
