"""How growth is told from numbers, and drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from kuberay_op_bench import peers
from kuberay_op_bench.growth import draw, exponent


@pytest.mark.parametrize(
    ("points", "slope"),
    [
        ([(100, 2.0), (1000, 2.0)], 0.0),
        ([(100, 1.0), (1000, 10.0)], 1.0),
        ([(100, 1.0), (10_000, 10.0)], 0.5),
    ],
)
def test_the_exponent_is_the_slope_on_a_log_log_plot(points: list[tuple[int, float]], slope: float) -> None:
    assert exponent(points) == pytest.approx(slope)


def test_the_same_numbers_give_the_same_picture(tmp_path: Path) -> None:
    points = [(100, 1.0), (1000, 1.1)]
    found = {(peers.OURS, "cpu"): points, (peers.OURS, "calls without events"): points}
    draw(found, tmp_path / "a.svg")
    draw(found, tmp_path / "b.svg")
    text = (tmp_path / "a.svg").read_text()
    assert "ours (exponent 0.04)" in text
    assert text == (tmp_path / "b.svg").read_text()
