"""The oracle: a small Go program that says what the real libraries say."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kuberay_op.testing.go_modules import ModuleUnavailableError, find_go

#: Asks one operation about many inputs; gives one answer for each.
Oracle = Callable[[str, Sequence[Sequence[str]]], list[dict[str, Any]]]

BUILD_SECONDS = 280


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    """The oracle, built once per run from its published dependencies."""
    folder = tmp_path_factory.mktemp("oracle")
    source = Path(__file__).parent / "oracle"
    for name in ("go.mod", "go.sum", "main.go"):
        shutil.copy(source / name, folder)
    try:
        go = find_go()
    except ModuleUnavailableError as error:
        pytest.skip(str(error))
    program = folder / "oracle"
    done = subprocess.run(
        [go, "build", "-o", str(program), "."],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        if "dial tcp" in done.stderr or "proxy" in done.stderr or "lookup" in done.stderr:
            pytest.skip(f"the Go modules of the oracle cannot be downloaded: {done.stderr.strip()[-200:]}")
        pytest.fail(f"the oracle does not build: {done.stderr}")

    def ask(operation: str, inputs: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        request = json.dumps({"op": operation, "in": inputs})
        answer = subprocess.run(
            [str(program)], input=request, capture_output=True, text=True, timeout=120, check=True
        )
        answers: list[dict[str, Any]] = json.loads(answer.stdout)
        assert len(answers) == len(inputs)
        return answers

    return ask
