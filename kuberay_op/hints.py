"""The nearest known name, for messages about misspelt ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like ``name``, or None when none is; capitals and dashes do not count."""
    by_letters = {_letters(candidate): candidate for candidate in known}
    near = difflib.get_close_matches(_letters(name), by_letters, n=1)
    return by_letters[near[0]] if near else None


def _letters(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
