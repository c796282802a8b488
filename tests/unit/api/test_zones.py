"""Time zones by name, and the one of this process."""

from __future__ import annotations

import importlib.resources
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from kuberay_op.api.zones import find_zone, local_zone

SUMMER = datetime(2024, 7, 1, tzinfo=UTC)
BERLIN = importlib.resources.files("tzdata") / "zoneinfo" / "Europe" / "Berlin"


def offset(zone: tzinfo) -> timedelta | None:
    return SUMMER.astimezone(zone).utcoffset()


@pytest.mark.parametrize(
    ("name", "hours"),
    [("UTC", 0), ("Etc/UTC", 0), ("Europe/Berlin", 2), ("Asia/Kolkata", 5.5), ("America/New_York", -4)],
)
def test_by_name(name: str, hours: float) -> None:
    assert offset(find_zone(name)) == timedelta(hours=hours)


@pytest.mark.parametrize("name", ["Mars/Olympus", "../../etc/passwd", "/etc/localtime", "America", "\0", " "])
def test_no_such_zone(name: str) -> None:
    with pytest.raises(ValueError, match="is no time zone; write it like Europe/Berlin or UTC"):
        find_zone(name)


@pytest.mark.parametrize(
    ("variable", "hours"),
    [("Asia/Taipei", 8), (":Asia/Taipei", 8), ("", 0), (":", 0), ("Mars/Olympus", 0)],
)
def test_the_variable_names_the_zone(monkeypatch: pytest.MonkeyPatch, variable: str, hours: int) -> None:
    monkeypatch.setenv("TZ", variable)
    assert offset(local_zone()) == timedelta(hours=hours)
    assert offset(find_zone("")) == offset(find_zone("Local")) == timedelta(hours=hours)


def test_without_it_the_machine_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TZ", raising=False)
    file = tmp_path / "localtime"
    file.write_bytes(BERLIN.read_bytes())
    assert offset(local_zone(file)) == timedelta(hours=2)


def test_a_machine_without_a_zone_has_utc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TZ", raising=False)
    broken = tmp_path / "localtime"
    broken.write_text("nonsense")
    for file in (broken, tmp_path, tmp_path / "missing"):
        assert local_zone(file) is UTC
