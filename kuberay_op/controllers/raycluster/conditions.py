"""Conditions as Kubernetes wants them: the time changes with the status only, and each type is there once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from kuberay_op.api.conditions import FALSE, REASON_UNKNOWN, TRUE

#: What the API server accepts as a reason. Kubelets and plugins give us others.
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", re.ASCII)

#: Longest message that we write; the server would take 32 times as much, people do not.
MESSAGE_LIMIT: Final = 1000


class Conditions:
    """The conditions of a status, while they are brought up to date."""

    def __init__(self, before: Iterable[Mapping[str, Any]], now: datetime) -> None:
        self._now = timestamp(now)
        self._found: dict[str, Mapping[str, Any]] = {
            str(condition.get("type")): dict(condition) for condition in before
        }

    def set(self, type_: str, status: bool | str, reason: str, message: str = "") -> None:
        """Say that a condition holds, or does not, and why."""
        word = status if isinstance(status, str) else TRUE if status else FALSE
        old = self._found.get(type_, {})
        since = old.get("lastTransitionTime") if old.get("status") == word else None
        self._found[type_] = {
            **old,
            "type": type_,
            "status": word,
            "reason": reason if _REASON.fullmatch(reason) else REASON_UNKNOWN,
            "message": message[:MESSAGE_LIMIT],
            "lastTransitionTime": since or self._now,
        }

    def remove(self, type_: str) -> None:
        """Say nothing about it any more."""
        self._found.pop(type_, None)

    def holds(self, type_: str) -> bool:
        """Whether the condition is there and true."""
        return self._found.get(type_, {}).get("status") == TRUE

    def listed(self) -> list[Mapping[str, Any]]:
        """All of them: those that were there in their order, then new ones."""
        return list(self._found.values())


def timestamp(moment: datetime) -> str:
    """A time in UTC as the API writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
