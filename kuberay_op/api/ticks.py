"""The moments at which a schedule fires.

A schedule matches what a clock on the wall shows, so it fires at every moment at which the clock of its zone
shows a matching minute: never at a time that is left out when clocks go forward, twice at one that is
repeated when they go back. That is the rule of the reference. cronsim finds the matching minutes; its own
rules for zones are those of Debian's cron, so it is asked about a clock without a zone, and what such a
minute means in the zone is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from typing import Final

from cronsim import CronSim

from kuberay_op.api.cron import Every, Fields

_SECOND: Final = timedelta(seconds=1)
_NOTHING: Final = timedelta()


@dataclass(frozen=True, slots=True)
class Ticks:
    """When a schedule fires in a zone. Times go in with any zone and come out in UTC."""

    schedule: Fields | Every
    zone: tzinfo

    def next_after(self, base: datetime) -> datetime | None:
        """The first tick later than ``base``; None when there is none in fifty years."""
        if isinstance(self.schedule, Every):
            return _whole(base) + timedelta(seconds=self.schedule.seconds)
        wall, fold = self._wall(base)
        # In the hour before clocks go back, what the clock has shown already is still to come once more.
        repeated = self._repeated(wall) if fold == 0 else _NOTHING
        found: list[datetime] = []
        for minute in _minutes(self.schedule, wall - repeated):
            found += [moment for moment in self._moments(minute) if moment > base]
            if found and minute > wall:
                break
        return min(found, default=None)

    def last_between(self, base: datetime, now: datetime) -> datetime | None:
        """The last tick later than ``base`` and not later than ``now``."""
        if isinstance(self.schedule, Every):
            every = timedelta(seconds=self.schedule.seconds)
            count = (now - _whole(base)) // every
            return _whole(base) + count * every if count > 0 else None
        wall, fold = self._wall(now)
        # In the hour after clocks went back, what the clock has not shown yet has been once already.
        repeated = self._repeated(wall) if fold == 1 else _NOTHING
        found: list[datetime] = []
        end = wall.replace(microsecond=0) + repeated + _SECOND
        for minute in _minutes(self.schedule, end, reverse=True):
            found += [moment for moment in self._moments(minute) if moment <= now]
            if found and minute <= wall:
                break
        last = max(found, default=None)
        return last if last is not None and last > base else None

    def count_between(self, base: datetime, now: datetime, *, most: int) -> int:
        """How many ticks are later than ``base`` and not later than ``now``; counts to ``most``."""
        return sum(1 for _ in islice(self._each(base, now), most))

    def _each(self, base: datetime, now: datetime) -> Iterator[datetime]:
        tick = self.next_after(base)
        while tick is not None and tick <= now:
            yield tick
            tick = self.next_after(tick)

    def _wall(self, moment: datetime) -> tuple[datetime, int]:
        local = moment.astimezone(self.zone)
        return local.replace(tzinfo=None, fold=0), local.fold

    def _repeated(self, wall: datetime) -> timedelta:
        """How far clocks go back if ``wall`` is a time that they show twice, else nothing."""
        first, second = (wall.replace(tzinfo=self.zone, fold=fold).utcoffset() for fold in (0, 1))
        return max(_NOTHING, (first or _NOTHING) - (second or _NOTHING))

    def _moments(self, wall: datetime) -> list[datetime]:
        """When the clock of the zone shows this: once, twice, or never."""
        both = {wall.replace(tzinfo=self.zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
        return [moment for moment in both if self._wall(moment)[0] == wall]


def _minutes(fields: Fields, wall: datetime, *, reverse: bool = False) -> Iterator[datetime]:
    """The matching minutes of a clock without a zone, after ``wall`` or before it."""
    if not fields.can_match():
        return iter(())
    # The grammars have lists and the plain star in common. A day field that matches nothing leaves the days
    # to the other one, which is what a star does.
    days_of_month = "*" if fields.any_day_of_month else _listed(fields.days_of_month)
    days_of_week = "*" if fields.any_day_of_week else _listed(fields.days_of_week)
    parts = (
        "*" if len(fields.minutes) == 60 else _listed(fields.minutes),
        _listed(fields.hours),
        days_of_month or "*",
        _listed(fields.months),
        days_of_week or "*",
    )
    return iter(CronSim(" ".join(parts), wall, reverse=reverse))


def _listed(values: frozenset[int]) -> str:
    return ",".join(map(str, sorted(values)))


def _whole(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(microsecond=0)
