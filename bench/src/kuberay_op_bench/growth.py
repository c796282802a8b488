"""Does the cost of a RayCluster grow with the number of them? CPU and calls per cluster against that number.

The exponent is the slope of a straight line through the points on a log-log plot: 0 when each cluster costs
the same however many there are, 1 when each costs in proportion to all the others.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from kuberay_op_bench import peers
from kuberay_op_bench.clusters import Life
from kuberay_op_bench.compare import Run, in_turn
from kuberay_op_bench.field import Field, field
from kuberay_op_bench.report import PAGE, Measure, Report

#: The highest exponent that still counts as no growth.
TARGET: Final = 0.05
PLOT: Final = PAGE.with_name("growth.svg")

#: What is drawn: the key of a run, and its name.
WHAT: Final = {"cpu": "CPU seconds", "calls without events": "API calls"}

Points = Mapping[tuple[str, str], Sequence[tuple[int, float]]]


def run(
    *,
    counts: Sequence[int] = (100, 300, 1000, 5000),
    workers: int = 3,
    rounds: int = 1,
    names: Sequence[str] = (peers.OURS,),
) -> Report:
    """Measure at each number of clusters; the median of the rounds counts."""
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for count in counts:
        with field() as ground:
            runs = in_turn(names, rounds, partial(_begin, ground, count, workers))
        for name in names:
            for what in WHAT:
                value = statistics.median(run.values[what] for run in runs if run.peer == name) / count
                found.setdefault((name, what), []).append((count, value))
    draw(found, PLOT)
    settings = {"clusters": ", ".join(map(str, counts)), "workers": workers, "rounds": rounds}
    return Report("growth", tuple(_measures(found)), settings)


async def _begin(ground: Field, count: int, workers: int, name: str) -> Run:
    return await Life(ground, name, count, workers).begin()


def exponent(points: Sequence[tuple[int, float]]) -> float:
    """The slope on a log-log plot."""
    logs = [(math.log(count), math.log(value)) for count, value in points]
    return statistics.linear_regression(*zip(*logs, strict=True)).slope


def _measures(found: Points) -> Iterator[Measure]:
    for (name, what), points in found.items():
        for count, value in points:
            yield Measure(f"{WHAT[what]} per cluster, {count} clusters: {name}", round(value, 4), "")
        if len(points) > 1:
            target = TARGET if name == peers.OURS else None
            slope = round(exponent(points), 3)
            yield Measure(f"growth exponent of {WHAT[what]} per cluster: {name}", slope, "", at_most=target)


def draw(found: Points, file: Path) -> None:
    """The points and their lines, as an SVG."""
    from matplotlib import rc_context  # late: slow to load, and only this needs it
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "kuberay-op", "svg.fonttype": "none"}):  # the same picture each time
        figure = Figure(figsize=(9, 4), layout="constrained")
        for axes, (what, title) in zip(figure.subplots(1, len(WHAT)), WHAT.items(), strict=True):
            for (name, about), points in found.items():
                if about == what:
                    label = f"{name} (exponent {exponent(points):.2f})" if len(points) > 1 else name
                    axes.loglog(*zip(*points, strict=True), "o-", label=label)
            axes.set(xlabel="RayClusters", title=f"{title} per RayCluster")
            axes.legend()
        figure.savefig(file, format="svg", metadata={"Date": None})
