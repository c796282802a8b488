"""When a RayCronJob makes a RayJob: clocks that change, jump and stand still, and jobs in the way."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kuberay_op.api.raycronjob import RayCronJob
from kuberay_op.build.cronjob import scheduled_rayjob, timestamp
from kuberay_op.controllers.raycronjob.decide import COUNTED, decide, seconds_to_next
from kuberay_op.controllers.raycronjob.runs import Runs
from kuberay_op.testing import make
from kuberay_op.testing.clock import FakeClock

Json = dict[str, Any]

#: The example of the contract (03 §14.3).
MIDNIGHT = datetime(2024, 1, 1, tzinfo=UTC)


def cron(made: datetime = MIDNIGHT, last: datetime | None = None, **spec: Any) -> RayCronJob:
    """A RayCronJob that was made then and has last run then."""
    obj = make.raycronjob("test-cronjob", make.spec(**{"schedule": "*/5 * * * *", **spec}))
    obj["metadata"] |= {"uid": "u", "namespace": "ns", "creationTimestamp": timestamp(made)}
    if last is not None:
        obj["status"] = {"lastScheduleTime": timestamp(last)}
    return RayCronJob(obj)


def job(number: int, state: str = "Running", status: str = "RUNNING", **metadata: Any) -> Json:
    """The RayJob for the so-manieth time after midnight."""
    obj = scheduled_rayjob(cron(), MIDNIGHT + timedelta(minutes=5 * number))
    obj["metadata"] |= metadata
    obj["status"] = {"jobDeploymentStatus": state, "jobStatus": status}
    return obj


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# --- the arithmetic of one time (03 §14.3, §16 case 15)


def test_one_time_and_the_way_to_the_next() -> None:
    now = MIDNIGHT + timedelta(minutes=5, seconds=30)
    decision = decide(cron(), Runs(), now)
    assert decision.make
    assert decision.tick == MIDNIGHT + timedelta(minutes=5)
    assert decision.name == "test-cronjob-28401125"
    assert decision.missed == 0
    assert seconds_to_next(cron(), now) == 270


def test_before_its_time_nothing_is_made() -> None:
    assert decide(cron(), Runs(), MIDNIGHT + timedelta(minutes=4, seconds=59.9)).tick is None
    assert seconds_to_next(cron(), MIDNIGHT + timedelta(minutes=4)) == 60


def test_on_the_second_it_is_made() -> None:
    assert decide(cron(), Runs(), MIDNIGHT + timedelta(minutes=5)).make


def test_the_time_of_the_last_run_counts_not_that_of_the_pass() -> None:
    seen = cron(last=MIDNIGHT + timedelta(minutes=5))
    assert decide(seen, Runs(), MIDNIGHT + timedelta(minutes=9, seconds=59)).tick is None
    assert decide(seen, Runs(), MIDNIGHT + timedelta(minutes=10)).name == "test-cronjob-28401130"


def test_a_run_that_is_there_is_not_made_again_though_the_status_is_stale() -> None:
    decision = decide(cron(), Runs.of([job(1)]), MIDNIGHT + timedelta(minutes=6))
    assert decision.tick == MIDNIGHT + timedelta(minutes=5)
    assert not decision.make


def test_suspended_makes_nothing_and_is_not_due() -> None:
    seen = cron(suspend=True)
    assert decide(seen, Runs(), MIDNIGHT + timedelta(hours=1)).tick is None
    assert seconds_to_next(seen, MIDNIGHT) is None


def test_less_than_a_minute_apart_makes_one_a_minute() -> None:
    made = cron(schedule="@every 20s")
    first = decide(made, Runs(), MIDNIGHT + timedelta(seconds=21))
    assert (first.make, first.name) == (True, "test-cronjob-28401120")
    child = scheduled_rayjob(made, MIDNIGHT + timedelta(seconds=20))
    assert not decide(made, Runs.of([child]), MIDNIGHT + timedelta(seconds=41)).make
    assert decide(made, Runs.of([child]), MIDNIGHT + timedelta(seconds=61)).make
    assert seconds_to_next(made, MIDNIGHT + timedelta(seconds=50)) == 10


# --- clocks


def with_schedule(schedule: str, zone: str, made: datetime) -> RayCronJob:
    return cron(made, schedule=schedule, timeZone=zone)


def story(seen: RayCronJob, clock: FakeClock, seconds: Iterable[float]) -> list[str]:
    """Let the clock go on step by step as the controller would, and list what is made in the zone's time."""
    made: list[str] = []
    for step in seconds:
        clock.skip(step)
        decision = decide(seen, Runs(), clock.now())
        if decision.make and decision.tick is not None:
            made.append(timestamp(decision.tick))
            seen.raw["status"] = {"lastScheduleTime": timestamp(decision.tick)}
    return made


