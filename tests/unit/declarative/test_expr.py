"""Expressions and templates: what they can say, and what nobody can make them do."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuberay_op.declarative.expr import (
    FUNCTION_DOCS,
    FUNCTIONS,
    MOST_CHARACTERS,
    MOST_ITEMS,
    MOST_NUMBER,
    BadExpression,
    Expression,
    Failed,
)
from kuberay_op.declarative.template import Template

VARIABLES: dict[str, Any] = {
    "owner": {
        "kind": "RayCluster",
        "metadata": {"name": "a", "labels": {"team": "ml", "kai.scheduler/queue": "q"}},
        "spec": {"workerGroupSpecs": [{"replicas": 2}, {"replicas": 3}]},
    },
    "options": {"queueLabel": "kai.scheduler/queue", "teams": ["ml", "web"], "n": 4, "off": False},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("owner.kind", "RayCluster"),
        ("owner.metadata.labels[options.queueLabel]", "q"),
        ("owner.metadata.annotations.missing.deeper", None),
        ('owner["kind"] == "RayCluster" and options.n > 3', True),
        ("owner.metadata.labels.team in options.teams", True),
        ('"x" not in options.teams', True),
        ("not options.off", True),
        ("owner.spec.workerGroupSpecs[0].replicas + owner.spec.workerGroupSpecs[-1].replicas", 5),
        ("owner.spec.workerGroupSpecs[7]", None),
        ("options.n * 2 - 1", 7),
        ("7 // 2 + 7 % 2", 4),
        ('"a" + "b"', "ab"),
        ("options.none + [1]", [1]),
        ('"yes" if options.n == 4 else "no"', "yes"),
        ("options.none or 3", 3),
        ("len(options.teams)", 2),
        ("len(options.none)", 0),
        ('quantity_sum("500m", "1")', "1500m"),
        ('quantity_times("1Gi", 3)', "3Gi"),
        ('int("7", 0)', 7),
        ("flat([options.teams, null, [1]])", ["ml", "web", 1]),
        ('int("many", -1)', -1),
        ('json([1, "a", null])', '[1,"a",null]'),
        ('glob("repo/ray:2", ["other/*", "repo/*"])', True),
        ('glob("repo/ray:2", "repo/ray:2")', True),
        ('glob("repo/ray:2", "*:2")', True),
        ('glob("repo/ray:2", "r*o/r*y:*")', True),
        ('glob("repo/ray:2", "repo/*/*")', False),
        ('glob("ab", "ab*b")', False),
        ('glob("abcb", "a*b*b")', True),
        ('glob("", "*")', True),
        ('glob("a", [])', False),
        ('lower("AB") + str(3) + str(true) + str(null)', "ab3true"),
        ('int("12") == 12', True),
        ("[true, false, null]", [True, False, None]),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert Expression(text)(VARIABLES) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "owner.__class__()",
        "().__class__",
        "(lambda: 1)()",
        "[x for x in owner]",
        "f'{owner}'",
        "owner := 1",
        "2 ** 64",
        "1 << 99",
        "'a' is 'a'",
        "1 < 2 < 3",
        "open('x')",
        "len(*owner)",
        "str(object=1)",
        "{'a': 1}",
        "b'bytes'",
        "1j",
        "...",
        "import os",
        "a; b",
        "",
        "(" * 300 + ")" * 300,
        "-" * 500 + "1",
        "+".join(["1"] * 400),
        "x" * 2000,
        str(10**30),
        "len",
    ],
)
def test_what_is_not_in_the_language_is_refused_when_loaded(text: str) -> None:
    with pytest.raises(BadExpression):
        Expression(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('1 + "a"', "numbers"),
        ('"%99999999d" % 1', "numbers"),
        ('"a" * 999999999', "numbers"),
        ("1 // 0", "zero"),
        ("9223372036854775807 * 9", "exceed"),
        ('"a" < 1', "compared"),
        ("1 in 2", "'in' takes"),
        ("len(3)", "len"),
        ('int("x")', "int"),
        ('int("' + "9" * 30 + '")', "int"),
        ("len()", "arguments"),
        ("[1] + 2", "joined"),
        ('quantity_sum("lots")', "quantity"),
        ("str(owner)", "str"),
    ],
)
def test_what_cannot_be_computed_says_so(text: str, complaint: str) -> None:
    with pytest.raises(Failed, match=complaint):
        Expression(text)(VARIABLES)


def test_a_dot_never_reaches_a_python_attribute() -> None:
    class Trap:
        secret = "reached"

    for text in ("x.secret", "x.__class__", 'x["secret"]', "x.__dict__.secret"):
        assert Expression(text)({"x": Trap()}) is None
    assert Expression("x.keys")({"x": {}}) is None
    assert Expression("x.append")({"x": []}) is None


def test_errors_show_no_values() -> None:
    with pytest.raises(Failed) as caught:
        Expression("options.password + 1")({"options": {"password": "hunter2"}})
    assert "hunter2" not in str(caught.value)


def test_every_function_is_documented() -> None:
    assert set(FUNCTIONS) == set(FUNCTION_DOCS)
    for name, text in FUNCTION_DOCS.items():
        assert text.startswith(f"{name}(")


NAMES = st.sampled_from(["owner", "options", "x", "len", "str", "true", "null", "__class__", "name", "glob"])
ATOMS = st.one_of(
    NAMES,
    st.integers(-5, 2**70).map(str),
    st.text(string.printable, max_size=6).map(repr),
    st.sampled_from(["[]", "()", "{}", "lambda: 0", "1.5", "..."]),
)
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([*"+-*%<>", "//", "**", "==", "in", "and", "or", "is"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        st.tuples(inner, NAMES).map(lambda parts: f"{parts[0]}.{parts[1]}"),
        st.tuples(inner, inner).map(lambda parts: f"{parts[0]}[{parts[1]}]"),
        st.tuples(NAMES, st.lists(inner, max_size=3)).map(lambda parts: f"{parts[0]}({', '.join(parts[1])})"),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} if {parts[1]} else {parts[2]})"),
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
    ),
    max_leaves=30,
)


def plain(value: Any) -> bool:
    """Made of JSON and nothing else, and not large."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and plain(item) for key, item in value.items())
    if isinstance(value, list):
        return len(value) <= MOST_ITEMS and all(plain(item) for item in value)
    if isinstance(value, str):
        return len(value) <= MOST_CHARACTERS
    if isinstance(value, int):
        return abs(value) <= MOST_NUMBER
    return value is None or isinstance(value, float)


