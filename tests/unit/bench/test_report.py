"""Result files, tables and the generated page."""

from __future__ import annotations

from pathlib import Path

import pytest

from kuberay_op_bench.report import Measure, Report, machine, saved_reports, update_page

REPORT = Report(
    "engine",
    (
        Measure("memory growth", 38.25, "MB", at_most=40),
        Measure("events", 1500, "a second", at_least=2000),
        Measure("import", 0.0421, "s"),
    ),
    settings={"pods": 10000},
    machine={"cpu": "a CPU", "cores": 2, "python": "3.11.7", "load": 0.5},
    measured="2026-01-02 03:04 UTC",
)


def test_a_report_survives_its_file(tmp_path: Path) -> None:
    assert REPORT.save(tmp_path / "new") == tmp_path / "new" / "engine.json"
    assert saved_reports(tmp_path / "new") == [REPORT]


def test_targets_are_held_against_values() -> None:
    assert [measure.met for measure in REPORT.measures] == [True, False, None]
    assert [measure.name for measure in REPORT.missed] == ["events"]
    assert Measure("limit", 40, "MB", at_most=40).met


def test_the_markdown_table_says_what_was_measured_where() -> None:
    assert REPORT.markdown().splitlines() == [
        "Measured 2026-01-02 03:04 UTC on a CPU, 2 cores, Python 3.11.7, load 0.5. Settings: pods 10000.",
        "",
        "| what | measured | target | |",
        "|---|---|---|---|",
        "| memory growth | 38.25 MB | ≤ 40 | met |",
        "| events | 1,500 a second | ≥ 2,000 | **missed** |",
        "| import | 0.042 s |  |  |",
    ]


def test_the_text_table_is_aligned() -> None:
    lines = REPORT.text().splitlines()
    assert lines[0].index("target") == lines[1].index("≤ 40")


def test_tables_go_between_their_comments_and_nothing_else_changes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- begin engine -->\nold\n<!-- end engine -->\nbelow\n")
    assert update_page([REPORT], page)
    text = page.read_text()
    assert text.startswith("above\n<!-- begin engine -->\nMeasured 2026")
    assert text.endswith("|\n<!-- end engine -->\nbelow\n")
    assert "old" not in text
    assert not update_page([REPORT], page)


def test_a_suite_without_a_place_in_the_page_is_an_error(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing here")
    with pytest.raises(ValueError, match="no place for the suite 'engine'"):
        update_page([REPORT], page)


def test_the_machine_is_described_but_not_named() -> None:
    import platform

    described = machine()
    assert described["cores"] >= 1
    assert platform.node() not in map(str, described.values())
