"""What was refused is not tried again at every event, and not forgotten either."""

from __future__ import annotations

from random import Random

from kuberay_op.controllers.pauses import BACKOFF, Circumstances, Pauses
from kuberay_op.kube.errors import Forbidden, ServerError
from kuberay_op.kube.resource import Key
from kuberay_op.plan.actions import Action, Create, Delete, Outcome
from kuberay_op.testing.clock import FakeClock

KEY = Key("ns", "a")
NOW = Circumstances(generation=1, pods=3)
QUOTA = Forbidden("exceeded quota")


def make(lane: str, *after: str, whole: str = "", part: int = 0) -> Create:
    return Create({"kind": "Pod", "part": part}, "a test", lane=lane, after=after, whole=whole)


def refused(action: Action, error: Exception = QUOTA) -> Outcome:
    return Outcome(action, error=error)


def pauses() -> tuple[Pauses, FakeClock]:
    clock = FakeClock()
    return Pauses(clock=clock, rng=Random(1)), clock  # noqa: S311 (jitter)


def test_a_refused_lane_rests_and_its_failure_is_remembered() -> None:
    rest, clock = pauses()
    plan: list[Action] = [make("a"), make("a"), make("b"), Delete({}, "a test", lane="a")]
    assert rest.split(KEY, plan, NOW).plan == plan
    rest.learn(KEY, plan, [refused(plan[0])], NOW)
    split = rest.split(KEY, plan, NOW)
    assert split.plan == plan[2:], "only making rests"
    assert [(outcome.action, outcome.error) for outcome in split.resting] == [(plan[0], QUOTA)]
    assert 0.8 <= split.seconds <= 1.0
    clock.skip(1.0)
    assert rest.split(KEY, plan, NOW).plan == plan


def test_it_rests_longer_each_time_up_to_a_minute() -> None:
    rest, clock = pauses()
    action = make("a")
    waits = []
    for _ in range(10):
        rest.learn(KEY, [action], [refused(action)], NOW)
        waits.append(rest.split(KEY, [action], NOW).seconds)
        clock.skip(waits[-1])
    assert waits[:6] == sorted(waits[:6])
    assert waits[5] > 16
    assert max(waits) <= BACKOFF.cap
    rest.learn(KEY, [action], [Outcome(action)], NOW)
    assert len(rest) == 0
    rest.learn(KEY, [action], [refused(action)], NOW)
    assert rest.split(KEY, [action], NOW).seconds <= 1.0, "success starts it anew"


def test_half_a_success_is_a_refusal() -> None:
    rest, _ = pauses()
    first, second = make("a"), make("a")
    rest.learn(KEY, [first, second], [refused(first)], NOW)
    rest.learn(KEY, [first, second], [Outcome(first), refused(second)], NOW)
    assert rest.split(KEY, [first], NOW).seconds > 1.0


def test_better_circumstances_end_the_rest() -> None:
    rest, _ = pauses()
    plan: list[Action] = [make("a")]
    rest.learn(KEY, plan, [refused(plan[0])], NOW)
    assert rest.split(KEY, plan, Circumstances(generation=1, pods=3)).plan == []
    assert rest.split(KEY, plan, Circumstances(generation=1, pods=4)).plan == []
    assert rest.split(KEY, plan, Circumstances(generation=1, pods=2)).plan == plan, "a Pod less may be room"
    assert rest.split(KEY, plan, Circumstances(generation=2, pods=3)).plan == plan, "the user did something"


def test_lanes_that_need_a_resting_one_rest_with_it() -> None:
    rest, _ = pauses()
    plan: list[Action] = [make("head"), make("workers", "objects", "head"), make("other")]
    rest.learn(KEY, plan, [refused(plan[0])], NOW)
    split = rest.split(KEY, plan, NOW)
    assert split.plan == [plan[2]]
    assert len(split.resting) == 1, "only what was refused itself is told"
    assert rest.split(KEY, plan[1:], NOW).plan == plan[1:], "with the head there, workers need no longer wait"


def test_a_server_in_trouble_is_no_refusal() -> None:
    rest, _ = pauses()
    rest.learn(KEY, [make("a")], [refused(make("a"), ServerError("busy"))], NOW)
    assert len(rest) == 0


def test_objects_never_rest() -> None:
    rest, _ = pauses()
    rest.learn(KEY, [make("objects")], [refused(make("objects"))], NOW)
    assert len(rest) == 0


def test_other_clusters_do_not_rest_and_gone_ones_are_forgotten() -> None:
    rest, _ = pauses()
    plan: list[Action] = [make("a")]
    rest.learn(KEY, plan, [refused(plan[0])], NOW)
    assert rest.split(Key("ns", "b"), plan, NOW).plan == plan
    rest.forget(KEY)
    assert rest.split(KEY, plan, NOW).plan == plan


def test_a_lane_that_nobody_tries_again_is_forgotten() -> None:
    rest, clock = pauses()
    rest.learn(KEY, [make("a")], [refused(make("a"))], NOW)
    clock.skip(30)
    rest.learn(KEY, [], [], NOW)
    assert len(rest) == 1
    clock.skip(60)
    rest.learn(KEY, [], [], NOW)
    assert len(rest) == 0


def test_what_was_begun_and_refused_is_known_until_it_is_whole() -> None:
    rest, clock = pauses()
    parts = [make("a", whole=whole, part=part) for whole in ("x", "y", "z") for part in range(3)]
    done = [*map(Outcome, parts[:4]), refused(parts[4])]  # all of x, one of y, and no attempt at z
    rest.learn(KEY, parts, done, NOW)
    assert rest.begun(KEY) == {"y"}
    clock.skip(2)
    assert rest.begun(KEY) == {"y"}, "also when the rest is over"
    rest.learn(KEY, parts[4:], [refused(parts[4])], NOW)
    assert rest.begun(KEY) == {"y"}
    rest.learn(KEY, parts[4:], [*map(Outcome, parts[4:8]), refused(parts[8])], NOW)
    assert rest.begun(KEY) == {"z"}
    rest.learn(KEY, parts[8:], [Outcome(parts[8])], NOW)
    assert rest.begun(KEY) == frozenset()
    assert rest.begun(Key("ns", "b")) == frozenset()


def test_what_was_begun_is_known_however_late_it_is_tried_again() -> None:
    rest, clock = pauses()
    parts = [make("a", whole="x", part=part) for part in range(2)]
    rest.learn(KEY, parts, [Outcome(parts[0]), refused(parts[1])], NOW)
    clock.skip(1000)
    rest.learn(KEY, parts[1:], [refused(parts[1])], NOW)
    assert rest.begun(KEY) == {"x"}
