"""Durations in Go's notation (``1h30m``, ``1.5s``), which annotations and ``@every`` schedules use."""

from __future__ import annotations

import re
from typing import Final

#: Nanoseconds of each unit; both Unicode spellings of the micro sign are accepted.
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_LIMIT: Final = 2**63

#: Nanoseconds in a second.
SECOND: Final = _UNITS["s"]


def parse_duration(text: str) -> int:
    """Nanoseconds of a duration such as ``-1.5h``, ``1h30m`` or a bare ``0``; ValueError otherwise."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    total, position = 0, 0
    while position < len(rest):
        match = _PART.match(rest, position)
        if match is None or not (match[1] or match[2]) or len(match[1]) > 40:
            break
        unit = _UNITS[match[3]]
        total += int(match[1] or "0") * unit
        if match[2]:
            digits = match[2][:18]  # beyond this no digit can reach a nanosecond
            total += int(digits) * unit // 10 ** len(digits)
        position = match.end()
    # Go's range is one larger on the negative side.
    if not rest or position < len(rest) or total > _LIMIT or (sign > 0 and total == _LIMIT):
        raise ValueError(f"{text!r} is not a duration; write it like 90s, 15m or 1h30m")
    return sign * total
