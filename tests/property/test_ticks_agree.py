"""When a schedule fires: what the reference's cron library says, and what a clock on the wall says."""

from __future__ import annotations

import importlib.resources
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest

from kuberay_op.api.cron import Every, Fields, parse_schedule
from kuberay_op.api.ticks import Ticks
from tests.property.schedules import schedule

Oracle = Callable[[str, Sequence[Sequence[str]]], list[dict[str, Any]]]

COUNT: Final = 10_000
#: Next times of each schedule that are compared.
TIMES: Final = 3

#: Zones whose clocks change by whole hours and not at midnight, or not at all.
ZONES: Final = (
    "UTC",
    "America/New_York",
    "America/St_Johns",
    "Europe/Berlin",
    "Europe/London",
    "Africa/Casablanca",
    "Asia/Kolkata",
    "Asia/Taipei",
    "Australia/Adelaide",
    "Pacific/Auckland",
    "Pacific/Chatham",
)
#: Zones where midnight itself is left out, or clocks change by half an hour: there the reference loses ticks.
ODD_ZONES: Final = (
    "Africa/Cairo",
    "America/Havana",
    "America/Santiago",
    "Asia/Beirut",
    "Australia/Lord_Howe",
)

FIRST: Final = datetime(2020, 1, 1, tzinfo=UTC)
DAYS: Final = 15 * 365

TZDATA: Final = importlib.resources.files("tzdata") / "zoneinfo"


def zone(name: str) -> ZoneInfo:
    """The zone from the same files that the oracle is given."""
    with TZDATA.joinpath(name).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@cache
def changes(name: str) -> list[datetime]:
    """Days of 2020 to 2034 on which the clocks of a zone change."""
    where = zone(name)
    days = [FIRST + timedelta(days=number) for number in range(DAYS)]
    offsets = [day.astimezone(where).utcoffset() for day in days]
    return [day for day, before, after in zip(days, offsets, offsets[1:], strict=False) if before != after]


def some_moment(rng: random.Random, name: str) -> datetime:
    """A moment in 2020 to 2034, half of the time shortly before or after clocks change."""
    if changes(name) and rng.random() < 0.5:
        return rng.choice(changes(name)) + timedelta(seconds=rng.randrange(-3600, 90000))
    return FIRST + timedelta(seconds=rng.randrange(DAYS * 86400))


def accepted(rng: random.Random, count: int) -> list[tuple[str, Fields | Every]]:
    """So many schedules that are right and can match."""
    found: list[tuple[str, Fields | Every]] = []
    while len(found) < count:
        text = schedule(rng)
        try:
            parsed = parse_schedule(text)
        except ValueError:
            continue
        if isinstance(parsed, Every) or parsed.can_match():
            found.append((text, parsed))
    return found


def asked(
    oracle: Oracle, monkeypatch: pytest.MonkeyPatch, zones: Sequence[str], seed: int, count: int
) -> list[tuple[str, str, datetime, Ticks, list[datetime]]]:
    """Schedules, each with a zone, a base and the next times that the reference's library gives."""
    monkeypatch.setenv("ZONEINFO", str(TZDATA))
    rng = random.Random(seed)  # noqa: S311 - seeded on purpose
    loaded = {name: zone(name) for name in zones}
    cases = []
    for text, parsed in accepted(rng, count):
        name = rng.choice(zones)
        cases.append((text, name, some_moment(rng, name), Ticks(parsed, loaded[name])))
    inputs = [[text, name, str(int(base.timestamp())), str(TIMES)] for text, name, base, _ in cases]
    answers = oracle("next", inputs)
    assert all(answer["ok"] for answer in answers)
    return [
        (text, name, base, ticks, [datetime.fromtimestamp(second, UTC) for second in answer["times"]])
        for (text, name, base, ticks), answer in zip(cases, answers, strict=True)
    ]


def following(ticks: Ticks, base: datetime, count: int) -> list[datetime]:
    times: list[datetime] = []
    while len(times) < count and (tick := ticks.next_after(times[-1] if times else base)) is not None:
        times.append(tick)
    return times


def test_next_times(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = asked(oracle, monkeypatch, ZONES, 20260811, COUNT)
    wrong = [
        (text, name, base.isoformat(), [tick.isoformat() for tick in ours], [t.isoformat() for t in theirs])
        for text, name, base, ticks, theirs in cases
        if (ours := following(ticks, base, TIMES)) != theirs
    ]
    assert wrong == []


def test_odd_zones(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the reference errs it is because of a change of clocks; otherwise all times are the same."""
    differ = 0
    for text, name, base, ticks, theirs in asked(oracle, monkeypatch, ODD_ZONES, 20260812, COUNT // 5):
        ours = following(ticks, base, TIMES)
        if ours != theirs:
            differ += 1
            since, until = base - timedelta(days=2), max(*ours, *theirs)
            assert any(since <= day <= until for day in changes(name)), (text, name, base, ours, theirs)
    assert 0 < differ < COUNT // 100


def test_every_minute_that_matches_and_no_other() -> None:
    """Minute by minute over a change of clocks, without any cron library."""
    rng = random.Random(20260813)  # noqa: S311 - seeded on purpose
    texts = [pair for pair in accepted(rng, 300) if isinstance(pair[1], Fields)][:80]
    for text, parsed in texts:
        assert isinstance(parsed, Fields)
        name = rng.choice((*ZONES[1:], *ODD_ZONES))
        where = zone(name)
        base = some_moment(rng, name).replace(second=rng.choice((0, 0, 17)))
        end = base + timedelta(hours=30)
        whole = base.replace(second=0)
        minutes = (whole + timedelta(minutes=n) for n in range(1, 30 * 60 + 1))
        expected = [m for m in minutes if base < m <= end and matches(parsed, m.astimezone(where))]
        ticks = Ticks(parsed, where)
        found = [tick for tick in following(ticks, base, len(expected) + 1) if tick <= end]
        assert found == expected, (text, name, base)
        assert ticks.last_between(base, end) == (expected[-1] if expected else None), (text, name, base)
        assert ticks.count_between(base, end, most=10_000) == len(expected)
        for moment in rng.sample(expected, min(3, len(expected))):
            assert ticks.last_between(base, moment) == moment
            assert ticks.last_between(moment, moment) is None


def matches(fields: Fields, local: datetime) -> bool:
    by_month = local.day in fields.days_of_month
    by_week = local.isoweekday() % 7 in fields.days_of_week
    either = not (fields.any_day_of_month or fields.any_day_of_week)
    return (
        local.minute in fields.minutes
        and local.hour in fields.hours
        and local.month in fields.months
        and ((by_month or by_week) if either else (by_month and by_week))
    )
