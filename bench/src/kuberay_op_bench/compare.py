"""Several operators through the same scenario in turn: medians of the rounds, and our ratio to the others."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import click

from kuberay_op_bench import peers
from kuberay_op_bench.report import Measure


@dataclass
class Run:
    """What one peer needed in one round."""

    peer: str
    values: dict[str, float] = field(default_factory=dict)


def in_turn(names: Sequence[str], rounds: int, scenario: Callable[[str], Awaitable[Run]]) -> list[Run]:
    """The scenario with each peer, round after round, so that all of them meet the same machine."""
    runs: list[Run] = []
    for number in range(rounds):
        for name in names:
            click.echo(f"round {number + 1} of {rounds}: {name}", err=True)
            done = asyncio.run(_awaited(scenario(name)))
            click.echo(
                "  " + ", ".join(f"{what} {value:.3g}" for what, value in done.values.items()), err=True
            )
            runs.append(done)
    return runs


async def _awaited(work: Awaitable[Run]) -> Run:
    return await work


def measures(
    runs: Sequence[Run], units: Mapping[str, str], targets: Mapping[tuple[str, str], float]
) -> Iterator[Measure]:
    """For each measure the medians of all peers, then our ratios to those that have a target.

    ``targets`` holds the highest ratio by measure and peer.
    """
    names = list(dict.fromkeys(run.peer for run in runs))
    for what, unit in units.items():
        middle = {name: found for name in names if (found := _median(runs, name, what)) is not None}
        for name, value in middle.items():
            yield Measure(f"{what}: {name}", round(value, 3), unit)
        for (about, peer), target in targets.items():
            if about == what and peers.OURS in middle and middle.get(peer):
                ratio = middle[peers.OURS] / middle[peer]
                yield Measure(f"{what}: ours / {peer}", round(ratio, 3), "×", at_most=target)


def _median(runs: Sequence[Run], name: str, what: str) -> float | None:
    found = [run.values[what] for run in runs if run.peer == name and what in run.values]
    return statistics.median(found) if found else None
