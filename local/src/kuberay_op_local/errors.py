"""Errors of this package. Each text may be shown to a user as it is."""

from __future__ import annotations


class LocalError(Exception):
    """Something a user can act on: one clear sentence, then, where they help, log lines and what to try."""


class ComponentError(LocalError):
    """A component did not come up or went away."""

    def __init__(self, component: str, message: str) -> None:
        super().__init__(message)
        self.component = component
