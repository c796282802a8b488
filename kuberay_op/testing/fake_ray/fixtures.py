"""The fixture ``fake_ray`` of the pytest plugin."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from kuberay_op.testing.fake_ray.server import FakeRay


@pytest_asyncio.fixture
async def fake_ray() -> AsyncIterator[FakeRay]:
    """A fake Ray that listens on loopback, with no clusters yet; gone after the test."""
    async with FakeRay() as fake:
        yield fake
