"""The audit log's verdict can go both ways."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kuberay_op.testing.audit import Write, leaders_in_order

START = datetime(2030, 1, 1, tzinfo=UTC)


def write(user: str, resource: str, at: float, *, took: float = 0.1) -> Write:
    begin = START + timedelta(seconds=at)
    return Write(user, resource, "patch", begin, begin + timedelta(seconds=took))


def test_writers_that_take_turns_are_told_in_order() -> None:
    writes = [
        write("a", "leases", 0),
        write("a", "pods", 1),
        write("a", "leases", 2),
        write("b", "leases", 9),
        write("b", "pods", 10),
        write("a", "leases", 20),
        write("a", "pods", 21),
    ]
    assert leaders_in_order(writes) == ["a", "b", "a"]


@pytest.mark.parametrize(
    "stray",
    [write("a", "pods", 10), write("a", "pods", 8.95), write("b", "pods", 8), write("c", "pods", 1)],
    ids=["after the next leader began", "still under way then", "before its own term", "never leader"],
)
def test_a_write_outside_of_its_writers_term_fails(stray: Write) -> None:
    writes = [write("a", "leases", 0), write("b", "leases", 9), stray]
    with pytest.raises(AssertionError, match="is outside of its writer's terms"):
        leaders_in_order(sorted(writes, key=lambda each: each.received))
