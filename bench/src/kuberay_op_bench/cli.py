"""The command ``kuberay-op bench``: thin, the work is in one module a suite.

A suite is a module of this package with a function ``run(**options) -> Report``, all options with defaults
and a docstring that says what is measured.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from kuberay_op_bench.peers import DEFAULT, FLOOR, OURS, PEERS
from kuberay_op_bench.report import RESULTS, Report, saved_reports, update_page

#: Every suite that is here, in the order in which ``all`` runs them: quick ones first. (``local-cold`` takes
#: many minutes and some gigabytes; it is run by its own name only.)
SUITES: Final = tuple(
    suite for suite in ("validate", "hooks", "engine", "local") if find_spec(f"kuberay_op_bench.{suite}")
)

#: Exit code of ``--check`` when a target was missed.
MISSED: Final = 3

output = click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
results = click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    default=RESULTS,
    show_default="bench/results",
    help="Folder for the result files.",
)
check = click.option("--check", is_flag=True, help=f"Exit with {MISSED} when a target is missed.")


def measure(suite: str, results: Path, **options: Any) -> Report:
    """Run one suite and keep its result."""
    click.echo(f"measuring: {suite}", err=True)  # stdout is for results
    report: Report = importlib.import_module(f"kuberay_op_bench.{suite}").run(**options)
    report.save(results)
    return report


def show(reports: list[Report], output: str, *, check: bool) -> None:
    """Print the results; end with the exit code they deserve."""
    for report in reports:
        click.echo(report.to_json() if output == "json" else f"{report.suite}\n\n{report.text()}\n", nl=False)
    if check and any(report.missed for report in reports):
        raise click.exceptions.Exit(MISSED)


@click.group()
def bench() -> None:
    """Measure kuberay-op on this machine.

    Exit codes: 0 measured; 1 a benchmark could not run; 3 a target was missed (only with --check).
    """


@bench.command()
@click.option("--pods", default=10_000, show_default=True, help="Pods in the cache.")
@click.option("--rate", default=2_000, show_default=True, help="Watch events a second.")
@click.option("--seconds", default=30, show_default=True, help="How long the events last.")
@click.option("--rounds", default=5, show_default=True, help="Repetitions; the median counts.")
@click.option("--server", type=click.Choice(["real", "replay"]), default="real", show_default=True)
@output
@results
@check
def engine(output: str, results: Path, check: bool, **options: Any) -> None:
    """Measure the cache and the queue: memory, time to sync, events a second.

    With --server replay the list is served by a recording, without a control plane.
    """
    show([measure("engine", results, **options)], output, check=check)


Command = TypeVar("Command", bound=Callable[..., Any])

rounds = click.option("--rounds", default=3, show_default=True, help="Repetitions; the median counts.")


def whom(*default: str) -> Callable[[Command], Command]:
    """The option that names the peers."""
    return click.option(
        "--peer", "names", multiple=True, default=default, show_default=True, help="Whom to compare."
    )


@bench.command()
@click.option("--count", default=1000, show_default=True, help="RayClusters, all made at once.")
@click.option("--workers", default=3, show_default=True, help="Workers of each.")
@rounds
@whom(*PEERS)
@output
@results
@check
def clusters(output: str, results: Path, check: bool, **options: Any) -> None:
    """Compare with the reference: many RayClusters made at once, at rest, doubled, restarted, deleted."""
    show([measure("clusters", results, **options)], output, check=check)


@bench.command()
@click.option("--count", default=2000, show_default=True, help="RayClusters of the noisy neighbour.")
@rounds
@whom(DEFAULT, OURS)
@output
@results
@check
def neighbours(output: str, results: Path, check: bool, **options: Any) -> None:
    """Compare with the reference: a new RayCluster beside many that change all the time."""
    show([measure("neighbours", results, **options)], output, check=check)


@bench.command("one-big")
@click.option("--workers", default=2000, show_default=True, help="Workers that the cluster grows to.")
@rounds
@whom(DEFAULT, OURS, FLOOR)
@output
@results
@check
def one_big(output: str, results: Path, check: bool, **options: Any) -> None:
    """Compare with the reference: one RayCluster that grows to very many workers."""
    show([measure("one_big", results, **options)], output, check=check)


@bench.command()
@click.option(
    "--count",
    "counts",
    type=int,
    multiple=True,
    default=(100, 300, 1000, 5000),
    show_default=True,
    help="RayClusters; once for each size.",
)
@click.option("--rounds", default=1, show_default=True, help="Repetitions; the median counts.")
@whom(OURS)
@output
@results
@check
def growth(output: str, results: Path, check: bool, **options: Any) -> None:
    """Measure whether the cost of a RayCluster grows with their number, and draw docs/growth.svg."""
    show([measure("growth", results, **options)], output, check=check)


@bench.command()
@click.option("--what", type=click.Choice(["time", "memory"]), default="time", show_default=True)
@click.option("--count", default=200, show_default=True, help="RayClusters, all made at once.")
@click.option("--workers", default=3, show_default=True, help="Workers of each.")
@click.option("--order", type=click.Choice(["tottime", "cumtime"]), default="tottime", show_default=True)
def profile(**options: Any) -> None:
    """Show where our operator spends its time or memory while many RayClusters are made."""
    from kuberay_op_bench import profiling  # late, as for the other suites

    click.echo(profiling.run(**options))


@bench.command()
@click.option("--jobs", default=1000, show_default=True, help="RayJobs in HTTPMode, all made at once.")
@click.option("--hanging", default=10, show_default=True, help="Of these, how many whose dashboard hangs.")
@click.option("--seconds", default=20.0, show_default=True, help="How long each job runs.")
@output
@results
@check
def rayjobs(output: str, results: Path, check: bool, **options: Any) -> None:
    """Measure whether dashboards that hang delay the jobs on others."""
    show([measure("rayjobs", results, **options)], output, check=check)


def _plain(suite: str) -> click.Command:
    """The command of a suite that has no options of its own."""

    @click.command(suite.replace("_", "-"), help=f"Run the suite {suite.replace('_', '-')!r}.")
    @output
    @results
    @check
    def command(output: str, results: Path, check: bool) -> None:
        show([measure(suite, results)], output, check=check)

    return command


for name in (*SUITES, "local_cold", "real_node"):
    if name not in bench.commands:
        bench.add_command(_plain(name))


@bench.command("all")
@output
@results
@check
def everything(output: str, results: Path, check: bool) -> None:
    """Run every suite and write the tables of docs/benchmarks.md."""
    reports = [measure(suite, results) for suite in SUITES]
    update_page(saved_reports(results))
    show(reports, output, check=check)


@bench.command()
@results
def docs(results: Path) -> None:
    """Write the tables of docs/benchmarks.md from the results on file."""
    changed = update_page(saved_reports(results))
    click.echo("docs/benchmarks.md written" if changed else "docs/benchmarks.md is up to date", err=True)
