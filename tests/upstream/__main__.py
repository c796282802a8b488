"""``python -m tests.upstream``: the reference's own suites against an operator on a real node.

Results are kept in ``tests/upstream/results/OPERATOR.json``, one entry for each test, so that a run can be
made in parts; ``--page`` writes ``docs/conformance.md`` from them.
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click
import yaml

from tests.upstream import page, suites

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "results"
EXCLUDED: Final = HERE / "excluded.yaml"
#: Seconds for one test; the slowest of the reference took 680 on a busy machine.
WITHIN: Final = 1500.0


@click.command()
@click.option("--operator", type=click.Choice(["ours", "reference"]), default="ours", show_default=True)
@click.option("--kubeconfig", type=click.Path(exists=True, path_type=Path), help="A cluster with real nodes.")
@click.option("--suite", "chosen", multiple=True, help="Only this suite.")
@click.option("--test", "named", multiple=True, help="Only this test, as SUITE/TEST.")
@click.option(
    "--jobs", default=1, show_default=True, help="Tests at once; two or three at most on two cores."
)
@click.option("--ray-image", default="rayproject/ray:2.52.0", show_default=True)
@click.option("--ray-version", default="2.52.0", show_default=True)
@click.option("--logs", type=click.Path(path_type=Path), default=Path("upstream-logs"), show_default=True)
@click.option("--list", "only_list", is_flag=True, help="Show the tests and what is left out, and stop.")
@click.option(
    "--page", "only_page", is_flag=True, help="Write docs/conformance.md from the results, and stop."
)
def main(
    operator: str,
    kubeconfig: Path | None,
    chosen: tuple[str, ...],
    named: tuple[str, ...],
    jobs: int,
    ray_image: str,
    ray_version: str,
    logs: Path,
    only_list: bool,
    only_page: bool,
) -> None:
    """Run the reference's own end-to-end tests. The operator must be running already.

    Exit codes: 0 all passed, 1 it could not be tried, 3 a test failed.
    """
    if only_page:
        page.write(RESULTS)
        return
    left_out = {entry["test"]: entry["reason"] for entry in yaml.safe_load(EXCLUDED.read_text())}
    wanted = [
        (suite, test)
        for suite in chosen or suites.SUITES
        for test in suites.tests_of(suite)
        if not named or f"{suite}/{test}" in named
    ]
    if only_list:
        for suite, test in wanted:
            click.echo(
                f"{suite}/{test}" + (f"  left out: {why}" if (why := left_out.get(f"{suite}/{test}")) else "")
            )
        return
    if kubeconfig is None:
        raise click.UsageError("--kubeconfig is needed: the suites run against a cluster with real nodes")
    environment = {
        "KUBECONFIG": str(kubeconfig.resolve()),
        "KUBERAY_TEST_RAY_IMAGE": ray_image,
        "KUBERAY_TEST_RAY_VERSION": ray_version,
        "KUBERAY_TEST_OUTPUT_DIR": str(logs.resolve()),
    }
    logs.mkdir(parents=True, exist_ok=True)

    def one(item: tuple[str, str]) -> list[suites.Verdict]:
        suite, test = item
        began = time.monotonic()
        log = logs / f"{suite}-{test}.log"
        found = suites.run_test(suite, test, environment=environment, log=log, within=WITHIN)
        outcome = next(verdict.outcome for verdict in found if verdict.test == test)
        click.echo(f"{outcome}  {suite}/{test}  {time.monotonic() - began:.0f} s", err=True)
        return found

    todo = [(suite, test) for suite, test in wanted if f"{suite}/{test}" not in left_out]
    click.echo(f"{len(todo)} tests, {len(wanted) - len(todo)} left out; logs in {logs}", err=True)
    with ThreadPoolExecutor(jobs) as pool:
        found = [verdict for verdicts in pool.map(one, todo) for verdict in verdicts]
    keep(operator, found)
    failed = [verdict for verdict in found if verdict.outcome == "FAIL" and "/" not in verdict.test]
    sys.exit(3 if failed else 0)


def keep(operator: str, found: list[suites.Verdict]) -> None:
    """Put verdicts into the result file, over older ones of the same tests."""
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{operator}.json"
    known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    today = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    for verdict in found:
        known[f"{verdict.suite}/{verdict.test}"] = {**asdict(verdict), "when": today}
    file.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