@settings(max_examples=1500, deadline=None)
@given(EXPRESSIONS)
def test_no_expression_yields_anything_but_plain_values(text: str) -> None:
    try:
        value = Expression(text)(VARIABLES)
    except (BadExpression, Failed):
        return
    assert plain(value)


@settings(max_examples=500, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    try:
        value = Expression(text)(VARIABLES)
    except (BadExpression, Failed):
        return
    assert plain(value)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("plain", "plain"),
        ("${options.n}", 4),
        ("n is ${options.n}!", "n is 4!"),
        ("$${kept} $", "${kept} $"),
        ("${options.none}", None),
        ("x${options.none}y", "xy"),
        (
            {"${options.queueLabel}": "${owner.metadata.name}-x", "gone": "${options.none}"},
            {"kai.scheduler/queue": "a-x"},
        ),
        (["${options.none}", 1, "${options.off}"], [1, False]),
        ('${"}" + "{"}', "}{"),
    ],
)
def test_templates(source: Any, result: Any) -> None:
    assert Template(source)(VARIABLES) == result


@pytest.mark.parametrize("source", ["${", "${owner", "a ${ b", {"x": "${1 +}"}])
def test_broken_templates_are_refused_when_loaded(source: Any) -> None:
    with pytest.raises(BadExpression):
        Template(source)


@pytest.mark.parametrize("source", ["x${options.teams}", {"${options.n}": 1}, {"${options.none}": 1}])
def test_templates_that_make_no_sense_fail(source: Any) -> None:
    with pytest.raises(Failed):
        Template(source)(VARIABLES)


def test_a_template_knows_its_variables() -> None:
    assert Template({"a": "${owner.x}", "b": ["${item}${options.y}"]}).names == {"owner", "item", "options"}
