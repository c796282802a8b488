"""Time zones by the names that users write."""

from __future__ import annotations

import os
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

#: Where a machine keeps its own zone.
LOCALTIME: Final = Path("/etc/localtime")


def find_zone(name: str) -> tzinfo:
    """The zone of that name; the operator's own for "" and ``Local``. ValueError when there is none."""
    if name in ("", "Local"):
        return local_zone()
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):  # a bad name, a folder, no such file
        raise ValueError(f"{name!r} is no time zone; write it like Europe/Berlin or UTC") from None


def local_zone(localtime: Path = LOCALTIME) -> tzinfo:
    """The zone of this process: what TZ names, else that of the machine, else UTC, as Go has it."""
    name = os.environ.get("TZ")
    try:
        if name is None:
            with localtime.open("rb") as file:
                return ZoneInfo.from_file(file, key="Local")
        if name := name.removeprefix(":"):
            return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        pass  # a machine without a zone keeps UTC
    return UTC
