"""Runs a page of documentation, word for word, as a reader would.

::

    run_page(Path("docs/tutorial/write-a-plugin.md"), folder=tmp_path)

Fenced blocks are taken in order, in one shell that starts in ``folder``:

* after a line ``Save this as `path`:`` the block is written to that file;
* in a ``console`` block a line that begins with ``$ `` is typed (and goes on while lines end with a
  backslash); what stands below it must be what comes out. ``...`` stands for any text, on a line of its own
  for any lines. A command must succeed;
* a ``text`` block is only for reading. Any other block is an error, so that nothing is left out by mistake.
"""

from __future__ import annotations

import os
import queue
import re
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

#: Seconds that one command may take; only a failing one takes that long.
PATIENCE: Final = 180.0

_FENCE: Final = re.compile(r"```(\w*)")
_SAVE: Final = re.compile(r"Save this as `([^`]+)`:")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block, and the file it is to be saved as."""

    language: str
    text: str
    #: Line of its fence in the page.
    line: int
    file: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """Something typed, and what is shown below it."""

    typed: str
    shown: str
    line: int


def blocks(page: str) -> Iterator[Block]:
    """All fenced blocks of a page."""
    language: str | None = None
    file, start = "", 0
    inside: list[str] = []
    for number, line in enumerate(page.splitlines(), 1):
        fence = _FENCE.fullmatch(line.rstrip())
        if language is None:
            if saved := _SAVE.search(line):
                file = saved[1]
            elif fence:
                language, start, inside = fence[1], number, []
        elif fence:
            yield Block(language, "".join(f"{part}\n" for part in inside), start, file)
            language, file = None, ""
        else:
            inside.append(line)
    if language is not None:
        raise ValueError(f"line {start}: a block that does not end")


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block."""
    typed: list[str] = []
    shown: list[str] = []
    begun = block.line
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        if typed and typed[-1].endswith("\\"):
            typed.append(line)
        elif line.startswith("$ "):
            if typed:
                yield Command("\n".join(typed), "\n".join(shown), begun)
            typed, shown, begun = [line[2:]], [], number
        else:
            shown.append(line)
    if typed:
        yield Command("\n".join(typed), "\n".join(shown), begun)


def agrees(shown: str, printed: str) -> bool:
    """Whether what is shown in a page is what was printed; blanks at the ends of lines do not count."""
    lines = [line.rstrip() for line in shown.strip().splitlines()]
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n" for line in lines
    )
    got = "".join(f"{line.rstrip()}\n" for line in printed.strip().splitlines())
    return re.fullmatch(pattern, got) is not None


class Shell:
    """A bash that is fed one command after the other; background jobs end with it."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],  # noqa: S607 (the reader's, wherever it is)
            cwd=folder,
            env={**os.environ, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._mark = f"--{secrets.token_hex(8)}--"
        threading.Thread(target=self._read, name="shell output", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)  # a session of its own: nobody else is in it
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def run(self, command: str, patience: float = PATIENCE) -> tuple[int, str]:
        """Type a command; gives its exit code and what it printed."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\nprintf '\\n%s %s\\n' '{self._mark}' \"$?\"\n")
        self._process.stdin.flush()
        printed: list[str] = []
        end = time.monotonic() + patience
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no end after {patience:g} s; so far:\n{''.join(printed)}") from None
            if line is None:
                raise AssertionError(f"the shell ended:\n{''.join(printed)}")
            if line.startswith(self._mark):
                return int(line.split()[1]), "".join(printed)
            printed.append(line)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            for line in stream:
                self._lines.put(line)
        self._lines.put(None)


def run_page(path: Path, folder: Path, env: Mapping[str, str] | None = None) -> int:
    """Do everything that the page says; raises AssertionError with the line. Gives the number of commands."""
    ran = 0
    with Shell(folder, env or {}) as shell:
        for block in blocks(path.read_text(encoding="utf-8")):
            if block.file:
                file = folder / block.file
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text, encoding="utf-8")
            elif block.language == "console":
                for command in commands(block):
                    _check(path, command, shell)
                    ran += 1
            elif block.language != "text":
                raise AssertionError(
                    f"{path}:{block.line}: a {block.language!r} block that nobody saves or runs"
                )
    return ran


def _check(path: Path, command: Command, shell: Shell) -> None:
    where = f"{path}:{command.line}: {command.typed}"
    try:
        code, printed = shell.run(command.typed)
    except AssertionError as error:
        raise AssertionError(f"{where}\n{error}") from None
    if code != 0:
        raise AssertionError(f"{where}\nended with code {code} and printed:\n{printed}")
    if not agrees(command.shown, printed):
        raise AssertionError(f"{where}\nthe page shows:\n{command.shown}\n\nbut it printed:\n{printed}")
