"""Shared by the tests of the client, the cache and what stands on them on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kuberay_op.kube.client import Client
from kuberay_op.testing.controlplane import ControlPlane


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    """A client of the administrator."""
    async with await Client.connect(control_plane.kubeconfig, qps=0) as connected:
        yield connected
