"""Running a program that takes its time, and telling how far it is."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

#: How often progress is told: often at first, then so that a log of a long build stays readable.
TICK_SECONDS: Final = 2.0
LATER_TICK_SECONDS: Final = 10.0

#: Shows one line of progress to the user.
Say = Callable[[str], None]


class Ticker:
    """Says something at most every two seconds, and nothing in the first two."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._spoken = time.monotonic()

    def __call__(self, text: str) -> None:
        """Say it, if it is time."""
        now = time.monotonic()
        if now - self._spoken >= TICK_SECONDS:
            self._spoken = now
            self._say(text)


@dataclass(frozen=True, slots=True)
class Done:
    """What a program printed and how it ended."""

    code: int
    output: list[str]
    complaints: list[str]


def run(
    command: Sequence[str],
    *,
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
    tick: Callable[[int, float], None],
) -> Done:
    """Run a program to its end.

    Every few seconds ``tick`` gets the number of lines on its standard error so far (for Go: modules fetched,
    packages compiled) and the seconds it has taken.
    """
    began = time.monotonic()
    # Files and not pipes: a linker is silent for long, and reading from a pipe would be silent with it.
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err
        ) as process:
            try:
                while not _ended(process, time.monotonic() - began):
                    tick(len(_lines(err)), time.monotonic() - began)
            except BaseException:  # Ctrl-C above all: nothing goes on behind our back
                process.terminate()
                process.wait()
                raise
        return Done(process.returncode, _lines(out), _lines(err))


def _ended(process: subprocess.Popen[bytes], so_far: float) -> bool:
    try:
        process.wait(timeout=TICK_SECONDS if so_far < LATER_TICK_SECONDS else LATER_TICK_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _lines(file: IO[str]) -> list[str]:
    file.seek(0)
    return file.read().splitlines()
