"""Quantities add exactly and print in canonical form."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kuberay_op.api.fields import QUANTITY_PATTERN
from kuberay_op.quantity import Format, Quantity

#: A busy machine is no mistake in the code.
calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

amounts = st.builds(
    lambda sign, number, suffix: f"{sign}{number}{suffix}",
    st.sampled_from(["", "-", "+"]),
    st.decimals(0, 10**6, places=3, allow_nan=False).map(str),
    st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "e3", "E-3"]),
).map(Quantity.parse)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("0.0Gi", "0"),
        ("1.5", "1500m"),
        ("1500m", "1500m"),
        ("1000m", "1"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1Ki", "1Ki"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1024Mi", "1Gi"),
        ("100000Ki", "100000Ki"),
        ("-2048Ki", "-2Mi"),
        ("1e3", "1e3"),
        ("1500e-3", "1500e-3"),
        ("12e6", "12e6"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("9Ei", "9223372036854775807"),
        (3, "3"),
    ],
)
def test_canonical_form(text: str | int, canonical: str) -> None:
    assert str(Quantity.parse(text)) == canonical


def test_a_sum_is_written_like_its_left_side_unless_that_is_zero() -> None:
    def q(text: str) -> Quantity:
        return Quantity.parse(text)

    assert str(q("1Gi") + q("1000M")) == "2073741824"
    assert str(q("1Gi") + q("1024M") + q("0")) == "2048576Ki"
    assert str(q("1G") + q("1Gi")) == "2073741824"
    assert str(q("1Gi") + q("1Gi")) == "2Gi"
    assert str(Quantity() + q("1Gi")) == "1Gi"
    assert str(q("0") + q("500m")) == "500m"
    assert (q("0Ki") + q("1M")).format is Format.DECIMAL
    assert str(q("500m") * 3) == "1500m"
    assert str(q("512Mi") * 2) == "1Gi"
    assert str(q("1Gi") * 0) == "0"


@calm
@given(amounts)
def test_what_is_printed_reads_back_the_same(amount: Quantity) -> None:
    again = Quantity.parse(str(amount))
    assert again.nanos == amount.nanos
    assert str(again) == str(amount)


@calm
@given(amounts, amounts, amounts)
def test_addition_is_a_sum(a: Quantity, b: Quantity, c: Quantity) -> None:
    assert ((a + b) + c).nanos == (a + (b + c)).nanos
    assert (a + b).nanos == (b + a).nanos
    assert (a * 3).nanos == (a + a + a).nanos
    assert str(a + Quantity()) == str(a)


@calm
@given(st.decimals(-(10**12), 10**12, places=9, allow_nan=False))
def test_nine_decimals_are_exact(number: Decimal) -> None:
    assert Decimal(Quantity.parse(f"{number:f}").nanos) == number * 10**9


@calm
@given(st.from_regex(QUANTITY_PATTERN.replace("^", "").replace("$", ""), fullmatch=True))
def test_all_that_the_schema_accepts_reads_or_is_refused(text: str) -> None:
    try:
        str(Quantity.parse(text) + Quantity.parse("1Gi"))
    except ValueError:
        tail = text.lower().partition("e")[2]
        # Go reads no fraction in an exponent either; and nobody needs numbers of three hundred digits.
        assert "." in tail or len(text) > 300 or abs(int(tail)) > 300


def test_hostile_exponents_cost_nothing() -> None:
    for text in ("1e999999999", "1e-999999999", "9" * 10_000, "1e" + "9" * 200):
        with pytest.raises(ValueError, match="is not a quantity"):
            Quantity.parse(text)
