"""Settings from environment variables, each by its own rule (``Reading``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from kuberay_op.config.settings import Reading, Setting


def read(setting: Setting, environ: Mapping[str, str]) -> tuple[Any, str | None]:
    """The value the setting's variable gives, or None; and a warning when it is set to no avail.

    The reference says nothing about a value it cannot use and goes on with the default; so do we, but with
    a warning.
    """
    text = environ.get(setting.env, "") if setting.env else ""
    if not text or setting.reading is None:
        return None, None
    parse, allowed = _READERS[setting.reading]
    value = parse(text)
    if value is None:
        return None, f"{setting.env} is {text!r} and is ignored; allowed is {allowed}"
    return value, None


def _exact(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text)


def _any_case(text: str) -> bool | None:
    return _exact(text.lower())


def _seconds(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else None


def _positive_seconds(text: str) -> int | None:
    number = _seconds(text)
    return number if number is not None and number > 0 else None


_READERS: Final[Mapping[Reading, tuple[Callable[[str], Any], str]]] = {
    Reading.EXACTLY_TRUE: (_exact, "true, in small letters"),
    Reading.TRUE: (_any_case, "true or false"),
    Reading.FALSE: (_any_case, "true or false"),
    Reading.TEXT: (str, "any text"),
    Reading.SECONDS: (_seconds, "a whole number"),
    Reading.POSITIVE_SECONDS: (_positive_seconds, "a whole number above 0"),
}
