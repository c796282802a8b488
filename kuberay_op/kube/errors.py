"""What the API server can answer instead of an object.

::

    ApiError
    ├── Unreachable        no usable answer: refused, reset, cut short, not JSON
    ├── DeadlineExceeded   no answer in the time the caller gave
    ├── BadRequest         400 and other 4xx: the request itself is wrong
    ├── Unauthorized       401: the credentials are not accepted
    ├── Forbidden          403: RBAC or admission says no
    ├── NotFound           404
    ├── Conflict           409: the object changed meanwhile; read it again
    ├── AlreadyExists      409 on create: the name is taken
    ├── Gone               410: the resourceVersion or continue token is too old; list again
    ├── InvalidObject      422: the object breaks a rule of its schema
    ├── TooManyRequests    429: slow down; ``retry_after`` says for how long
    └── ServerError        5xx

Only this module reads ``Status`` bodies. Text about Secrets and tokens is cut to field names, because the
server quotes values in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from kuberay_op.errors import OperatorError

#: Longest text of the server that we repeat; the rest says nothing new.
MESSAGE_LIMIT: Final = 1024

#: Where the server's JSON decoder starts to quote the body it was sent.
QUOTED_BODY: Final = re.compile(r",? (?:error )?found in #\d+ byte of .*", re.DOTALL)

#: Paths whose objects are secret: Secrets, and tokens asked for or reviewed.
SENSITIVE_PATH: Final = re.compile(r"^/api/v1/(?:.+/)?secrets(?:/|$)|/token$|/tokenreviews$")


class ApiError(OperatorError):
    """The API server said no, or could not be asked.

    ``status`` is the HTTP status (0 without an answer), ``reason`` the server's word for it (``NotFound``),
    ``retry_after`` the seconds it asks us to wait, if it does.
    """

    status: int = 0

    def __init__(
        self, message: str, *, status: int | None = None, reason: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        if status is not None:
            self.status = status
        self.reason = reason or type(self).__name__
        self.retry_after = retry_after


class Unreachable(ApiError):
    """There was no usable answer. ``sent`` tells whether the server may have acted on the request."""

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class DeadlineExceeded(ApiError):
    """The answer did not come in time; the server may or may not have acted on the request."""


class BadRequest(ApiError):
    """The request itself is wrong (400 and the 4xx without a class of their own)."""

    status = 400


class Unauthorized(ApiError):
    """The credentials are missing, expired or not accepted."""

    status = 401


class Forbidden(ApiError):
    """RBAC, quota or admission does not allow this."""

    status = 403


class NotFound(ApiError):
    """There is no such object, or the server does not know the resource."""

    status = 404


class Conflict(ApiError):
    """The object is not the one the caller thought of: read it again."""

    status = 409


class AlreadyExists(ApiError):
    """An object of this name exists already."""

    status = 409


class Gone(ApiError):
    """The server no longer knows this resourceVersion or continue token: list again."""

    status = 410


class InvalidObject(ApiError):
    """The object breaks a rule of its schema; sending it again cannot help."""

    status = 422


class TooManyRequests(ApiError):
    """The server is busy; ``retry_after`` says for how long to leave it alone."""

    status = 429


class ServerError(ApiError):
    """The server failed (5xx)."""

    status = 500


BY_STATUS: Final[Mapping[int, type[ApiError]]] = {
    kind.status: kind
    for kind in (Unauthorized, Forbidden, NotFound, Conflict, Gone, InvalidObject, TooManyRequests)
}


def error_of(status: int, body: Mapping[str, Any] | bytes, *, doing: str, path: str = "") -> ApiError:
    """The error that a refused request stands for.

    ``body`` is the answer (a ``Status`` when all is well, anything from a proxy when not), ``doing`` names
    the request in the text: ``"create pods default/a"``.
    """
    answer = _status_of(body)
    details = answer.get("details") or {}
    reason = str(answer.get("reason") or "")
    kind = BY_STATUS.get(status)
    if kind is None:
        kind = ServerError if status >= 500 else BadRequest
    elif kind is Conflict and reason == "AlreadyExists":
        kind = AlreadyExists
    text = _explain(answer, details, sensitive=bool(SENSITIVE_PATH.search(path)))
    seconds = details.get("retryAfterSeconds")
    return kind(
        f"{doing}: {status} {reason or kind.__name__}{': ' + text if text else ''}",
        status=status,
        reason=reason,
        retry_after=float(seconds) if isinstance(seconds, int | float) and seconds > 0 else None,
    )


def _status_of(body: Mapping[str, Any] | bytes) -> Mapping[str, Any]:
    if isinstance(body, bytes):
        try:
            body = orjson.loads(body)
        except orjson.JSONDecodeError:
            return {}
    return body if isinstance(body, Mapping) and body.get("kind") == "Status" else {}


def _explain(answer: Mapping[str, Any], details: Mapping[str, Any], *, sensitive: bool) -> str:
    if sensitive:
        fields = sorted({str(cause.get("field") or "") for cause in details.get("causes") or ()} - {""})
        return f"see the field {', '.join(fields)}" if fields else ""
    text = QUOTED_BODY.sub("", str(answer.get("message") or "")).strip()
    return text if len(text) <= MESSAGE_LIMIT else text[:MESSAGE_LIMIT] + "…"
