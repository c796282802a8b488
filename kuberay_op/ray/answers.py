"""From an HTTP answer to a value or an error. Pure: every decision about what an answer means is here.

Facts about Ray that the rules rest on:

- Errors are plain text, mostly a Python traceback whose last lines are the explanation.
- The head passes submissions on to an agent and wraps the agent's refusal in an answer of its own: a
  duplicate id, a 400 of the agent, arrives as 500 with ``Request failed with status code 400: …`` inside.
- "No such job" is a 404 that names the job. A 404 that does not comes from somewhere else: a path this Ray
  does not have, another program on the port, or the API server's proxy, which answers with a ``Status``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import orjson

from kuberay_op.ray.errors import (
    BadRequest,
    DashboardAbsent,
    Garbled,
    JobActive,
    JobExists,
    JobNotFound,
    RayError,
    ServerError,
    Unauthorized,
    Unreachable,
    Unsupported,
)

#: Longest answer we read. Job and application lists stay far below.
MAX_BYTES: Final = 4 * 1024 * 1024
#: Longest explanation of Ray's that we repeat; tracebacks say nothing new after this.
MESSAGE_LIMIT: Final = 500
#: What stands in place of a secret.
HIDDEN: Final = "***"
#: Shorter values are not hidden: they are no secrets, and hiding "1" would make every text unreadable.
SHORTEST_SECRET: Final = 4

DUPLICATE: Final = "Please use a different submission_id"
NOT_FINISHED: Final = "it is in a non-terminal state"
PROXY_FAILED: Final = "Error trying to reach service:"
WRAPPED: Final = re.compile(r"Request failed with status code (\d{3}): ")
#: How Serve's checks quote what was sent, cut in the middle, so that no search for secrets would find them.
QUOTED_INPUT: Final = re.compile(r",? input_value=.*?(?=, input_type=|\]|$)", re.DOTALL)
EXCEPTION: Final = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Exit|Timeout)\b:?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Response:
    """What came back. Header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked: ``name`` for metrics, ``doing`` for messages, ``job_id`` the job it is about, if one."""

    name: str
    doing: str
    method: str
    path: str
    job_id: str | None = None
    body: Any = field(default=None, repr=False)
    max_bytes: int = MAX_BYTES


def problem(call: Call, answer: Response, *, token: str = "") -> RayError | None:
    """The error that an answer stands for; None when it is a success."""
    if 200 <= answer.status < 300:
        return None
    text = answer.body.decode("utf-8", errors="replace")
    kind, explanation = _kind(call, answer, text)
    said = shorten(hide(QUOTED_INPUT.sub("", explanation), (token, *environment(call.body))))
    error = kind(f"{call.doing}: {answer.status}{': ' + said if said else ''}", status=answer.status)
    if isinstance(error, ServerError):
        error.after = _retry_after(answer.headers)
    return error


def _kind(call: Call, answer: Response, text: str) -> tuple[type[RayError], str]:
    status = answer.status
    from_proxy = _status_object(answer.body)
    if from_proxy is not None:
        return _of_proxy(status), str(from_proxy.get("message") or "")
    if text.startswith(PROXY_FAILED):
        return Unreachable, text
    if _is_web_page(answer):
        # Nothing that Ray says to a program is a web page: this is a login form or somebody's error page.
        return (Unauthorized if status in {401, 403} else DashboardAbsent), "a web page, not Ray's answer"
    if DUPLICATE in text:
        return JobExists, explain(text)
    if NOT_FINISHED in text:
        return JobActive, explain(text)
    if status == 500 and (wrapped := WRAPPED.search(text)):
        status = int(wrapped[1])
    return _by_status(call, status, text), explain(text)


def _by_status(call: Call, status: int, text: str) -> type[RayError]:
    if status in {401, 403}:
        return Unauthorized
    if status == 404:
        return JobNotFound if call.job_id is not None and call.job_id in text else DashboardAbsent
    if status in {405, 501}:
        return Unsupported
    if status == 429 or status >= 500:
        return ServerError
    if 400 <= status < 500:
        return BadRequest
    return Garbled  # 1xx and 3xx: Ray never redirects


def _of_proxy(status: int) -> type[RayError]:
    """What a ``Status`` of the API server says about Ray: the request never got there."""
    if status in {401, 403}:
        return Unauthorized
    if status == 404:
        return DashboardAbsent
    return Unreachable if status == 503 else ServerError


def _status_object(body: bytes) -> dict[str, Any] | None:
    if b'"Status"' not in body:
        return None
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) and value.get("kind") == "Status" else None


def _is_web_page(answer: Response) -> bool:
    return "text/html" in answer.headers.get("content-type", "") or answer.body.lstrip()[:1] == b"<"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("retry-after", "")
    return float(value) if value.isdecimal() else None


def explain(text: str) -> str:
    """Ray's own words: of a traceback the last exception, otherwise all of it."""
    if "Traceback (most recent call last)" in text:
        starts = [match.start() for match in EXCEPTION.finditer(text)]
        text = text[starts[-1] :] if starts else text
    return text.rstrip().removesuffix("\n.")


