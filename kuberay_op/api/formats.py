"""Forms of text that Kubernetes checks: DNS names, label keys and values, times.

Each ``…_problem`` gives the sentence that says what is wrong, or None when nothing is.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final

_DNS1123: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS1123_LABEL: Final = re.compile(_DNS1123)
_DNS1123_SUBDOMAIN: Final = re.compile(rf"{_DNS1123}(\.{_DNS1123})*")
_DNS1035_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})")

MAX_LABEL: Final = 63
MAX_SUBDOMAIN: Final = 253


def dns1035_label_problem(text: str) -> str | None:
    """Names of Services, and of all our kinds."""
    if len(text) > MAX_LABEL or not _DNS1035_LABEL.fullmatch(text):
        return (
            f"{text!r} must be a DNS label: at most {MAX_LABEL} lower-case letters, digits and '-', "
            "beginning with a letter and ending with a letter or digit"
        )
    return None


def dns1123_label_problem(text: str) -> str | None:
    """Names that become a part of a host name, such as worker groups."""
    if len(text) > MAX_LABEL or not _DNS1123_LABEL.fullmatch(text):
        return (
            f"{text!r} must be a DNS label: at most {MAX_LABEL} lower-case letters, digits and '-', "
            "beginning and ending with a letter or digit"
        )
    return None


def dns1123_subdomain_problem(text: str) -> str | None:
    """Names of most Kubernetes objects."""
    if len(text) > MAX_SUBDOMAIN or not _DNS1123_SUBDOMAIN.fullmatch(text):
        return (
            f"{text!r} must be a DNS name: at most {MAX_SUBDOMAIN} lower-case letters, digits, '-' and '.', "
            "beginning and ending with a letter or digit"
        )
    return None


def qualified_name_problem(text: str) -> str | None:
    """Keys of labels and annotations: ``name`` or ``prefix/name``."""
    prefix, slash, name = text.rpartition("/")
    if slash and (problem := dns1123_subdomain_problem(prefix)):
        return f"in {text!r} the prefix {problem}"
    if len(name) > MAX_LABEL or not _QUALIFIED.fullmatch(name):
        return (
            f"{text!r} must be a name of at most {MAX_LABEL} letters, digits, '-', '_' and '.', "
            "beginning and ending with a letter or digit, with an optional DNS prefix and '/' before it"
        )
    return None


def label_value_problem(text: str) -> str | None:
    """Values of labels; may be empty."""
    if text and (len(text) > MAX_LABEL or not _QUALIFIED.fullmatch(text)):
        return (
            f"{text!r} must be empty or at most {MAX_LABEL} letters, digits, '-', '_' and '.', beginning and "
            "ending with a letter or digit"
        )
    return None


def is_date_time(text: str) -> bool:
    """Whether the API server takes the text as a time (RFC 3339, a little more lenient in places)."""
    parts = text.lower().split("t")
    if len(parts) < 2 or not _DATE.fullmatch(parts[0]):
        return False
    try:
        date.fromisoformat(parts[0])
    except ValueError:
        # The year 0 is a year to Go, and leap years repeat every 400.
        if not (parts[0].startswith("0000-") and is_date_time(f"2000{text[4:]}")):
            return False
    found = _TIME.fullmatch(parts[1])
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"
