"""What the charts make of a hundred values: the default as a whole, the others as what they change of it."""

from __future__ import annotations

import difflib

import pytest

from kuberay_op.testing.golden import Golden
from tests.charts.cases import CHARTS, cases, text

ALL = [(chart, case) for chart in CHARTS for case in cases(chart)]

#: Values that must not make a difference.
SAME = {"environment-null", "scheduler-null", "old-empty-lists", "null-environment"}


@pytest.mark.parametrize(("chart", "case"), ALL, ids=[f"{chart}:{case}" for chart, case in ALL])
def test_it_renders_as_before(chart: str, case: str, golden: Golden) -> None:
    default = text(chart, "default")
    if case == "default":
        golden.check(f"{chart}/default.yaml", default)
        return
    lines = difflib.unified_diff(
        default.splitlines(), text(chart, case).splitlines(), "default", case, n=2, lineterm=""
    )
    # Where in the text a change is says nothing, and would move with every other change.
    shown = ["@@" if line.startswith("@@") else line for line in lines]
    assert bool(shown) != (case in SAME), "do these values change anything?"
    golden.check(f"{chart}/{case}.diff", "\n".join(shown))
