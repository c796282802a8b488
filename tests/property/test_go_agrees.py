"""What Go's libraries read, ours read alike: schedules, durations, versions, quantities, YAML scalars."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kuberay_op.api.cron import Every, Fields, parse_schedule
from kuberay_op.api.durations import SECOND, parse_duration
from kuberay_op.api.versions import parse_version
from kuberay_op.api.yamltext import Document, YamlTextError, documents
from kuberay_op.quantity import Format, Quantity
from tests.property.schedules import mutated, schedule

Oracle = Callable[[str, Sequence[Sequence[str]]], list[dict[str, Any]]]

COUNT = 10_000
STAR = 1 << 63


def seeded(seed: int) -> random.Random:
    """The same choices in every run."""
    return random.Random(seed)  # noqa: S311 - nothing secret depends on it


# --- schedules


def as_bits(values: frozenset[int], *, star: bool) -> str:
    return str(sum(1 << value for value in values) | (STAR if star else 0))


def our_schedule(text: str) -> dict[str, Any]:
    try:
        parsed = parse_schedule(text)
    except ValueError:
        return {"ok": False}
    if isinstance(parsed, Every):
        return {"ok": True, "every": parsed.seconds * SECOND}
    return {
        "ok": True,
        "dom": as_bits(parsed.days_of_month, star=parsed.any_day_of_month),
        "dow": as_bits(parsed.days_of_week, star=parsed.any_day_of_week),
        "minute": as_bits(parsed.minutes, star=False),
        "hour": as_bits(parsed.hours, star=False),
        "month": as_bits(parsed.months, star=False),
    }


def without_star(answer: dict[str, Any]) -> dict[str, Any]:
    """The star mark of minutes, hours and months means nothing, and we do not keep it."""
    cleared = dict(answer)
    for key in ("minute", "hour", "month"):
        if key in answer:
            cleared[key] = str(int(answer[key]) & ~STAR)
    return cleared


def test_schedules(oracle: Oracle) -> None:
    rng = seeded(20260801)
    texts = [schedule(rng) for _ in range(COUNT)]
    texts = [text for text in texts if "TZ" not in text]
    answers = oracle("cron", [[text] for text in texts])
    wrong = [
        (text, ours, theirs)
        for text, theirs in zip(texts, map(without_star, answers), strict=True)
        if (ours := our_schedule(text)) != theirs
    ]
    assert wrong == []
    accepted = sum(answer["ok"] for answer in answers)
    assert accepted > COUNT / 4, "too few of the schedules are right to prove anything"
    assert accepted < COUNT * 9 / 10, "too few of the schedules are wrong to prove anything"


# --- durations


def duration(rng: random.Random) -> str:
    units = ["ns", "us", "µs", "μs", "ms", "s", "m", "h", "d", ""]
    part = [
        rng.choice(["", str(rng.randrange(10 ** rng.randrange(1, 12)))])
        + rng.choice(["", "", "." + str(rng.randrange(1000)), "."])
        + rng.choice(units)
        for _ in range(rng.choice([1, 1, 2, 3]))
    ]
    text = rng.choice(["", "", "+", "-"]) + "".join(part)
    special = ["0", "-0", "+0", "0s", "", "-", ".", ".s", "9223372036854775807ns", "9223372036854775808ns"]
    special += ["-9223372036854775808ns", "2562047h47m16.854775807s", "2562048h", "1e3s", "1_0s", "٣s"]
    if rng.random() < 0.1:
        return rng.choice(special)
    return mutated(rng, text, "0123456789.hms -+") if rng.random() < 0.2 else text


def test_durations(oracle: Oracle) -> None:
    rng = seeded(20260802)
    texts = [duration(rng) for _ in range(COUNT)]

    def ours(text: str) -> dict[str, Any]:
        try:
            return {"ok": True, "ns": str(parse_duration(text))}
        except ValueError:
            return {"ok": False}

    answers = oracle("duration", [[text] for text in texts])
    assert [(t, ours(t)) for t in texts] == list(zip(texts, answers, strict=True))
    assert COUNT / 10 < sum(answer["ok"] for answer in answers) < COUNT * 9 / 10


# --- versions


def version(rng: random.Random) -> str:
    parts = [str(rng.choice([0, 1, 2, 3, 9, 10, 52, 56, 100])) for _ in range(rng.choice([1, 2, 3, 3, 4]))]
    if rng.random() < 0.1:
        parts[rng.randrange(len(parts))] = rng.choice(["00", "02", "18446744073709551616", ""])
    prefix = rng.choice(["", "", "v", " ", "\n v", "V", "\u00a0"])
    return prefix + ".".join(parts) + rng.choice(["", "", "rc1", ".dev0", "-beta", " ", "\n", "+a.b", "."])


def test_versions(oracle: Oracle) -> None:
    rng = seeded(20260803)
    pairs = [[version(rng), version(rng)] for _ in range(COUNT)]

    def ours(left: str, right: str) -> dict[str, Any]:
        try:
            a, b = parse_version(left), parse_version(right)
        except ValueError:
            return {"ok": False}
        return {"ok": True, "less": a < b, "equal": a == b}

    answers = oracle("version", pairs)
    assert [(pair, ours(*pair)) for pair in pairs] == list(zip(pairs, answers, strict=True))
    assert COUNT / 5 < sum(answer["ok"] for answer in answers) < COUNT * 9 / 10


# --- quantities


def quantity(rng: random.Random) -> str:
    number = str(rng.randrange(10 ** rng.randrange(1, 8)))
    if rng.random() < 0.4:
        number += "." + "".join(rng.choices("0123456789", k=rng.randrange(1, 12)))
    if rng.random() < 0.1:
        number = rng.choice(["0", "00", "0.0", "1024", "1000", "1048576", "0.5"])
    suffixes = ["", "m", "u", "n", "k", "M", "G", "Ki", "Mi", "Gi", "Ti", "e3", "e-3", "E2", "e0"]
    return rng.choice(["", "", "", "+", "-"]) + number + rng.choice(suffixes)


def test_quantities(oracle: Oracle) -> None:
    rng = seeded(20260804)
    asked = [[quantity(rng), quantity(rng), str(rng.randrange(2000))] for _ in range(COUNT)]

    def ours(left: str, right: str, factor: str) -> dict[str, Any]:
        a, b = Quantity.parse(left), Quantity.parse(right)
        return {"ok": True, "canonical": str(a), "sum": str(a + b), "product": str(a * int(factor))}

    answers = oracle("quantity", asked)
    assert [(a, ours(*a)) for a in asked] == list(zip(asked, answers, strict=True))


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "1Kib", "1ki", "e3", "1e", "1e1.5", "1ee3", "0x1", "1,5", "१"]
)
def test_neither_reads_this_as_a_quantity(oracle: Oracle, text: str) -> None:
    if text not in ("e3",):  # Go takes a missing number for zero; the schema refuses it before anybody asks
        assert oracle("quantity", [[text, "1", "1"]]) == [{"ok": False}]
    with pytest.raises(ValueError, match="is not a quantity"):
        Quantity.parse(text)


def test_a_thousand_exa_keeps_its_value_where_go_loses_it(oracle: Oracle) -> None:
    assert oracle("quantity", [["1000E", "0", "1"]])[0]["canonical"] == "1"
    assert str(Quantity.parse("1000E")) == "1000E"
    assert Quantity.parse("1000E").format is Format.DECIMAL


# --- YAML


SCALARS = """
    y n yes no Yes NO on off On OFF true False TRUE null Null ~ tRue nUll none
    0 00 010 08 0o7 0O7 0o8 0x1F 0XfF 0x 0b101 -0b11 0b 0b2 0777 1_000 _1 1_ 1__0 +1 -1 +0x10
    9223372036854775807 9223372036854775808 18446744073709551615 18446744073709551616
    -9223372036854775809 +9223372036854775808 123456789012345678
    1e3 1E-3 1. .5 +.5 -.5 .5e2 . .e3 1e 1e+ 0.1 1e21 1e400 .inf -.inf .nan NaN inf
    1.2.3 12:30 12:30:45 1:60 2026-01-31 2026-01-31T10:00:00Z = << a:b 1Gi 500m 2.52.0 v1 - 1,000 ٣
