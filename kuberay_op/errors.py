"""The one tree of errors. The question each answers is: try again, or not?

::

    OperatorError
    ├── Retry            try again, after a while
    ├── Invalid          the user must change the object; wait for the edit
    ├── Misconfigured    the operator cannot start like this; exit
    └── kube.errors.ApiError, ray.errors.RayError   (declared where they are raised; see there)
"""

from __future__ import annotations


class OperatorError(Exception):
    """Anything we raise on purpose. Its text is one clear sentence that may be shown to a user."""


class Retry(OperatorError):
    """Try again, after ``after`` seconds or, when that is None, with back-off."""

    def __init__(self, message: str, *, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class Invalid(OperatorError):
    """The user must change the object; nothing is tried again before the edit."""


class Misconfigured(OperatorError):
    """The configuration makes no sense; the process says so and ends."""
