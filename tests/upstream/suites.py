"""The reference's own end-to-end suites: compiled from its published module, unmodified, and run by name."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kuberay_op.testing.go_modules import ModuleUnavailableError, find_go, module_dir
from kuberay_op.testing.reference import BUILD_SECONDS, MODULE, VERSION

#: The suites that concern RayCluster, RayJob and RayCronJob.
SUITES: Final = ("e2e", "e2erayjob", "e2eraycronjob", "e2eautoscaler", "e2erayjobsubmitter", "sampleyaml")

#: Of a suite that has tests of other kinds too, the tests to run.
ONLY: Final[Mapping[str, frozenset[str]]] = {
    "sampleyaml": frozenset({"TestRayCluster", "TestRayJob", "TestRayJobInteractiveMode"})
}

#: How long the suites wait for things; what they were given when the reference itself was measured.
PATIENCE: Final = {
    "KUBERAY_TEST_TIMEOUT_SHORT": "3m",
    "KUBERAY_TEST_TIMEOUT_MEDIUM": "5m",
    "KUBERAY_TEST_TIMEOUT_LONG": "10m",
}

_VERDICT: Final = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+) \((\d+\.\d+)s\)", re.MULTILINE)
_NAME: Final = re.compile(r"^Test\w+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one test, or one part of it, ended."""

    suite: str
    test: str
    outcome: str
    seconds: float


def programs_folder() -> Path:
    """Where the compiled suites are kept."""
    from kuberay_op_local.paths import cache_dir  # late: the package is an extra

    return cache_dir() / f"suites-{VERSION}"


def compiled(suite: str) -> Path:
    """The program of a suite; compiled unless it is in the cache."""
    from kuberay_op_local.gobuild import go_environment  # late: the package is an extra

    program = programs_folder() / f"{suite}.test"
    if program.exists():
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    draft = program.with_suffix(".new")
    done = subprocess.run(
        [find_go(), "test", "-c", "-mod=readonly", "-trimpath", "-o", str(draft), f"./test/{suite}"],
        cwd=module_dir(MODULE, VERSION),
        env={**go_environment(), "GOFLAGS": "-buildvcs=false"},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise ModuleUnavailableError(
            f"the suite {suite} of the reference does not compile: {done.stderr[-500:]}"
        )
    draft.rename(program)
    return program


def tests_of(suite: str) -> list[str]:
    """The names of the suite's tests, in their order."""
    listed = subprocess.run(
        [str(compiled(suite)), "-test.list", ".*"],
        cwd=source_folder(suite),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    wanted = ONLY.get(suite)
    return [name for name in _NAME.findall(listed) if wanted is None or name in wanted]


def source_folder(suite: str) -> Path:
    """The folder in which the suite expects to run: it reads files beside its source."""
    return module_dir(MODULE, VERSION) / "test" / suite


def run_test(
    suite: str, test: str, *, environment: Mapping[str, str], log: Path, within: float
) -> list[Verdict]:
    """Run one test, or one part of it (``TestRayJob/Name``); its verdict and those of its parts."""
    pattern = "/".join(f"^{re.escape(part)}$" for part in test.split("/"))
    command = [str(compiled(suite)), "-test.v", "-test.run", pattern, f"-test.timeout={within:.0f}s"]
    with log.open("wb") as output:
        try:
            subprocess.run(
                command,
                cwd=source_folder(suite),
                env={**os.environ, **PATIENCE, **environment},
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=within + 60,
                check=False,
            )
        except subprocess.TimeoutExpired:
            output.write(f"\n--- FAIL: {test} ({within:.2f}s)\n".encode())
    return list(verdicts(suite, test, log.read_text(errors="replace")))


def verdicts(suite: str, test: str, text: str) -> Iterator[Verdict]:
    """What the output of a test says about it and its parts; a test that says nothing has failed."""
    found = [
        Verdict(suite, name, outcome, float(seconds)) for outcome, name, seconds in _VERDICT.findall(text)
    ]
    top = test.partition("/")[0]
    if not any(verdict.test == top for verdict in found):
        found.append(Verdict(suite, top, "FAIL", 0.0))
    yield from found


def table(rows: Sequence[Sequence[str]], head: Sequence[str]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
