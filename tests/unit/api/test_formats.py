"""Forms of text: each with texts that fit and texts that do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kuberay_op.api import formats

FORMS: list[tuple[Callable[[str], str | None], list[str], list[str]]] = [
    (
        formats.dns1035_label_problem,
        ["a", "a-1", "a" * 63],
        ["", "1a", "A", "a-", "-a", "a.b", "a_b", "a\n", "a" * 64, "ä"],
    ),
    (
        formats.dns1123_label_problem,
        ["a", "1a", "a-1", "a" * 63],
        ["", "A", "a-", "-a", "a.b", "a\n", "a" * 64],
    ),
    (
        formats.dns1123_subdomain_problem,
        ["a", "1.a", "a-1.b", "a" * 253],
        ["", "A", "a.", ".a", "a..b", "a-.b", "a\n", "a" * 254],
    ),
    (
        formats.qualified_name_problem,
        ["a", "A_b.c-d", "ray.io/x", "a" * 63, f"{'a' * 253}/{'b' * 63}"],
        ["", "/", "a/", "/a", "-a", "a-", "a b", "A.b/c", "a/b/c", "a" * 64, f"{'a' * 254}/b", "a\n"],
    ),
    (formats.label_value_problem, ["", "a", "A_b.c-d", "a" * 63], ["-a", "a b", "a/b", "a" * 64, "a\n"]),
]


@pytest.mark.parametrize(("problem", "good", "bad"), FORMS)
def test_forms(problem: Callable[[str], str | None], good: list[str], bad: list[str]) -> None:
    assert [text for text in good if problem(text)] == []
    assert [text for text in bad if not problem(text)] == []


def test_a_problem_names_the_text_and_what_is_allowed() -> None:
    assert formats.dns1035_label_problem("Trial") == (
        "'Trial' must be a DNS label: at most 63 lower-case letters, digits and '-', beginning with a letter "
        "and ending with a letter or digit"
    )
    assert (formats.qualified_name_problem("A.b/c") or "").startswith("in 'A.b/c' the prefix 'A.b' must be")
