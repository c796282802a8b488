"""Medians of several operators, and our ratio to the others."""

from __future__ import annotations

from kuberay_op_bench import peers
from kuberay_op_bench.compare import Run, in_turn, measures


def test_medians_and_ratios() -> None:
    runs = [
        *(Run(peers.DEFAULT, {"wall": value, "calls": 12}) for value in (9, 10, 50)),
        *(Run(peers.OURS, {"wall": value}) for value in (4, 5, 6)),
    ]
    found = list(measures(runs, {"wall": "s", "calls": ""}, {("wall", peers.DEFAULT): 0.4}))
    assert [(each.name, each.value) for each in found] == [
        ("wall: reference", 10),
        ("wall: ours", 5),
        ("wall: ours / reference", 0.5),
        ("calls: reference", 12),
    ]
    assert [each.met for each in found] == [None, None, False, None]


def test_a_peer_that_was_not_there_has_no_ratio() -> None:
    assert not list(measures([Run(peers.OURS, {})], {"wall": "s"}, {("wall", peers.FLOOR): 1.0}))


def test_peers_take_turns(capsys: object) -> None:
    asked: list[str] = []

    async def scenario(name: str) -> Run:
        asked.append(name)
        return Run(name, {"wall": 1.0})

    runs = in_turn(["a", "b"], 2, scenario)
    assert asked == ["a", "b", "a", "b"] == [run.peer for run in runs]
