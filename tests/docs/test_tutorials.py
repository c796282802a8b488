"""The tutorials, word for word, on a cluster of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kuberay_op.testing.doctest_md import run_page

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a reader: the programs of this one, and a place of their own for what they make."""
    installed = tmp_path / "installed"
    python_path = [str(installed), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {
        "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
        "PYTHONPATH": ":".join(python_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "NO_COLOR": "1",
        # pip installs into a folder instead of our environment, and needs no network for that.
        "PIP_TARGET": str(installed),
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # read by pip as: no isolation
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    yield env
    # The page ends with this; after a failure somebody has to do it.
    subprocess.run(
        [PROGRAMS / "kuberay-op", "local", "down"],
        env={**os.environ, **env},
        capture_output=True,
        check=False,
    )


def test_write_a_plugin(tmp_path: Path, reader: dict[str, str]) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    assert run_page(ROOT / "docs" / "tutorial" / "write-a-plugin.md", folder, reader) > 25
