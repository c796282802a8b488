"""A merge patch that makes one value of another, exactly."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuberay_op.kube.merge import exact_patch, overlay

# None cannot be said by a merge patch, and an empty map is nothing to the API server.
LEAVES = st.one_of(st.integers(-9, 9), st.text(max_size=3), st.lists(st.integers(-9, 9), max_size=3))
VALUES = st.recursive(
    LEAVES, lambda inner: st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3)
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@given(OBJECTS, OBJECTS)
def test_the_patch_makes_one_of_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert overlay(before, exact_patch(before, after)) == after


@given(OBJECTS)
def test_nothing_to_do_is_an_empty_patch(value: dict[str, Any]) -> None:
    assert exact_patch(value, value) == {}


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, {"a": {"c": None}}),
        ({"a": {"b": 1}}, {"a": None}, {"a": None}),
        ({}, {"a": None}, {}),
        ({"conditions": [{"type": "A"}, {"type": "B"}]}, {"conditions": [{"type": "B"}]},
         {"conditions": [{"type": "B"}]}),
    ],
)  # fmt: skip
def test_what_is_not_wanted_goes(before: Any, after: Any, patch: Any) -> None:
    assert exact_patch(before, after) == patch
