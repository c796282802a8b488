"""How long a local cluster takes to come up and go, with the programs at hand."""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Iterable
from pathlib import Path

from kuberay_op_bench.report import Measure, Report
from kuberay_op_local import binaries, versions
from kuberay_op_local.cluster import Cluster

NODES = 50


def run(*, rounds: int = 5) -> Report:
    """Bring clusters up and down; the medians of the rounds."""
    programs = binaries.resolve(
        versions.ALL_TOOLS, kubernetes=versions.KUBERNETES, folder=None, say=lambda _: None
    )
    plain = [_seconds("none") for _ in range(rounds)]
    kwok = [_seconds(f"kwok:{NODES}") for _ in range(rounds)]
    up, again, down = (statistics.median(column) for column in zip(*plain, strict=True))
    up_with_nodes = statistics.median(row[0] for row in kwok)
    measures = (
        Measure("control plane up, programs at hand", round(up, 2), "s", at_most=8.0),
        Measure(f"control plane with {NODES} nodes up", round(up_with_nodes, 2), "s", at_most=8.0),
        Measure("up again on a running cluster", round(again, 2), "s"),
        Measure("down", round(down, 2), "s"),
        Measure("all programs on disk", megabytes(programs.values()), "MB"),
    )
    return Report("local", measures, {"rounds": rounds, "Kubernetes": versions.KUBERNETES})


def _seconds(node: str) -> tuple[float, float, float]:
    """Seconds of up, of up again and of down."""
    name = f"bench-{os.getpid()}"
    times = [time.perf_counter()]
    try:
        for _ in range(2):
            Cluster.up(name, node=node)
            times.append(time.perf_counter())
    finally:
        Cluster(name).down()
    times.append(time.perf_counter())
    first, second, third = (after - before for before, after in itertools.pairwise(times))
    return first, second, third


def megabytes(programs: Iterable[Path]) -> int:
    """The disk space of programs; those that are links to one file count once."""
    files = {(stat.st_dev, stat.st_ino): stat.st_size for stat in (path.stat() for path in programs)}
    return round(sum(files.values()) / 1e6)
