"""Shared by the tests of the runtime on a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from random import Random

import pytest

from kuberay_op.clock import SystemClock
from kuberay_op.kube.client import Client
from kuberay_op.metrics import Metrics
from kuberay_op.runtime.manager import Manager
from kuberay_op.testing.controlplane import ControlPlane

#: Longest wait for something that is about to happen; only a failing test waits this long.
PATIENCE = 60.0

Eventually = Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    """A client of the administrator."""
    async with await Client.connect(control_plane.kubeconfig) as connected:
        yield connected


@pytest.fixture
def manager(client: Client, namespace: str) -> Manager:
    """A manager that sees the test's own namespace only, without leader election."""
    rng = Random(1)  # noqa: S311 (seeded on purpose)
    return Manager(
        client, clock=SystemClock(), rng=rng, metrics=Metrics(process=False), namespaces=[namespace]
    )


@pytest.fixture
def eventually() -> Eventually:
    """Waits until an awaited question is answered with yes."""

    async def wait(question: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not await question():  # noqa: ASYNC110 (the answer is on the server)
                await asyncio.sleep(0.02)

    return wait
