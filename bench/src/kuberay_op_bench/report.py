"""Results of benchmarks: one JSON file a suite, and the tables of ``docs/benchmarks.md`` made of them."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

import orjson
import psutil

#: The folder of this package in the source tree, where results and documentation are found.
HOME: Final = Path(__file__).resolve().parents[2]
RESULTS: Final = HOME / "results"
PAGE: Final = HOME.parent / "docs" / "benchmarks.md"


def machine() -> dict[str, Any]:
    """What the numbers depend on; nothing that names the machine."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),  # above the number of cores, wall times are too long
    }


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    return found[1].strip() if found else platform.processor() or platform.machine()


@dataclass(frozen=True, slots=True)
class Measure:
    """One number. With ``at_most`` or ``at_least`` it is held against a target."""

    name: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.at_most is not None:
            return self.value <= self.at_most
        if self.at_least is not None:
            return self.value >= self.at_least
        return None

    @property
    def target(self) -> str:
        """The target as a person writes it."""
        if self.at_most is not None:
            return f"≤ {_number(self.at_most)}"
        if self.at_least is not None:
            return f"≥ {_number(self.at_least)}"
        return ""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything one suite measured in one run."""

    suite: str
    measures: tuple[Measure, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=machine)
    measured: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"))

    @property
    def missed(self) -> list[Measure]:
        """The measures that miss their target."""
        return [measure for measure in self.measures if measure.met is False]

    def to_json(self) -> bytes:
        """For files and ``--output json``."""
        return orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        """Read what :meth:`to_json` wrote."""
        content = orjson.loads(text)
        return cls(**{**content, "measures": tuple(Measure(**entry) for entry in content["measures"])})

    def save(self, folder: Path = RESULTS) -> Path:
        """Write the result file of the suite, over an older one."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.suite}.json"
        path.write_bytes(self.to_json())
        return path

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Name, value with unit, target, verdict."""
        verdicts = {True: "met", False: "**missed**", None: ""}
        return [
            (
                measure.name,
                f"{_number(measure.value)} {measure.unit}".strip(),
                measure.target,
                verdicts[measure.met],
            )
            for measure in self.measures
        ]

    def markdown(self) -> str:
        """A table for the documentation."""
        about = "; ".join(f"{name} {value}" for name, value in self.settings.items())
        lines = [
            f"Measured {self.measured} on {self.machine['cpu']}, {self.machine['cores']} cores, "
            f"Python {self.machine['python']}, load {self.machine['load']}."
            + (f" Settings: {about}." if about else ""),
            "",
            "| what | measured | target | |",
            "|---|---|---|---|",
            *(f"| {' | '.join(row)} |" for row in self.rows()),
        ]
        return "\n".join(lines)

    def text(self) -> str:
        """A table for a terminal."""
        rows = [("what", "measured", "target", ""), *self.rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )


def _number(value: float) -> str:
    if value and abs(value) < 0.1:
        return f"{value:.3f}"
    if abs(value) < 100 and value != int(value):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return f"{round(value):,}"


def update_page(reports: Iterable[Report], page: Path = PAGE) -> bool:
    """Put the tables into the page, each between its two comments; says whether the page changed.

    A suite without a place in the page is an error, so that no result is forgotten.
    """
    before = text = page.read_text()
    for report in reports:
        begin, end = f"<!-- begin {report.suite} -->", f"<!-- end {report.suite} -->"
        if begin not in text or end not in text:
            raise ValueError(
                f"{page.name} has no place for the suite {report.suite!r}: add {begin} and {end}"
            )
        head, _, rest = text.partition(begin)
        _, _, tail = rest.partition(end)
        text = f"{head}{begin}\n{report.markdown()}\n{end}{tail}"
    if text != before:
        page.write_text(text)
    return text != before


def saved_reports(folder: Path = RESULTS) -> list[Report]:
    """All results on file."""
    return [Report.from_json(path.read_bytes()) for path in sorted(folder.glob("*.json"))]
