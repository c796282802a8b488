"""How long ``kuberay-op validate`` takes on a large file, and importing the API on its own."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from kuberay_op.testing import make
from kuberay_op_bench.report import Measure, Report

#: Seconds any one of the programs may take before something is wrong.
TIMEOUT: Final = 120

_IMPORT: Final = """
import time
began = time.perf_counter(), time.process_time()
import kuberay_op.api
print(time.perf_counter() - began[0], time.process_time() - began[1])
"""


class Taken(NamedTuple):
    """Seconds on the clock, and of CPU."""

    wall: float
    cpu: float


def manifest(documents: int) -> str:
    """A file with so many documents, the four kinds in turn."""
    parts = (make.workers(2, "small"), make.workers(1, "large", numOfHosts=2), make.autoscaling("v2"))
    makers = (make.raycluster, make.rayjob, make.rayservice, make.raycronjob)
    made = (makers[number % len(makers)](f"bench-{number}", *parts) for number in range(documents))
    return yaml.dump_all(made, Dumper=yaml.CSafeDumper, sort_keys=False)


def run(*, documents: int = 1_000, rounds: int = 5) -> Report:
    """Measure the command on one file and the import, each in a new process; the median of the rounds."""
    text = manifest(documents)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "many.yaml")
        file.write_text(text)
        checked = [_command(file) for _ in range(rounds)]
    imported = [_import() for _ in range(rounds)]
    measures = (
        Measure(f"validate, {documents} documents", _median(t.wall for t in checked), "s", at_most=2.0),
        Measure(f"validate, {documents} documents, CPU", _median(t.cpu for t in checked), "s"),
        Measure("import kuberay_op.api", _median(t.wall for t in imported), "s", at_most=0.15),
        Measure("import kuberay_op.api, CPU", _median(t.cpu for t in imported), "s"),
    )
    settings = {"documents": documents, "lines": text.count("\n"), "rounds": rounds}
    return Report("validate", measures, settings)


def _median(values: Iterable[float]) -> float:
    return round(statistics.median(values), 3)


def _command(file: Path) -> Taken:
    program = (str(Path(sys.executable).with_name("kuberay-op")), "validate", "-f", str(file))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL, timeout=TIMEOUT)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Taken(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _import() -> Taken:
    program = (sys.executable, "-c", _IMPORT)
    answer = subprocess.run(program, check=True, capture_output=True, text=True, timeout=TIMEOUT)
    wall, cpu = answer.stdout.split()
    return Taken(float(wall), float(cpu))
