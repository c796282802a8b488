"""Shared by the tests of the runtime on a real API server."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from kuberay_op.clock import SystemClock
from kuberay_op.kube.client import Client
from kuberay_op.metrics import Metrics
from kuberay_op.runtime.manager import Manager
from kuberay_op.testing.controlplane import ControlPlane

#: Longest wait for something that is about to happen; only a failing test waits this long.
PATIENCE = 90.0

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
                await asyncio.sleep(0.05)

    return wait


class Operator:
    """A running ``kuberay-op run`` and its log."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self.log = log

    def lines(self) -> list[dict[str, Any]]:
        """What it has logged so far."""
        return [orjson.loads(line) for line in self.log.read_bytes().splitlines() if line.startswith(b"{")]

    def said(self, message: str) -> list[dict[str, Any]]:
        """The lines with this message."""
        return [line for line in self.lines() if line["msg"] == message]

    async def has_said(self, message: str) -> bool:
        return bool(self.said(message))

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def end(self) -> int:
        """Ask it to stop and wait until it has."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        return await asyncio.wait_for(self.process.wait(), PATIENCE)


Start = Callable[..., Awaitable[Operator]]


@pytest.fixture
async def start_operator(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts ``kuberay-op run`` with the given flags; whatever still runs at the end is killed."""
    started: list[asyncio.subprocess.Process] = []

    async def start(*flags: str) -> Operator:
        log = tmp_path / f"operator-{len(started)}.log"
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                "from kuberay_op.cli import main; main()",
                "run",
                *flags,
                stdout=output,
                stderr=output,
                cwd=tmp_path,
            )
        started.append(process)
        return Operator(process, log)

    yield start
    for process in started:
        if process.returncode is None:
            process.kill()
            await process.wait()
