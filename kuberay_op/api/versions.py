"""Ray versions as users write them: two or more numbers, then any text."""

from __future__ import annotations

import re
from typing import Final

#: The numbers of a version without zeros at the end: 2.9 < 2.52, and 2.52 equals 2.52.0.
Version = tuple[int, ...]

_VERSION: Final = re.compile(r"[\t\n\f\r ]*v?([0-9]+(?:\.[0-9]+)+)[^\n]*", re.ASCII)
_MAX_PART: Final = 2**64 - 1


def parse_version(text: str) -> Version:
    """Read ``2.52.0``, ``v2.52.0`` or ``2.52.0rc1`` (the text after the numbers is ignored).

    ``nightly``, ``3`` and ``02.1`` are no versions: ValueError.
    """
    match = _VERSION.fullmatch(text)
    numbers = match[1].split(".") if match else ["00"]
    sane = (numbers[0] == "0" or numbers[0][0] != "0") and len(max(numbers, key=len)) <= 200
    parts = [int(number) for number in numbers] if sane else [_MAX_PART + 1]
    if max(parts) > _MAX_PART:
        raise ValueError(f"{text!r} is not a version; write it like 2.52.0")
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)
