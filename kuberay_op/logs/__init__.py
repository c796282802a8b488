"""Logging: one path for our lines and those of every library, as JSON or for the eye.

::

    log = get_logger("controllers.RayCluster")
    with bind(RayCluster={"name": "a", "namespace": "default"}, reconcileID=pass_id):
        log.info("plan applied", created=2, patched=1)

A line is made in the thread that logs it: fields in the order ``level, ts, logger, msg, error,
stacktrace``, then the bound and given ones, secrets taken out (``redaction``). Writing it is left to one
thread per sink behind a bounded queue (``sinks``), so that neither a slow disk nor a full pipe ever stops
the event loop; what does not fit is dropped and counted. ``setup`` wires all this up and hands back the
``Logging`` to close at shutdown.
"""

from __future__ import annotations

import atexit
import contextvars
import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TextIO, cast

import structlog
from structlog.stdlib import ProcessorFormatter

from kuberay_op.logs.redaction import looks_secret, redact, scrub
from kuberay_op.logs.render import ENCODERS, Encoder, Fields, parse_level
from kuberay_op.logs.sinks import CAPACITY, RotatingFile, Sampler, Sink

__all__ = [
    "ENCODERS",
    "Encoder",
    "LogSettings",
    "Logging",
    "bind",
    "get_logger",
    "looks_secret",
    "parse_level",
    "redact",
    "scrub",
    "setup",
]

#: Libraries that say too much. The Kubernetes client prints whole answers, Secrets included, at debug
#: level, so it never gets there; the others print a line per request.
FLOORS: Final[Mapping[str, int]] = {
    "kubernetes": logging.INFO,
    "httpx": logging.WARNING,
    "httpcore": logging.INFO,
    "aiohttp.access": logging.WARNING,
}

#: The levels the file sink keeps, whatever the console shows.
FILE_LEVEL: Final = logging.INFO

#: From this verbosity on nothing is sampled: who asks for that much wants all of it.
UNSAMPLED: Final = parse_level("2")


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """The logger of that name: ``log.info("a fixed message", key=value)``."""
    logger = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        context_class=dict,
        cache_logger_on_first_use=True,
    )
    return cast(structlog.stdlib.BoundLogger, logger)


class bind:  # noqa: N801 - read as a verb: `with bind(...)`, or just `bind(...)` for the rest of the task
    """Put fields on every line this task logs from here on, ours and the libraries'.

    Takes effect at once. As a context manager it takes the fields off again at the end; without, they last
    as long as the task.
    """

    __slots__ = ("_tokens",)

    def __init__(self, **fields: Any) -> None:
        self._tokens: Mapping[str, contextvars.Token[Any]] = structlog.contextvars.bind_contextvars(**fields)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        structlog.contextvars.reset_contextvars(**self._tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """How to log; the configuration makes one."""

    #: Lines on stderr as ``json`` or ``console``.
    encoder: Encoder = "json"
    #: A file that gets the lines as well, or None.
    file: Path | None = None
    #: Lines in the file as ``json`` or ``console``.
    file_encoder: Encoder = "json"
    #: The lowest level shown on stderr, as ``logging`` numbers them; see ``parse_level``.
    level: int = logging.INFO
    #: From this level on a line carries a stack trace.
    stacktrace_level: int = logging.ERROR
    #: Thin out messages that repeat many times a second; from verbosity 2 on nothing is.
    sampling: bool = True


class Logging:
    """Logging that is set up. Close it to write what is queued and to put everything back."""

    def __init__(self, sinks: tuple[Sink, ...], settings: LogSettings) -> None:
        self._sinks = sinks
        root = logging.getLogger()
        self._before = (root.level, root.handlers[:])
        self._floors = {name: logging.getLogger(name).level for name in FLOORS}
        root.handlers[:] = sinks
        root.setLevel(min(sink.level for sink in sinks))
        for name, floor in FLOORS.items():
            logging.getLogger(name).setLevel(max(floor, settings.level))
        logging.captureWarnings(True)
        atexit.register(self.close)

    @property
    def dropped(self) -> int:
        """Lines lost so far because a sink could not keep up."""
        return sum(sink.dropped for sink in self._sinks)

    def close(self, *, timeout: float = 5.0) -> None:
        """Write what is queued, for ``timeout`` seconds per sink at most, and stop. Twice does no harm."""
        atexit.unregister(self.close)
        root = logging.getLogger()
        if root.handlers[:] == list(self._sinks):
            level, handlers = self._before
            root.setLevel(level)
            root.handlers[:] = handlers
            for name, floor in self._floors.items():
                logging.getLogger(name).setLevel(floor)
            logging.captureWarnings(False)
        for sink in self._sinks:
            sink.finish(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def setup(settings: LogSettings, *, stream: TextIO | None = None, capacity: int = CAPACITY) -> Logging:
    """Send every log line of the process to ``stream`` (stderr) and, when wanted, to a file.

    Raises ``Misconfigured`` when the file cannot be opened.
    """
    sampler = Sampler() if settings.sampling and settings.level > UNSAMPLED else None
    sinks = [
        Sink(
            logging.StreamHandler(stream or sys.stderr),
            formatter=_formatter(settings.encoder, settings.stacktrace_level),
            level=settings.level,
            sampler=sampler,
            capacity=capacity,
        )
    ]
    if settings.file is not None:
        sinks.append(
            Sink(
                RotatingFile.open(settings.file),
                formatter=_formatter(settings.file_encoder, settings.stacktrace_level),
                level=FILE_LEVEL,
                sampler=sampler,
                capacity=capacity,
            )
        )
    return Logging(tuple(sinks), settings)


def _formatter(encoder: Encoder, stacktrace_level: int) -> logging.Formatter:
    return ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.ExtraAdder(), structlog.contextvars.merge_contextvars],
        processors=[Fields(stacktrace_level), ENCODERS[encoder]],
    )
