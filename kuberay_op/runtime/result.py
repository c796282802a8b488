"""What a pass over one object comes to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Result:
    """A pass that went well: whether, and when, to look at the object again without being asked.

    Made by ``done``, ``after``, ``forget`` and ``soonest``. A pass that did not go well raises instead.
    """

    seconds: float | None = None
    is_gone: bool = False
    summary: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def done(cls) -> Result:
        """All is as it should be; wait for the next event."""
        return cls()

    @classmethod
    def after(cls, seconds: float) -> Result:
        """Look again after so many seconds, or at the next event if that comes first."""
        return cls(seconds=max(0.0, seconds))

    @classmethod
    def forget(cls) -> Result:
        """The object is gone; drop everything remembered about it."""
        return cls(is_gone=True)

    @classmethod
    def soonest(cls, results: Iterable[Result]) -> Result:
        """Of several steps, the one that wants to look again first; their summaries are put together."""
        everything = tuple(results)
        delays = [result.seconds for result in everything if result.seconds is not None]
        summary: dict[str, Any] = {}
        for result in everything:
            summary |= result.summary
        return cls(seconds=min(delays, default=None), summary=summary)

    def saying(self, **fields: Any) -> Result:
        """The same result with fields for the log line and ``/debug``: ``saying(created=2)``."""
        return replace(self, summary={**self.summary, **fields})
