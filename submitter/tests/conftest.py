"""Submitters as processes of their own, against a fake Ray."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest_asyncio

from kuberay_op.testing.fake_ray import FakeRay

#: Longest wait for something that is about to happen; only a failing test waits this long.
PATIENCE = 60.0


@dataclass(frozen=True)
class Ended:
    """How a submitter ended."""

    code: int
    out: str
    err: str


class Submitter:
    """A submitter at work; what it prints is read all the time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.out = ""
        self.err = ""
        self._reading = asyncio.gather(self._read_out(), self._read_err())

    async def _read_out(self) -> None:
        assert self.process.stdout is not None
        while chunk := await self.process.stdout.read(100_000):
            self.out += chunk.decode()

    async def _read_err(self) -> None:
        assert self.process.stderr is not None
        while chunk := await self.process.stderr.read(100_000):
            self.err += chunk.decode()

    async def printed(self, text: str) -> None:
        """Wait until it has printed this."""
        await until(lambda: text in self.out, lambda: f"{self.out!r} {self.err!r}")

    async def ended(self) -> Ended:
        """Wait for its end."""
        async with asyncio.timeout(PATIENCE):
            await self._reading
            return Ended(await self.process.wait(), self.out, self.err)

    async def stop(self) -> None:
        """End it if it has not ended."""
        if self.process.returncode is None:
            self.process.kill()
        await self._reading
        await self.process.wait()


async def until(question: Callable[[], bool], what: Callable[[], str] = lambda: "") -> None:
    """Ask until it is so."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not question():  # noqa: ASYNC110 (the answer is in another process)
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"waited in vain: {what()}") from None


Start = Callable[..., Awaitable[Submitter]]


@pytest_asyncio.fixture
async def start(fake_ray: FakeRay) -> AsyncIterator[Start]:
    """Starts a submitter for the job ``job-1``: ``await start(address, "--", "python x.py")``."""
    running: list[Submitter] = []

    async def begin(address: str, *arguments: str, **environment: str) -> Submitter:
        variables = {
            "PATH": os.environ["PATH"],
            "RAY_DASHBOARD_ADDRESS": address,
            "RAY_JOB_SUBMISSION_ID": "job-1",
            **environment,
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "kuberay_op_submitter", *arguments),
            env={name: value for name, value in variables.items() if value},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        running.append(Submitter(process))
        return running[-1]

    yield begin
    for submitter in running:
        await submitter.stop()