@pytest.mark.parametrize(
    ("zone", "schedule", "start", "hours", "expected"),
    [
        # Clocks go forward: a time that is left out is skipped.
        ("America/New_York", "30 2 * * *", "2024-03-09T12:00:00", 48, ["2024-03-11T06:30:00Z"]),
        ("Europe/Berlin", "30 2 * * *", "2024-03-30T12:00:00", 48, ["2024-04-01T00:30:00Z"]),
        ("Australia/Sydney", "30 2 * * *", "2024-10-05T00:00:00", 40, ["2024-10-06T15:30:00Z"]),
        # Clocks go back: a time that is repeated comes twice.
        ("America/New_York", "30 1 * * *", "2024-11-02T12:00:00", 24,
         ["2024-11-03T05:30:00Z", "2024-11-03T06:30:00Z"]),
        ("Europe/London", "15 1 * * *", "2024-10-26T12:00:00", 24,
         ["2024-10-27T00:15:00Z", "2024-10-27T01:15:00Z"]),
        # Every hour is every hour, whatever the clock shows.
        ("Europe/Berlin", "0 * * * *", "2024-10-26T23:30:00", 4,
         ["2024-10-27T00:00:00Z", "2024-10-27T01:00:00Z", "2024-10-27T02:00:00Z", "2024-10-27T03:00:00Z"]),
        ("Europe/Berlin", "0 * * * *", "2024-03-30T23:30:00", 3,
         ["2024-03-31T00:00:00Z", "2024-03-31T01:00:00Z", "2024-03-31T02:00:00Z"]),
        # Half hours and no changes at all.
        ("Australia/Adelaide", "0 3 * * *", "2024-10-05T12:00:00", 24, ["2024-10-05T16:30:00Z"]),
        ("Asia/Taipei", "45 21 * * *", "2024-01-01T00:00:00", 24, ["2024-01-01T13:45:00Z"]),
        # Midnight itself is left out; the day goes on at one.
        ("Africa/Cairo", "30 * 26 4 *", "2024-04-25T21:00:00", 3,
         ["2024-04-25T22:30:00Z", "2024-04-25T23:30:00Z"]),
        # The leap day.
        ("UTC", "0 0 29 2 *", "2024-02-28T12:00:00", 24, ["2024-02-29T00:00:00Z"]),
        ("UTC", "0 0 * 2 *", "2023-02-27T12:00:00", 72, ["2023-02-28T00:00:00Z"]),
    ],
)  # fmt: skip
def test_changes_of_clocks(zone: str, schedule: str, start: str, hours: int, expected: list[str]) -> None:
    clock = FakeClock(at(start))
    seen = with_schedule(schedule, zone, clock.now())
    assert story(seen, clock, [60.0] * (60 * hours)) == expected


def test_the_next_leap_day_is_years_ahead() -> None:
    seen = with_schedule("0 0 29 2 *", "UTC", at("2024-03-01T00:00:00"))
    assert (
        seconds_to_next(seen, at("2024-03-01T00:00:00"))
        == (at("2028-02-29T00:00:00") - at("2024-03-01T00:00:00")).total_seconds()
    )


def test_an_absence_of_a_hundred_times_ends_with_one_run() -> None:
    clock = FakeClock(MIDNIGHT)
    seen = cron()
    clock.skip(100 * 300 + 10)
    decision = decide(seen, Runs(), clock.now())
    assert decision.make
    assert decision.tick == MIDNIGHT + timedelta(minutes=500)
    assert decision.missed == 99
    assert story(seen, clock, [0.0] * 5) == [timestamp(MIDNIGHT + timedelta(minutes=500))]


def test_an_absence_of_a_year_is_not_counted_to_its_end() -> None:
    decision = decide(cron(), Runs(), MIDNIGHT + timedelta(days=365))
    assert decision.make
    assert decision.missed == COUNTED


def test_a_clock_that_jumps_back_runs_nothing_twice() -> None:
    clock = FakeClock(MIDNIGHT)
    seen = cron()
    assert story(seen, clock, [300.0, 300.0]) == ["2024-01-01T00:05:00Z", "2024-01-01T00:10:00Z"]
    clock.shift_wall(-600)
    assert story(seen, clock, [60.0] * 10) == []
    assert seconds_to_next(seen, clock.now()) == 300
    assert story(seen, clock, [60.0] * 6) == ["2024-01-01T00:15:00Z"]


