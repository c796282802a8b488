"""Requests and replies of the fake, apart from any server, and the ways in which a reply can go wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

import orjson


@dataclass(frozen=True, slots=True)
class Request:
    """A request to one cluster. The path is still quoted; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the cluster answers."""

    status: int
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"


def json_reply(value: Any, status: int = 200) -> Reply:
    """A JSON document."""
    return Reply(status, orjson.dumps(value), "application/json; charset=utf-8")


def text_reply(status: int, text: str) -> Reply:
    """A line of text."""
    return Reply(status, text.encode())


def traceback_reply(status: int, line: str, *, wrapped: int | None = None) -> Reply:
    """An error as Ray sends it: a traceback that ends with ``line``.

    With ``wrapped`` the error is another process's, answered with that status and passed on by the head.
    """
    frames = 'Traceback (most recent call last):\n  File "fake_ray.py", line 1, in handle\n    work()\n'
    text = f"{frames}{line}\n"
    if wrapped is not None:
        text = f"{frames}RuntimeError: Request failed with status code {wrapped}: {text}.\n"
    return text_reply(status, text)


WEB_PAGE: Final = Reply(
    200, b"<!doctype html><html><title>Welcome</title></html>", "text/html; charset=utf-8"
)
#: Well-formed JSON that no endpoint of Ray answers.
NONSENSE: Final = json_reply({"status": 7, "stopped": "yes", "applications": [], "logs": {}})

KINDS: Final = ("slow", "status", "html", "nonsense", "truncated", "hang", "gone")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a cluster. ``only`` limits it to paths that begin so; make it with ``Fault.parse``.

    ================  ===========================================================================
    ``slow:1.5``      answers, 1.5 seconds late
    ``status:503``    answers with this status, any 4xx or 5xx
    ``html``          answers 200 with a web page
    ``nonsense``      answers 200 with JSON of other types
    ``truncated``     breaks off in the middle of the right answer
    ``hang``          takes the request and never answers
    ``gone``          drops every connection (see also ``FakeRay.take_down``, where nobody listens)
    ================  ===========================================================================
    """

    kind: str
    value: float = 0.0
    only: str = ""

    @classmethod
    def parse(cls, text: str, *, only: str = "") -> Self:
        """A fault from its short form: ``slow:1.5``."""
        kind, _, value = text.partition(":")
        try:
            number = float(value) if kind in {"slow", "status"} else 0.0
        except ValueError:
            number = math.nan
        if kind not in KINDS or math.isnan(number) or (value and not number):
            raise ValueError(
                f"unknown fault {text!r}; "
                "choose slow:SECONDS, status:CODE, html, nonsense, truncated, hang or gone"
            )
        return cls(kind, number, only)

    def hits(self, path: str) -> bool:
        """Does it concern this path?"""
        return path.startswith(self.only)
