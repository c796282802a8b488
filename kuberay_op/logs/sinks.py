"""Where log lines go: a bounded queue per sink, a thread that writes, a file that rotates, a sampler."""

from __future__ import annotations

import contextlib
import logging
import queue
import time
from logging.handlers import QueueHandler, QueueListener, RotatingFileHandler
from pathlib import Path
from typing import Any, Final

from kuberay_op.errors import Misconfigured
from kuberay_op.logs.render import SAMPLED

#: Lines that may wait for a sink. At some 300 bytes a line this is a few megabytes.
CAPACITY: Final = 10_000

MEBIBYTE: Final = 1024 * 1024
DAY: Final = 24 * 60 * 60.0


class Sampler(logging.Filter):
    """Thins out repeated messages: per second and message the first 100 pass, then every 100th.

    Several sinks share one sampler and its verdict, so that they show the same lines.
    """

    FIRST: Final = 100
    THEREAFTER: Final = 100
    #: Messages remembered at once; more than this in a second are not worth telling apart.
    REMEMBERED: Final = 4096

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether the line may pass; asked again about the same line, it says the same."""
        verdict: bool | None = getattr(record, SAMPLED, None)
        if verdict is None:
            verdict = self._admit(record)
            setattr(record, SAMPLED, verdict)
        return verdict

    def _admit(self, record: logging.LogRecord) -> bool:
        # A structlog line carries its fields in `msg`; a library's line is told apart by its format string.
        message = record.msg.get("event") if isinstance(record.msg, dict) else record.msg
        key = (record.levelno, str(message))
        until, count = self._seen.get(key, (0.0, 0))
        if record.created >= until:
            if len(self._seen) >= self.REMEMBERED:
                self._seen.clear()
            until, count = record.created + 1.0, 0
        count += 1
        self._seen[key] = (until, count)
        return count <= self.FIRST or (count - self.FIRST) % self.THEREAFTER == 0


class Sink(QueueHandler):
    """A queue in front of a handler that may be slow. Never blocks: a line that does not fit is dropped.

    The line is made here, in the thread that logs, so that the fields are those of that moment.
    """

    def __init__(
        self,
        target: logging.Handler,
        *,
        formatter: logging.Formatter,
        level: int,
        sampler: Sampler | None = None,
        capacity: int = CAPACITY,
    ) -> None:
        lines: queue.Queue[Any] = queue.Queue(capacity)
        super().__init__(lines)
        self.setLevel(level)
        self.setFormatter(formatter)
        if sampler is not None:
            self.addFilter(sampler)
        #: Lines lost because the target could not keep up.
        self.dropped = 0
        self._reported = 0
        self._target = target
        self._lines = lines
        self._writer = QueueListener(lines, target)
        self._writer.start()

    def enqueue(self, record: logging.LogRecord) -> None:
        """Queue the line, or count it as lost; after a loss, say so once there is room again."""
        if self.dropped > self._reported and self._lines.qsize() <= self._lines.maxsize // 2:
            self._lines.put_nowait(self.prepare(_loss(self.dropped - self._reported)))
            self._reported = self.dropped
        try:
            self._lines.put_nowait(record)
        except queue.Full:
            self.dropped += 1

    def finish(self, timeout: float) -> None:
        """Write what is queued, as far as ``timeout`` allows, and close the target.

        ``QueueListener.stop`` would wait for ever for a pipe that nobody reads.
        """
        thread, self._writer._thread = self._writer._thread, None
        if thread is None:
            return
        deadline = time.monotonic() + timeout
        try:
            self._lines.put(None, timeout=timeout)  # None tells the writer to end
        except queue.Full:
            self._make_room()
            self._lines.put(None)
        thread.join(max(0.0, deadline - time.monotonic()))
        if not thread.is_alive():
            self._target.close()
        self.close()

    def _make_room(self) -> None:
        """Give up all that waits: the writer must find its end as soon as it gets unstuck."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._lines.get_nowait()
                self.dropped += 1


def _loss(lost: int) -> logging.LogRecord:
    record = logging.LogRecord(
        "logs", logging.WARNING, __file__, 0, "log lines were dropped: the output is too slow", None, None
    )
    record.dropped = lost
    return record


class RotatingFile(RotatingFileHandler):
    """A log file of at most 500 MiB with up to 10 older ones beside it, none older than 30 days."""

    SIZE: Final = 500 * MEBIBYTE
    BACKUPS: Final = 10
    AGE: Final = 30 * DAY

    @classmethod
    def open(cls, path: Path) -> RotatingFile:
        """Open or make the file and the folders above it."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Logs may name things not everybody should know: only the owner reads a file we make.
            path.touch(mode=0o600)
            handler = cls(path, maxBytes=cls.SIZE, backupCount=cls.BACKUPS, encoding="utf-8")
        except OSError as error:
            raise Misconfigured(
                f"the log file {str(path)!r} cannot be opened ({error.strerror}); "
                "give a path in a folder that can be written to"
            ) from None
        handler.forget_old()
        return handler

    def doRollover(self) -> None:  # noqa: N802 - the name is the standard library's
        """Start a new file, keep its access rights, and drop what has become too old."""
        mode = Path(self.baseFilename).stat().st_mode
        super().doRollover()
        Path(self.baseFilename).chmod(mode)
        self.forget_old()

    def forget_old(self) -> None:
        """Delete backups older than ``AGE``."""
        oldest = time.time() - self.AGE
        for number in range(1, self.backupCount + 1):
            backup = Path(f"{self.baseFilename}.{number}")
            with contextlib.suppress(FileNotFoundError):
                if backup.stat().st_mtime < oldest:
                    backup.unlink()
