"""``kuberay-op bench``: results on stdout, files and the exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest
from click.testing import CliRunner

from kuberay_op_bench.cli import MISSED, SUITES, bench
from kuberay_op_bench.report import Measure, Report, saved_reports


@pytest.fixture
def slow_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite whose result is known and misses its target."""
    suite = SimpleNamespace(run=lambda: Report("hooks", (Measure("a call", 9, "µs", at_most=5),)))
    monkeypatch.setitem(sys.modules, "kuberay_op_bench.hooks", suite)


@pytest.mark.usefixtures("slow_hooks")
def test_a_suite_prints_json_and_keeps_its_result(tmp_path: Path) -> None:
    done = CliRunner().invoke(bench, ["hooks", "--output", "json", "--results", str(tmp_path)])
    assert done.exit_code == 0
    assert orjson.loads(done.stdout)["measures"][0]["value"] == 9
    assert [report.suite for report in saved_reports(tmp_path)] == ["hooks"]
    assert "measuring: hooks" in done.stderr


@pytest.mark.usefixtures("slow_hooks")
def test_a_missed_target_fails_only_when_asked(tmp_path: Path) -> None:
    arguments = ["hooks", "--results", str(tmp_path)]
    assert CliRunner().invoke(bench, arguments).exit_code == 0
    done = CliRunner().invoke(bench, [*arguments, "--check"])
    assert done.exit_code == MISSED
    assert "missed" in done.stdout


def test_every_suite_has_a_command_and_a_way_to_run() -> None:
    import importlib

    for suite in SUITES:
        assert suite in bench.commands
        assert callable(importlib.import_module(f"kuberay_op_bench.{suite}").run)
