"""``docs/conformance.md``: what the reference's own suites say about ours, beside what they say about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import yaml

from tests.upstream.suites import SUITES, table

PAGE: Final = Path(__file__).parents[2] / "docs" / "conformance.md"
EXCLUDED: Final = Path(__file__).with_name("excluded.yaml")

_TEXT: Final = """\
<!-- Made by `python -m tests.upstream --page` from tests/upstream/results. -->

# The reference's own suites

KubeRay's published Go module (1.6.2) has end-to-end suites. They are compiled as they are and run against
this operator on a real node with real Ray (`make conformance`), and against the reference itself on the same
machine.

{table}

## Left out

{left_out}
"""


def write(results: Path) -> None:
    """Write the page from the result files."""
    PAGE.write_text(text(_read(results / "ours.json"), _read(results / "reference.json")))


def text(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """The page."""
    order = {suite: number for number, suite in enumerate(SUITES)}
    names = sorted({*ours, *theirs}, key=lambda name: (order.get(name.partition("/")[0], 99), name))
    rows = [[f"`{name}`", _cell(ours.get(name)), _cell(theirs.get(name))] for name in names]
    left_out = [[f"`{entry['test']}`", entry["reason"]] for entry in yaml.safe_load(EXCLUDED.read_text())]
    return _TEXT.format(
        table=table(rows, ["test", "this operator", "the reference"]),
        left_out=table(left_out, ["test", "why"]),
    )


def _cell(verdict: dict[str, Any] | None) -> str:
    if verdict is None:
        return "not run"
    words = {"PASS": "passed", "FAIL": "**failed**", "SKIP": "skipped by itself"}
    return f"{words[verdict['outcome']]}, {verdict['seconds']:.0f} s ({verdict['when']})"


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found
