"""How the output of the reference's suites is read, and the page that is made of it."""

from __future__ import annotations

from tests.upstream import page
from tests.upstream.suites import Verdict, verdicts

OUTPUT = """\
=== RUN   TestRayJob
    --- PASS: TestRayJob/Successful_RayJob (61.20s)
    --- FAIL: TestRayJob/Failing_RayJob (12.00s)
--- FAIL: TestRayJob (73.21s)
FAIL
"""


def test_a_test_and_its_parts() -> None:
    assert list(verdicts("e2erayjob", "TestRayJob", OUTPUT)) == [
        Verdict("e2erayjob", "TestRayJob/Successful_RayJob", "PASS", 61.2),
        Verdict("e2erayjob", "TestRayJob/Failing_RayJob", "FAIL", 12.0),
        Verdict("e2erayjob", "TestRayJob", "FAIL", 73.21),
    ]


def test_one_that_says_nothing_has_failed() -> None:
    assert list(verdicts("e2e", "TestA", "panic: out of memory\n")) == [Verdict("e2e", "TestA", "FAIL", 0.0)]


def test_the_page_puts_both_side_by_side() -> None:
    passed = {"outcome": "PASS", "seconds": 61.2, "when": "today"}
    failed = {"outcome": "FAIL", "seconds": 5.0, "when": "today"}
    text = page.text({"e2e/TestA": passed}, {"e2e/TestA": failed, "e2erayjob/TestB": passed})
    assert "| `e2e/TestA` | passed, 61 s (today) | **failed**, 5 s (today) |" in text
    assert "| `e2erayjob/TestB` | not run | passed, 61 s (today) |" in text
