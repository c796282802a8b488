"""What all tests share."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

#: Folders whose tests fail when one callback holds the event loop for more than 50 ms of CPU.
GUARDED: Final = ("unit/kube", "unit/runtime", "apiserver")


@pytest.fixture(autouse=True)
def _guarded_loop(request: pytest.FixtureRequest) -> None:
    path = request.path.relative_to(Path(__file__).parent)
    if any(path.is_relative_to(folder) for folder in GUARDED):
        request.getfixturevalue("loop_guard")
