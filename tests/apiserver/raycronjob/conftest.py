"""A real API server, a real operator, and a clock that a test sets forward instead of waiting for a month."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kuberay_op.api import labels
from kuberay_op.controllers.resources import RAY_CRON_JOBS, RAY_JOBS
from kuberay_op.features import Gates
from kuberay_op.kube.client import Client
from kuberay_op.kube.resource import EVENTS
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.operator import RunningOperator, running_operator

Json = dict[str, Any]

GATES = Gates.default().with_overrides("RayCronJob=true")


class SetClock:
    """A clock that goes on by itself and can be set.

    Set forward, the time in between has passed, and sleepers wake; set back, only the wall shows it.
    """

    def __init__(self) -> None:
        self._ahead = timedelta()
        self._skipped = 0.0
        self._set = asyncio.Event()

    def now(self) -> datetime:
        """Wall time, in UTC."""
        return datetime.now(UTC) + self._ahead

    def monotonic(self) -> float:
        """Seconds since some fixed moment."""
        return time.monotonic() + self._skipped

    async def sleep(self, seconds: float) -> None:
        """Wait until so much time has passed or was skipped."""
        until = self.monotonic() + seconds
        while (left := until - self.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    await self._set.wait()
            except TimeoutError:
                return
        await asyncio.sleep(0)

    def set(self, moment: datetime) -> None:
        """Make it this late."""
        step = moment - self.now()
        self._ahead += step
        self._skipped += max(0.0, step.total_seconds())
        waiting, self._set = self._set, asyncio.Event()
        waiting.set()


class Stage:
    """A namespace with RayCronJobs, what becomes of them, and the time."""

    def __init__(self, client: Client, plane: ControlPlane, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self.clock = SetClock()
        self._plane = plane

    @asynccontextmanager
    async def operator(
        self, *, kubeconfig: Path | None = None, **options: Any
    ) -> AsyncIterator[RunningOperator]:
        """Let the operator run while the block lasts."""
        async with running_operator(
            kubeconfig or self._plane.kubeconfig,
            namespaces=[self.namespace],
            gates=GATES,
            clock=self.clock,
            **options,
        ) as running:
            yield running

    def month(self, number: int) -> datetime:
        """Midnight of the first day of a month to come: 1 is the next. The schedule of all tests."""
        today = datetime.now(UTC)
        months = today.month - 1 + number
        return datetime(today.year + months // 12, months % 12 + 1, 1, tzinfo=UTC)

    def name(self, number: int, cron: str = "a") -> str:
        """The RayJob of that month."""
        return f"{cron}-{int(self.month(number).timestamp()) // 60}"

    async def create(self, name: str = "a", **spec: Any) -> Json:
        """Make a RayCronJob. Nobody looks after its RayJobs but the test."""
        cron = make.raycronjob(name, make.namespace(self.namespace), make.spec(schedule="0 0 1 * *", **spec))
        cron["spec"]["jobTemplate"]["managedBy"] = "kueue.x-k8s.io/multikueue"
        return await self.client.create(RAY_CRON_JOBS, cron, reason="a test")

    async def edit(self, patch: Json, name: str = "a") -> Json:
        """Change a RayCronJob."""
        return await self.client.patch(RAY_CRON_JOBS, name, self.namespace, patch, reason="a test")

    async def cron(self, name: str = "a") -> Json:
        """A RayCronJob as it is now."""
        return await self.client.get(RAY_CRON_JOBS, name, self.namespace)

    async def status(self, name: str = "a") -> Json:
        """The status of a RayCronJob."""
        found: Json = (await self.cron(name)).get("status", {})
        return found

    async def jobs(self, cron: str = "a") -> list[Json]:
        """The RayJobs that carry a RayCronJob's label, in the order of their times."""
        selector = f"{labels.CRONJOB_NAME}={cron}"
        found = (await self.client.list(RAY_JOBS, self.namespace, label_selector=selector)).items
        return sorted(found, key=lambda job: str(job["metadata"]["name"]))

    async def names(self, cron: str = "a") -> list[str]:
        """Names of the RayJobs of a RayCronJob."""
        return [str(job["metadata"]["name"]) for job in await self.jobs(cron)]

    async def finish(self, name: str, state: str = "Complete", outcome: str = "SUCCEEDED") -> None:
        """Let a RayJob end, as its own controller would say it."""
        end = self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        body = {"status": {"jobDeploymentStatus": state, "jobStatus": outcome, "endTime": end}}
        await self.client.patch(RAY_JOBS, name, self.namespace, body, subresource="status", reason="a test")

    async def said(self, reason: str) -> list[str]:
        """The notes of all events with a reason."""
        found = (await self.client.list(EVENTS, self.namespace)).items
        return [event["note"] for event in found if event["reason"] == reason]


Begin = Callable[[], AbstractAsyncContextManager[Stage]]


@pytest.fixture
def begin(control_plane: ControlPlane, namespace: str) -> Begin:
    """Begins a test: ``async with begin() as stage``."""
    install_crds(control_plane)

    @asynccontextmanager
    async def staged() -> AsyncIterator[Stage]:
        async with await Client.connect(control_plane.kubeconfig, qps=0) as client:
            yield Stage(client, control_plane, namespace)

    return staged