""".split()  # noqa: SIM905 - a hundred quoted strings would hide what they are


def yaml_text(rng: random.Random) -> str:
    def value(depth: int) -> str:
        kind = rng.randrange(9)
        if depth == 0 or kind < 5:
            text = rng.choice(SCALARS)
            return rng.choice([text, text, f'"{text}"', f"'{text}'", f"!!str {text}", f"!!int {text}"])
        if kind < 7:
            return "[" + ", ".join(value(depth - 1) for _ in range(rng.randrange(4))) + "]"
        return (
            "{"
            + ", ".join(f"{rng.choice('abc12')}{i}: {value(depth - 1)}" for i in range(rng.randrange(4)))
            + "}"
        )

    return "\n".join(f"k{i}: {value(2)}" for i in range(rng.randrange(1, 4)))


def read_json(text: str) -> Any:
    """JSON with large numbers as floats: Go writes those that are floats without a point."""
    return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) < 16 else float(digits))


def our_yaml(text: str) -> Any:
    try:
        found = [Document(node, aliases="&" in text).value for node in documents(text)]
        return read_json(json.dumps(found[0] if found else None, allow_nan=False))
    except (YamlTextError, ValueError):
        return "refused"


def test_yaml_scalars(oracle: Oracle) -> None:
    texts = [f"a: {text}" for text in SCALARS]
    theirs = [read_json(a["json"]) if a["ok"] else "refused" for a in oracle("yaml", [[t] for t in texts])]
    assert {t: our_yaml(t) for t in texts} == dict(zip(texts, theirs, strict=True))


def test_yaml_documents(oracle: Oracle) -> None:
    rng = seeded(20260805)
    fixed = [
        "base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}",
        "a: &a {x: 1}\nb: &b {x: 2, y: 3}\nc: {<<: [*a, *b], z: 1}",
        "a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b}",
        "1: a\ntrue: b\n1.5: c\n~: d",
        "a: !custom text\nb: !!binary aGVsbG8=\nc: !!float 3\nd: !!null ~",
        "a: |\n  text\n  more\nb: >-\n  folded\n  text\n",
        "- 1\n- [2, {a: b}]\n",
        "",
        "text",
        "a: b: c",
        "a: [1, 2",
        "a: *nowhere",
        "\ta: 1",
    ]
    texts = [*fixed, *(yaml_text(rng) for _ in range(COUNT))]
    answers = oracle("yaml", [[text] for text in texts])
    theirs = [read_json(answer["json"]) if answer["ok"] else "refused" for answer in answers]
    wrong = [
        (t, ours, other) for t, other in zip(texts, theirs, strict=True) if (ours := our_yaml(t)) != other
    ]
    assert wrong == []
    assert sum(answer["ok"] for answer in answers) > COUNT / 4


def test_a_schedule_is_what_its_fields_say() -> None:
    parsed = parse_schedule("*/20 0-23/12 1 jan,dec *")
    assert isinstance(parsed, Fields)
    assert parsed.minutes == {0, 20, 40}
    assert parsed.hours == {0, 12}
    assert parsed.months == {1, 12}
    assert (parsed.any_day_of_month, parsed.any_day_of_week) == (False, True)
