"""From a log event to one line of text: the fields in their order, then JSON or columns.

Both encoders have the layout of zap's production encoders, which the reference uses, so that whatever
parses its logs parses ours.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Final, Literal

import orjson
from structlog.typing import EventDict, Processor, WrappedLogger

from kuberay_op.errors import OperatorError
from kuberay_op.logs.redaction import redact, scrub

#: How a line looks.
Encoder = Literal["json", "console"]

#: The fields every line may have; a field of the caller by such a name gets a trailing underscore.
RESERVED: Final = ("level", "ts", "logger", "msg", "error", "stacktrace")

#: Mark of the sampler on a record; not a field.
SAMPLED: Final = "_sampled"

_LEVELS: Final = {
    logging.DEBUG: "debug",
    logging.INFO: "info",
    logging.WARNING: "warn",
    logging.ERROR: "error",
    logging.CRITICAL: "panic",
}
_NUMBERS: Final = {name: number for number, name in _LEVELS.items()}

#: ``logging`` has no levels below 1, so higher verbosities are the same as this one.
_MOST_VERBOSE: Final = 10

_Exception = tuple[type[BaseException], BaseException, TracebackType | None]


def parse_level(text: str) -> int:
    """The ``logging`` number of ``debug``, ``info``, ``warn``, ``error``, ``panic`` or a verbosity above 0.

    Verbosity 1 is ``debug``; each step more shows finer lines. Raises ValueError for anything else.
    """
    number = _NUMBERS.get(text.lower())
    if number is not None:
        return number
    if not (text.removeprefix("+").isascii() and text.removeprefix("+").isdecimal() and int(text) > 0):
        raise ValueError(f"{text!r} is no log level")
    return logging.DEBUG + 1 - min(int(text), _MOST_VERBOSE)


def level_name(number: int) -> str:
    """What a level is called in a line."""
    name = _LEVELS.get(number)
    if name is not None:
        return name
    if number < logging.DEBUG:
        return f"Level(-{logging.DEBUG + 1 - number})"
    return next(name for floor, name in reversed(_LEVELS.items()) if number >= floor)


def timestamp(seconds: float) -> str:
    """ISO 8601 with milliseconds and zone: ``2026-01-02T03:04:05.678Z``, or ``…+0100`` elsewhere."""
    moment = datetime.fromtimestamp(seconds, UTC).astimezone()
    offset = moment.utcoffset()
    text = moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}"
    return text + ("Z" if not offset else moment.strftime("%z"))


class Fields:
    """Puts the fields of a line in order and takes the secrets out: the last step before the encoder."""

    def __init__(self, stacktrace_level: int) -> None:
        self._stacktrace_level = stacktrace_level

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        """Turn an event of ``ProcessorFormatter`` into the fields of the line."""
        record: logging.LogRecord = event.pop("_record")
        event.pop("_from_structlog", None)
        event.pop(SAMPLED, None)
        message = event.pop("event", "")
        given = event.pop("error", None)
        event.pop("stack_info", None)
        exception = _exception(event.pop("exc_info", None), given)
        fields: dict[str, Any] = {
            "level": level_name(record.levelno),
            "ts": timestamp(record.created),
            "logger": record.name,
            "msg": scrub(str(message)),
        }
        if given is not None:
            fields["error"] = redact(_sentence(given) if isinstance(given, BaseException) else given)
        elif exception is not None:
            fields["error"] = scrub(_sentence(exception[1]))
        if record.levelno >= self._stacktrace_level:
            lines = traceback.format_exception(*exception) if exception else _call_stack()
            fields["stacktrace"] = scrub("".join(lines).rstrip("\n"))
        for key, value in redact(event).items():
            fields[f"{key}_" if key in RESERVED else key] = value
        return fields


def _exception(exc_info: Any, given: Any) -> _Exception | None:
    """The exception a line is about: the one it was given, or the one being handled."""
    if isinstance(exc_info, BaseException):
        given = exc_info
    elif isinstance(exc_info, tuple) and exc_info[1] is not None:
        return exc_info
    elif exc_info and not isinstance(exc_info, tuple):
        handled = sys.exc_info()
        if handled[1] is not None:
            return handled
    if isinstance(given, BaseException):
        return type(given), given, given.__traceback__
    return None


def _sentence(error: BaseException) -> str:
    """Our own errors are sentences; of others the type says more than the text."""
    if isinstance(error, OperatorError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _call_stack() -> list[str]:
    """Where the line was logged, without the logging itself."""
    frame = sys._getframe(1)  # the traceback module can only give the stack with our own frames in it
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        ("logging", "structlog", "kuberay_op.logs")
    ):
        frame = frame.f_back
    return traceback.format_stack(frame)


def _plain(value: Any) -> Any:
    """What JSON does not know."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, BaseException):
        return scrub(_sentence(value))
    return scrub(str(value))


def to_json(fields: Mapping[str, Any]) -> str:
    """The fields as one line of JSON; whatever is in them, this gives a line."""
    try:
        # Dataclasses go through `_plain`: orjson would print their fields without regard to secrets.
        options = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS
        return orjson.dumps(fields, default=_plain, option=options).decode()
    except TypeError:  # lone surrogates and integers beyond 64 bits
        return json.dumps(fields, default=_plain)


def _json_line(_logger: WrappedLogger, _method: str, fields: EventDict) -> str:
    return to_json(fields)


def _console_line(_logger: WrappedLogger, _method: str, fields: EventDict) -> str:
    """Columns separated by tabs, the rest as JSON, the stack trace below."""
    rest = dict(fields)
    columns = [str(rest.pop(name)) for name in ("ts", "level", "logger", "msg")]
    stacktrace = rest.pop("stacktrace", None)
    if rest:
        columns.append(to_json(rest))
    line = "\t".join(columns)
    return f"{line}\n{stacktrace}" if stacktrace else line


ENCODERS: Final[Mapping[Encoder, Processor]] = {"json": _json_line, "console": _console_line}