def shorten(text: str) -> str:
    """The text on one line, cut where it gets long."""
    line = " ".join(text.split())
    return line if len(line) <= MESSAGE_LIMIT else line[:MESSAGE_LIMIT] + "…"


def hide(text: str, secrets: Iterable[str]) -> str:
    """The text without any of the secrets, the longest first, since one may be part of another."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, HIDDEN)
    return text


def environment(body: Any) -> Iterator[str]:
    """Values of environment variables anywhere in what we send: people keep passwords there."""
    if isinstance(body, Mapping):
        variables = body.get("env_vars")
        if isinstance(variables, Mapping):
            yield from map(str, variables.values())
        for value in body.values():
            yield from environment(value)
    elif isinstance(body, list | tuple):
        for value in body:
            yield from environment(value)


def decode(call: Call, answer: Response) -> Any:
    """The JSON of a successful answer."""
    if _is_web_page(answer):
        raise Garbled(f"{call.doing}: the answer is a web page, not JSON", status=answer.status)
    try:
        return orjson.loads(answer.body)
    except orjson.JSONDecodeError as error:
        raise Garbled(
            f"{call.doing}: the answer is not JSON ({error.msg}, after {len(answer.body)} bytes)",
            status=answer.status,
        ) from None


T = TypeVar("T")


class Fields:
    """A JSON object whose fields are read with the type they must have; null counts as missing."""

    def __init__(self, call: Call, value: Any, *, where: str = "the answer") -> None:
        if not isinstance(value, dict):
            raise Garbled(f"{call.doing}: {where} is {_name(value)}, not an object")
        self.raw: dict[str, Any] = value
        self._call = call
        self._where = where

    def text(self, name: str) -> str:
        """A string; missing is empty."""
        return self._get(name, str) or ""

    def flag(self, name: str) -> bool:
        """A boolean that must be there."""
        value = self._get(name, bool)
        if value is None:
            raise self._garbled(name, "missing", "a boolean")
        return value

    def number(self, name: str) -> float | None:
        """A number."""
        value = self.raw.get(name)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        raise self._garbled(name, _name(value), "a number")

    def object(self, name: str) -> dict[str, Any]:
        """An object; missing is empty."""
        return self._get(name, dict) or {}

    def _get(self, name: str, kind: type[T]) -> T | None:
        value = self.raw.get(name)
        if value is None or isinstance(value, kind):
            return value
        raise self._garbled(name, _name(value), _KINDS[kind])

    def _garbled(self, name: str, found: str, wanted: str) -> Garbled:
        return Garbled(f"{self._call.doing}: {name} of {self._where} is {found}, not {wanted}")


_KINDS: Final[Mapping[type[Any], str]] = {
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    dict: "an object",
    list: "a list",
    type(None): "null",
}


def _name(value: Any) -> str:
    return _KINDS[type(value)]