def test_a_clock_that_jumps_forward_runs_the_last_time_only() -> None:
    clock = FakeClock(MIDNIGHT)
    seen = cron()
    clock.shift_wall(3600)
    assert story(seen, clock, [1.0, 1.0]) == ["2024-01-01T01:00:00Z"]


# --- deadlines


def test_too_late_is_not_run() -> None:
    seen = cron(startingDeadlineSeconds=60)
    on_time = decide(seen, Runs(), MIDNIGHT + timedelta(minutes=6))
    late = decide(seen, Runs(), MIDNIGHT + timedelta(minutes=6, seconds=1))
    assert (on_time.make, on_time.late) == (True, False)
    assert (late.make, late.late) == (False, True)
    assert seconds_to_next(seen, MIDNIGHT + timedelta(minutes=6, seconds=1)) == 239


# --- concurrency


@pytest.mark.parametrize(
    ("policy", "make_it", "waits", "replaces"),
    [
        ("", True, [], []),
        ("Allow", True, [], []),
        ("Forbid", False, ["test-cronjob-28401125"], []),
        ("Replace", True, [], ["test-cronjob-28401125"]),
    ],
)
def test_a_job_that_has_not_finished(
    policy: str, make_it: bool, waits: list[str], replaces: list[str]
) -> None:
    policies: Json = {"concurrencyPolicy": policy} if policy else {}
    seen = cron(last=MIDNIGHT + timedelta(minutes=5), **policies)
    decision = decide(seen, Runs.of([job(1)]), MIDNIGHT + timedelta(minutes=10))
    assert decision.make is make_it
    assert [each.name for each in decision.waits_for] == waits
    assert [each.name for each in decision.replaces] == replaces


@pytest.mark.parametrize("state", ["Complete", "Failed", "ValidationFailed"])
def test_a_job_that_has_finished_is_in_nobodys_way(state: str) -> None:
    seen = cron(last=MIDNIGHT + timedelta(minutes=5), concurrencyPolicy="Forbid")
    assert decide(seen, Runs.of([job(1, state)]), MIDNIGHT + timedelta(minutes=10)).make


@pytest.mark.parametrize("state", ["", "Initializing", "Waiting", "Running", "Suspended", "Retrying"])
def test_a_job_that_may_still_run_is_in_the_way(state: str) -> None:
    seen = cron(last=MIDNIGHT + timedelta(minutes=5), concurrencyPolicy="Forbid")
    assert decide(seen, Runs.of([job(1, state)]), MIDNIGHT + timedelta(minutes=10)).waits_for


def test_a_job_on_its_way_out_is_in_the_way_but_not_deleted_again() -> None:
    going = job(1, deletionTimestamp="2024-01-01T00:09:00Z")
    for policy in ("Forbid", "Replace"):
        seen = cron(last=MIDNIGHT + timedelta(minutes=5), concurrencyPolicy=policy)
        decision = decide(seen, Runs.of([going]), MIDNIGHT + timedelta(minutes=10))
        assert decision.replaces == ()
        assert decision.make is (policy == "Replace")


# --- history


def names(jobs: Iterable[Any]) -> list[str]:
    return [str(each.name).removeprefix("test-cronjob-284011") for each in jobs]


@pytest.mark.parametrize(
    ("limits", "gone"),
    [
        ({}, []),
        ({"successfulJobsHistoryLimit": 3}, []),
        ({"successfulJobsHistoryLimit": 1}, ["25", "40"]),
        ({"successfulJobsHistoryLimit": 0}, ["25", "40", "45"]),
        ({"failedJobsHistoryLimit": 1}, ["30"]),
        ({"failedJobsHistoryLimit": 0}, ["30", "35"]),
    ],
)
def test_history(limits: Json, gone: list[str]) -> None:
    jobs = [
        job(5, "Complete", "SUCCEEDED"),
        job(4, "Complete", "SUCCEEDED"),
        job(3, "Complete", "STOPPED"),
        job(2, "Failed", "FAILED"),
        job(1, "Complete", "SUCCEEDED"),
        job(6),
    ]
    assert names(Runs.of(jobs).beyond(cron(**limits).spec)) == gone


def test_history_leaves_alone_what_is_going() -> None:
    going = job(1, "Complete", "SUCCEEDED", deletionTimestamp="2024-01-01T00:09:00Z")
    assert Runs.of([going]).beyond(cron(successfulJobsHistoryLimit=0).spec) == ()
