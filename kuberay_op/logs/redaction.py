"""Take secrets out of what is about to be logged or shown.

Keys decide first: whatever stands under a key that names a secret *value* (``token``, ``redis_password``,
``Authorization``) is replaced, while names of Secrets (``secretName``) and paths (``tokenFile``) stay. Then
text is searched for the usual shapes of credentials, since an error message may quote a request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

#: What stands in the place of a secret.
REDACTED: Final = "<redacted>"

#: A key names a secret when it ends like this, in whatever spelling (``authToken``, ``AUTH-TOKEN``).
_ENDINGS: Final = (
    "token",
    "tokens",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "authorization",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "credential",
    "credentials",
    "cookie",
)

#: Lists and maps deeper than this are shown as their type: a log line is no place for them, and a structure
#: that contains itself must not hang the process.
_DEPTH: Final = 12

_CREDENTIALS: Final = re.compile(
    r"""
    # Authorization: Bearer abc
      (?P<header>authorization["']?\s*[:=]\s*["']?(?:(?:bearer|basic)\s+)?)[^\s"',;]+
    # Bearer abc123, but not the words of a sentence
    | \b(?P<scheme>bearer|basic)\s+(?=\S*\d)[\w.~+/=-]{6,}
    # https://user:pass@host
    | (?<=://)[^\s/@:]*:[^\s/@]+(?=@)
    # a JSON web token
    | \beyJ[\w-]{8,}\.[\w-]+\.[\w-]*
    # ?token=abc
    | (?P<key>(?:token|passw(?:or)?d|secret|api_?key|access_?key)=)[^\s"'&,;]+
    # "token": "abc"
    | (?P<quoted>(?:token|passw(?:or)?d|secret|api_?key|access_?key)["']\s*:\s*["'])[^"']+
    """,
    re.VERBOSE | re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def looks_secret(key: str) -> bool:
    """Say whether a value under this key must not be shown."""
    return key.replace("_", "").replace("-", "").replace(".", "").lower().endswith(_ENDINGS)


def scrub(text: str) -> str:
    """The text without credentials of the usual shapes."""
    return _CREDENTIALS.sub(_cover, text)


def redact(value: Any, depth: int = _DEPTH) -> Any:
    """A copy of plain data without its secrets; other objects are returned as they are."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, Mapping):
        return _redact_mapping(value, depth - 1) if depth else f"<{type(value).__name__}>"
    if isinstance(value, (list, tuple, set, frozenset)):
        return [redact(item, depth - 1) for item in value] if depth else f"<{type(value).__name__}>"
    return value


def _redact_mapping(mapping: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    hidden: frozenset[str] = frozenset()
    if mapping.get("kind") == "Secret":
        hidden = frozenset(("data", "stringData"))
    elif "value" in mapping and looks_secret(str(mapping.get("name"))):  # an environment variable, a header
        hidden = frozenset(("value",))
    result = {}
    for key, value in mapping.items():
        name = str(key)
        secret = name in hidden or (looks_secret(name) and value is not None and not isinstance(value, bool))
        result[name] = REDACTED if secret else redact(value, depth)
    return result


def _cover(match: re.Match[str]) -> str:
    header, scheme, key, quoted = match.group("header", "scheme", "key", "quoted")
    if scheme:
        return f"{scheme} {REDACTED}"
    return f"{header or key or quoted or ''}{REDACTED}"
