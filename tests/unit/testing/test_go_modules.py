"""Published Go modules are found by Go, and their absence is told apart from other trouble."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kuberay_op.testing import go_modules
from kuberay_op.testing.go_modules import ModuleUnavailableError, module_dir


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    module_dir.cache_clear()
    monkeypatch.setattr(go_modules, "find_go", lambda: "go")


def answer(monkeypatch: pytest.MonkeyPatch, stdout: str, stderr: str = "") -> list[list[str]]:
    """Let Go answer this; gives the commands it was asked."""
    asked: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 0, stdout, stderr)

    monkeypatch.setattr(subprocess, "run", run)
    return asked


def test_the_folder_of_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answer(monkeypatch, json.dumps({"Dir": "/somewhere"}))
    assert module_dir("example.org/a", "v1.0.0") == Path("/somewhere")
    assert module_dir("example.org/a", "v1.0.0") == Path("/somewhere")
    assert asked == [["go", "mod", "download", "-json", "example.org/a@v1.0.0"]]


@pytest.mark.parametrize(
    ("stdout", "stderr", "reason"),
    [
        (json.dumps({"Error": "no such host"}), "", "no such host"),
        ("not json", "go: broken", "go: broken"),
        ("", "", "no answer"),
    ],
)
def test_a_module_that_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch, stdout: str, stderr: str, reason: str
) -> None:
    answer(monkeypatch, stdout, stderr)
    with pytest.raises(ModuleUnavailableError, match=f"example.org/a@v1.0.0 cannot be downloaded: {reason}"):
        module_dir("example.org/a", "v1.0.0")


def test_a_download_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: Any) -> None:
        raise subprocess.TimeoutExpired(command, 1)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(ModuleUnavailableError, match="was not downloaded within"):
        module_dir("example.org/a", "v1.0.0")
