"""Shared by the tests of the runtime."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """What was logged so far, as fields; the message is under ``event``."""
    caplog.set_level(logging.DEBUG)
    return lambda: [record.msg for record in caplog.records if isinstance(record.msg, dict)]
