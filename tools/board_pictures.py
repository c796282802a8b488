"""Draws the dashboards over a real run, for ``docs/howto/monitoring.md``.

    .venv/bin/python tools/board_pictures.py docs/howto/monitoring

A local cluster with kwok's nodes, the operator, and Prometheus (Debian's package) that scrapes it, for some
minutes; then every query of ``monitoring/boards.yaml`` is asked and drawn. There is no Ray on such nodes, so
requests to it fail, and the pictures show what that looks like.
"""

from __future__ import annotations

import html
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane, bring_up
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.reference import our_command, running

MONITORING: Final = Path(__file__).parent.parent / "monitoring"
SECONDS: Final = 120
STEP: Final = 5
OPERATOR_PORT: Final = 18480
PROMETHEUS_PORT: Final = 19490
COLOURS: Final = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f")
WIDTH, HEIGHT, GAP = 300, 190, 10

Points = Sequence[tuple[float, float]]
Json = dict[str, Any]


# --- the run


@contextmanager
def prometheus(folder: Path) -> Iterator[str]:
    """Prometheus, scraping the operator every two seconds; gives its address."""
    program = shutil.which("prometheus")
    if program is None:
        sys.exit("prometheus is not installed; Debian has it in the package prometheus")
    target = {"job_name": "kuberay-operator", "honor_labels": True}
    target["static_configs"] = [{"targets": [f"127.0.0.1:{OPERATOR_PORT}"], "labels": {"pod": "operator"}}]
    config = {"global": {"scrape_interval": "2s"}, "scrape_configs": [target]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{PROMETHEUS_PORT}"
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(30)


def work(plane: ControlPlane, seconds: float) -> None:
    """Clusters come, grow and go; jobs and a schedule come too."""
    began, number = time.monotonic(), 0

    def apply(obj: Json) -> None:
        plane.kubectl("apply", "-f", "-", stdin=json.dumps(obj))

    apply(make.raycronjob("nightly", make.namespace("default")))
    while time.monotonic() - began < seconds:
        number += 1
        apply(make.raycluster(f"c{number}", make.namespace("default"), make.workers(1 + number % 4)))
        if number % 4 == 0:
            apply(make.rayjob(f"j{number}", make.namespace("default")))
        if number % 3 == 0:
            plane.kubectl("delete", "raycluster", f"c{number - 2}", "--wait=false", "--ignore-not-found")
        time.sleep(4)


def answers(address: str, query: str, legend: str, until: float) -> dict[str, Points]:
    """What a query gives over the run, by its legend."""
    filled = query.replace("$__rate_interval", "30s").replace("$namespace", ".*")
    asked = {"query": filled, "start": str(until - SECONDS), "end": str(until), "step": str(STEP)}
    answer = httpx.get(f"{address}/api/v1/query_range", params=asked, timeout=30, trust_env=False).json()
    found: dict[str, Points] = {}
    for series in answer["data"]["result"]:
        name = legend
        for label, value in series["metric"].items():
            name = name.replace(f"{{{{{label}}}}}", value)
        points = [(float(at), float(value)) for at, value in series["values"] if value not in ("NaN", "+Inf")]
        if points:
            found[name] = points
    return found


# --- the pictures


def drawn(panel: Json, series: dict[str, Points], x: int, y: int, until: float) -> str:
    """One panel as SVG."""
    top = max((value for points in series.values() for _, value in points), default=0.0) or 1.0
    left, bottom, width, height = x + 46, y + HEIGHT - 52, WIDTH - 60, HEIGHT - 82
    parts = [
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" fill="#fff" stroke="#ccc"/>',
        f'<text x="{x + 8}" y="{y + 18}" font-weight="bold">{html.escape(panel["title"])}</text>',
        f'<text x="{left - 4}" y="{bottom - height + 4}" text-anchor="end">{short(top)}</text>',
        f'<text x="{left - 4}" y="{bottom + 4}" text-anchor="end">0</text>',
        f'<path d="M{left} {bottom - height}V{bottom}H{left + width}" fill="none" stroke="#999"/>',
    ]
    if not series:
        parts.append(f'<text x="{left + 8}" y="{bottom - height / 2}" fill="#999">nothing in this run</text>')
    for number, (name, points) in enumerate(sorted(series.items(), key=lambda each: -each[1][-1][1])[:8]):
        colour = COLOURS[number]
        line = " ".join(
            f"{left + (at - until + SECONDS) / SECONDS * width:.0f},{bottom - value / top * height:.0f}"
            for at, value in points
        )
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        column, row = number % 3, number // 3
        place = f'x="{x + 8 + column * 97}" y="{y + HEIGHT - 34 + row * 12}"'
        parts.append(f'<text {place} fill="{colour}" font-size="9">{html.escape(name[:22])}</text>')
    return "\n".join(parts)


def short(number: float) -> str:
    """A number in a few characters."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.2g}"


def picture(board: Json, address: str, until: float) -> str:
    """A whole board as SVG."""
    parts, widest = [], max(map(len, board["rows"]))
    for row, panels in enumerate(board["rows"]):
        for column, panel in enumerate(panels):
            series: dict[str, Points] = {}
            for legend, query in panel["queries"].items():
                series |= answers(address, query, legend, until)
            place = GAP + column * (WIDTH + GAP), GAP + row * (HEIGHT + GAP)
            parts.append(drawn(panel, series, *place, until))
    size = f'width="{GAP + widest * (WIDTH + GAP)}" height="{GAP + len(board["rows"]) * (HEIGHT + GAP)}"'
    style = 'font-family="sans-serif" font-size="11"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n' + "\n".join(parts) + "\n</svg>\n"


def main() -> None:
    """Run, ask and draw."""
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plane = bring_up("pictures", node="kwok:10")
        try:
            install_crds(plane)
            flags = [
                f"--kubeconfig={plane.kubeconfig}",
                f"--metrics-addr=127.0.0.1:{OPERATOR_PORT}",
                "--health-probe-bind-address=0",
                "--leader-election-namespace=default",
                "--enable-metrics=true",
                "--feature-gates=RayCronJob=true",
            ]
            with (
                running([*our_command(), *flags], {}, folder / "operator.log"),
                prometheus(folder) as address,
            ):
                work(plane, SECONDS)
                until = time.time()
                for board, panels in yaml.safe_load((MONITORING / "boards.yaml").read_text("utf-8")).items():
                    (target / f"{board}.svg").write_text(picture(panels, address, until), "utf-8")
        finally:
            plane.close()
            plane.cluster.down()


if __name__ == "__main__":
    main()
