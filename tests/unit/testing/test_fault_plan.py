"""The deciding half of the fault proxy: same seed, same fate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from kuberay_op.testing.fault_plan import (
    BAD_DAY,
    EVENT_FAULTS,
    STREAM_ENDS,
    Call,
    ExactPlan,
    Fault,
    FaultPlan,
    Plan,
    Strike,
)

WATCH = Call("watch", "pods")
LIST = Call("list", "pods")
PATCH = Call("patch", "pods/status")


def play(plan: Plan, calls: Iterable[Call], events: int = 40) -> list[Strike]:
    """Let the calls happen; a watch runs until a fault ends it or the events are over."""
    for call in calls:
        script = plan.script(call)
        if call.verb == "watch" and script.fault is None:
            for event in range(events):
                if script.at(event) in STREAM_ENDS:
                    break
    return list(plan.log)


def test_a_plan_without_orders_lets_everything_pass() -> None:
    assert play(Plan(), [WATCH, LIST, PATCH] * 50) == []


def test_the_same_seed_gives_the_same_faults_and_another_seed_others() -> None:
    calls = [WATCH, LIST, PATCH] * 100
    first = play(FaultPlan(seed=7), calls)
    assert first
    assert play(FaultPlan(seed=7), calls) == first
    assert play(FaultPlan(seed=8), calls) != first


def test_interleaving_does_not_change_what_a_call_meets() -> None:
    one = play(FaultPlan(seed=7), [LIST] * 50 + [PATCH] * 50)
    other = play(FaultPlan(seed=7), [PATCH, LIST] * 50)
    assert Counter(one) == Counter(other)


def test_the_log_of_a_run_replays_it() -> None:
    calls = [WATCH, LIST, PATCH] * 60
    log = play(FaultPlan(seed=3), calls)
    assert play(ExactPlan(*log), calls) == log


def test_every_fault_of_a_bad_day_happens_about_as_often_as_its_rate_says() -> None:
    plan = FaultPlan(seed=1)
    play(plan, [LIST, PATCH, WATCH] * 2000)
    assert set(plan.strikes) == set(Fault)
    assert plan.strikes[Fault.CONFLICT] == pytest.approx(2000 * BAD_DAY[Fault.CONFLICT], rel=0.4)
    assert plan.strikes[Fault.THROTTLE] == pytest.approx(6000 * BAD_DAY[Fault.THROTTLE], rel=0.4)


@pytest.mark.parametrize(
    ("call", "never"),
    [
        (LIST, {Fault.CONFLICT, Fault.GONE, *STREAM_ENDS, *EVENT_FAULTS}),
        (PATCH, {Fault.GONE, *STREAM_ENDS, *EVENT_FAULTS}),
        (WATCH, {Fault.CONFLICT, Fault.TRUNCATE, Fault.RESET_AFTER, Fault.RESET_BODY}),
    ],
)
def test_a_call_meets_only_faults_a_real_server_could_show(call: Call, never: set[Fault]) -> None:
    assert not never & call.faults
    always = dict.fromkeys(never, 1.0)
    assert FaultPlan(seed=1, rates=always).script(call).fault is None


def test_a_further_page_of_a_list_can_be_gone() -> None:
    plan = FaultPlan(seed=1, rates={Fault.GONE: 1.0})
    assert plan.script(Call("list", "pods", paging=True)).fault is Fault.GONE


def test_a_stream_breaks_at_any_event() -> None:
    plan = FaultPlan(seed=1, rates={Fault.SILENCE: 0.1})
    firsts = set()
    for _ in range(200):
        script = plan.script(WATCH)
        firsts.add(next((event for event in range(200) if script.at(event)), None))
    assert {0, 1, 2, 3, 4, 5} < firsts


def test_a_rate_outside_its_bounds_is_refused() -> None:
    with pytest.raises(ValueError, match="the rate of hang is 2; it must be between 0 and 1"):
        FaultPlan(seed=1, rates={Fault.HANG: 2})


def test_a_strike_reads_like_a_sentence() -> None:
    assert str(Strike("watch pods", 3, Fault.CUT_EVENT, 7)) == "watch pods #3: cut-event at event 7"
    assert str(Strike("patch pods", 1, Fault.CONFLICT)) == "patch pods #1: conflict"
