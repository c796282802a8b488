"""What Ray can answer instead of what we asked for.

::

    RayError
    ├── JobNotFound        Ray answers, and knows no such job
    ├── JobExists          Ray has a job of this submission id already
    ├── JobActive          Ray deletes finished jobs only
    ├── BadRequest         Ray refuses the request; the user must change it      (Invalid)
    ├── Unsupported        this Ray cannot do that, such as Serve not installed  (Invalid)
    ├── TooLarge           the answer is longer than we are willing to read
    ├── Unauthorized       the token, or our access to the proxy, is refused     (Retry)
    └── RayUnavailable     no answer worth the name                              (Retry)
        ├── DashboardAbsent   something answers, but no dashboard
        ├── ServerError       Ray fails (5xx)
        ├── TimedOut          no answer in time; Ray may have acted on the request
        ├── Unreachable       no connection
        ├── Garbled           not the JSON that was asked for: a web page, half an answer, other types
        └── HeldBack          not asked: the breaker is open, or too much is under way

``Retry`` and ``Invalid`` are those of ``kuberay_op.errors``, so that a controller which cares about nothing
else decides by these alone. The first three are answers rather than faults.
"""

from __future__ import annotations

from typing import ClassVar, Final

from kuberay_op.errors import Invalid, OperatorError, Retry

#: Seconds before a refused token is tried again: a Secret that was just rotated is read soon after.
UNAUTHORIZED_RETRY: Final = 30.0


class RayError(OperatorError):
    """Ray did not do what it was asked. ``status`` is its HTTP status, None without an answer."""

    #: Label of this error in metrics.
    outcome: ClassVar[str] = "error"
    #: Does this say that the dashboard itself is in trouble (and count for the breaker)?
    fault: ClassVar[bool] = False

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class JobNotFound(RayError):
    """Ray answers, and knows no job of this id: not submitted yet, deleted, or lost with the head Pod."""

    outcome = "job_not_found"


class JobExists(RayError):
    """A job of this submission id exists. For whoever chose the id: the job is submitted."""

    outcome = "job_exists"


class JobActive(RayError):
    """The job has not finished, and Ray deletes finished jobs only: stop it first."""

    outcome = "job_active"


class BadRequest(RayError, Invalid):
    """Ray refuses the request as it is; its own explanation is in the text."""

    outcome = "bad_request"


class Unsupported(RayError, Invalid):
    """This Ray cannot do that: too old, or installed without Serve."""

    outcome = "unsupported"


class TooLarge(RayError):
    """The answer is longer than we are willing to read, such as the logs of a talkative job."""

    outcome = "too_large"


class Unauthorized(RayError, Retry):
    """Ray refuses the token, or the API server refuses us its proxy. Asking again at once is no use."""

    outcome = "unauthorized"

    def __init__(
        self, message: str, *, status: int | None = None, after: float | None = UNAUTHORIZED_RETRY
    ) -> None:
        super().__init__(message, status=status)
        self.after = after


class RayUnavailable(RayError, Retry):
    """There is no answer worth the name; ``after`` says how long to leave Ray alone, if that is known."""

    outcome = "unavailable"
    fault = True

    def __init__(self, message: str, *, status: int | None = None, after: float | None = None) -> None:
        super().__init__(message, status=status)
        self.after = after


class DashboardAbsent(RayUnavailable):
    """Something answers at this address, but it is no Ray dashboard, or its Service is gone."""

    outcome = "dashboard_absent"


class ServerError(RayUnavailable):
    """Ray, or a proxy before it, failed (5xx) or asks for patience (429)."""

    outcome = "server_error"


class TimedOut(RayUnavailable):
    """The answer did not come in time; Ray may or may not have acted on the request."""

    outcome = "timeout"


class Unreachable(RayUnavailable):
    """No connection came about, or it broke."""

    outcome = "unreachable"


class Garbled(RayUnavailable):
    """The answer is not what this API answers: a web page, half a document, other types."""

    outcome = "garbled"


class HeldBack(RayUnavailable):
    """The request was not sent: the breaker is open, or too many requests to this cluster are under way."""

    outcome = "held_back"
    fault = False
