"""When a failed call may be sent again, and after how long."""

from __future__ import annotations

import random
from typing import Any, Final

import orjson

from kuberay_op.kube.errors import ApiError, ServerError, TooManyRequests, Unreachable
from kuberay_op.kube.request import Request

#: Attempts at a server that fails; after that the caller's own back-off is the better place to wait.
ATTEMPTS: Final = 4

#: Attempts at a server that asks us to slow down.
POLITE_ATTEMPTS: Final = 10

BASE: Final = 0.1
CAP: Final = 5.0


def backoff(attempt: int, *, base: float, cap: float, rng: random.Random) -> float:
    """Seconds before attempt ``attempt + 1``: doubling from ``base`` up to ``cap``, then 50–100 % of that."""
    # The exponent is bounded so that a long outage does not overflow a float.
    return min(cap, base * 2.0 ** min(attempt - 1, 32)) * rng.uniform(0.5, 1.0)


def repeatable(request: Request) -> bool:
    """Whether doing it twice is as good as once, even if the first time has worked unseen.

    Reads are. So are writes that the server refuses the second time (a delete with preconditions, a patch or
    replacement with a resourceVersion) and server-side apply. A create never is.
    """
    match request.method:
        case "GET" | "HEAD":
            return True
        case "DELETE":
            return bool(_body(request).get("preconditions"))
        case "PUT" | "PATCH":
            if request.content_type == "application/apply-patch+yaml":
                return True
            return bool((_body(request).get("metadata") or {}).get("resourceVersion"))
    return False


def retry_delay(error: ApiError, attempt: int, *, may_repeat: bool, rng: random.Random) -> float | None:
    """Seconds to wait before sending it again after the ``attempt``-th failure; None to give up."""
    match error:
        case TooManyRequests():
            # The server has not acted on it, so any verb may be repeated.
            patient = attempt < POLITE_ATTEMPTS
        case Unreachable(sent=False):
            patient = attempt < ATTEMPTS
        case Unreachable() | ServerError():
            patient = may_repeat and attempt < ATTEMPTS
        case _:
            return None
    if not patient:
        return None
    if error.retry_after is not None:
        return error.retry_after
    return backoff(attempt, base=1.0 if isinstance(error, TooManyRequests) else BASE, cap=CAP, rng=rng)


def _body(request: Request) -> dict[str, Any]:
    body = orjson.loads(request.body or b"{}")
    return body if isinstance(body, dict) else {}
