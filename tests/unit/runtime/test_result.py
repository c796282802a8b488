"""Results of a pass."""

from __future__ import annotations

from kuberay_op.runtime.result import Result


def test_the_soonest_wins_and_summaries_are_put_together() -> None:
    steps = [Result.done().saying(created=1), Result.after(30), Result.after(2).saying(waiting="head pod")]
    result = Result.soonest(steps)
    assert result.seconds == 2
    assert result.summary == {"created": 1, "waiting": "head pod"}


def test_nothing_to_wait_for_is_done() -> None:
    assert Result.soonest([]) == Result.done()
    assert Result.after(-1).seconds == 0
    assert Result.forget().is_gone
