"""The fixture ``fake_ray`` of the pytest plugin; the fake itself is imported when a test asks for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest_asyncio

if TYPE_CHECKING:
    from kuberay_op.testing.fake_ray import FakeRay


@pytest_asyncio.fixture
async def fake_ray() -> AsyncIterator[FakeRay]:
    """A fake Ray that listens on loopback, with no clusters yet; gone after the test."""
    from kuberay_op.testing.fake_ray import FakeRay

    async with FakeRay() as fake:
        yield fake
