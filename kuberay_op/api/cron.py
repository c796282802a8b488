"""Cron schedules: the grammar of ``robfig/cron`` v3's standard parser, which the reference uses.

Five fields (minute, hour, day of month, month, day of week) or a descriptor (``@daily``, ``@every 90m``).
Its oddities are part of the contract and kept: ``?`` is ``*``, ``N/step`` runs from N to the field's end, 7
is no day of the week, ``*-9`` is ``*``, and a field of commas alone is accepted and never matches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kuberay_op.api.durations import SECOND, parse_duration

#: White space between fields: what Unicode calls so, without the separators Python's ``split`` adds.
_SPACE: Final = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_NUMBER: Final = re.compile(r"[+-]?0*[0-9]{1,19}", re.ASCII)
_INT64: Final = 2**63
_EVERY: Final = "@every "

#: The last day of months that have not 31, in a leap year.
_LONGEST: Final = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}


@dataclass(frozen=True, slots=True)
class Fields:
    """A schedule of five fields: it fires at each minute that they all match.

    Days are special: when neither day field has its star mark, one of the two suffices. The mark comes from
    ``*`` or ``?`` without a step (or with step 1).
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days_of_month: frozenset[int]
    months: frozenset[int]
    days_of_week: frozenset[int]
    any_day_of_month: bool
    any_day_of_week: bool

    def can_match(self) -> bool:
        """Whether there is such a time at all: the 30th of February never comes."""
        if not (self.minutes and self.hours and self.months):
            return False
        by_month = any(day <= _LONGEST.get(month, 31) for day in self.days_of_month for month in self.months)
        by_week = bool(self.days_of_week)
        either = not (self.any_day_of_month or self.any_day_of_week)
        return (by_month or by_week) if either else (by_month and by_week)


@dataclass(frozen=True, slots=True)
class Every:
    """A schedule that fires each so many seconds after the time it was last asked about."""

    seconds: int


@dataclass(frozen=True, slots=True)
class _Bounds:
    name: str
    low: int
    high: int
    names: Mapping[str, int] = field(default_factory=dict)


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MINUTE: Final = _Bounds("minute", 0, 59)
_HOUR: Final = _Bounds("hour", 0, 23)
_DAY_OF_MONTH: Final = _Bounds("day of month", 1, 31)
_MONTH: Final = _Bounds("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)})
_DAY_OF_WEEK: Final = _Bounds("day of week", 0, 6, {name: number for number, name in enumerate(_DAYS)})
_ALL: Final = (_MINUTE, _HOUR, _DAY_OF_MONTH, _MONTH, _DAY_OF_WEEK)

_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def parse_schedule(text: str) -> Fields | Every:
    """Read a schedule; ValueError says which part is wrong and what is allowed there."""
    if text.startswith(_EVERY):
        # Whole seconds, and at least one of them: the clock of the schedule is no finer.
        return Every(max(1, parse_duration(text[len(_EVERY) :]) // SECOND))
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise ValueError(f"no such descriptor; use one of {', '.join(_DESCRIPTORS)} or @every 1h30m")
        text = _DESCRIPTORS[text]
    parts = [part for part in _SPACE.split(text) if part]
    if len(parts) != len(_ALL):
        raise ValueError(
            f"it has {len(parts)} fields, not 5 (minute, hour, day of month, month, day of week)"
        )
    minute, hour, day, month, weekday = map(_field, parts, _ALL)
    return Fields(minute[0], hour[0], day[0], month[0], weekday[0], day[1], weekday[1])


def _field(text: str, bounds: _Bounds) -> tuple[frozenset[int], bool]:
    """The values a field matches, and whether it carries the star mark."""
    values: set[int] = set()
    star = False
    for item in filter(None, text.split(",")):
        found, marked = _range(item, bounds)
        values.update(found)
        star = star or marked
    return frozenset(values), star


def _range(item: str, bounds: _Bounds) -> tuple[range, bool]:
    span, *steps = item.split("/")
    ends = span.split("-")
    star = ends[0] in ("*", "?")
    if star:
        start, end = bounds.low, bounds.high
    else:
        start = _number(ends[0], bounds)
        end = start if len(ends) == 1 else _number(ends[1], bounds)
    if (len(ends) > 2 and not star) or len(steps) > 1:
        raise ValueError(f"{bounds.name} {item!r} has too many dashes or slashes; write it like 1-5/2")
    step = 1
    if steps:
        step = _number(steps[0], bounds, named=False)
        if len(ends) == 1:
            end = bounds.high
    if start < bounds.low or end > bounds.high:
        raise ValueError(f"{bounds.name} {item!r} is outside {bounds.low} to {bounds.high}")
    if start > end:
        raise ValueError(f"{bounds.name} {item!r} ends before it begins")
    if step < 1:
        raise ValueError(f"{bounds.name} {item!r} needs a step of 1 or more")
    return range(start, end + 1, step), star and step == 1


def _number(text: str, bounds: _Bounds, *, named: bool = True) -> int:
    if named and text.lower() in bounds.names:
        return bounds.names[text.lower()]
    if not _NUMBER.fullmatch(text) or not 0 <= int(text) < _INT64:
        names = f" or {next(iter(bounds.names))} …" if named and bounds.names else ""
        raise ValueError(f"{bounds.name} {text!r} is not a number{names}")
    return int(text)
