"""The engine benchmark runs end to end and measures what it says; how fast is not a matter for tests."""

from __future__ import annotations

import shutil

import pytest

from kuberay_op_bench import engine


@pytest.mark.skipif(shutil.which("curl") is None, reason="the benchmark compares with curl")
def test_a_small_run_fills_every_row() -> None:
    report = engine.run(pods=60, rate=200, seconds=1, rounds=1, server="replay")
    values = {measure.name: measure.value for measure in report.measures}
    assert values["size of the list"] * 2**20 > 60 * 4_000
    assert values["API calls to fill the cache"] == 1
    assert values["the cache is filled (by a stream)"] > 0
    assert values["watch events taken in"] > 0
    assert values["longest queue"] <= 3  # sixty Pods are three clusters
    assert {measure.name for measure in report.measures if measure.target} == {
        "cache / curl with the same request",
        "memory growth with the cache",
        "watch events taken in",
        "CPU of one core for that",
        "last event until the queue is empty",
    }
