"""Looking for garbage less often, and giving memory back."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kuberay_op.clock import SystemClock
from kuberay_op.kube.client import Client
from kuberay_op.kube.resource import PODS
from kuberay_op.metrics import Metrics
from kuberay_op.runtime import memory
from kuberay_op.runtime.manager import Manager
from kuberay_op.testing.faults import plain_kubeconfig
from kuberay_op.testing.replay import Recording, ReplayServer


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """The collector belongs to the whole test run."""
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_garbage_is_looked_for_less_often_but_still_found() -> None:
    memory.tune()
    assert gc.get_threshold() == memory.THRESHOLDS
    assert gc.isenabled()


def test_what_is_cached_is_not_looked_at_again() -> None:
    cached = [{"a": [n]} for n in range(1_000)]
    memory.settle()
    assert gc.get_freeze_count() > len(cached)
    assert not any(obj is cached for obj in gc.get_objects())


def test_a_system_without_malloc_trim_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    memory.settle()
    assert gc.get_freeze_count() > 0


async def test_the_manager_says_when_its_caches_are_filled(tmp_path: Path) -> None:
    recording = Recording.of(
        "/api/v1/pods", "v1", "Pod", [{"metadata": {"name": f"p{n}"}} for n in range(50)]
    )
    filled: list[int] = []
    async with (
        ReplayServer(recording, rate=1) as server,
        await Client.connect(plain_kubeconfig(server.url, tmp_path / "kubeconfig")) as client,
    ):
        rng = random.Random(1)  # noqa: S311 - jitter
        manager = Manager(client, clock=SystemClock(), rng=rng, metrics=Metrics(process=False))
        pods = manager.cache(PODS)

        def on_filled() -> None:
            filled.append(len(pods))
            manager.stop.set()

        manager.on_filled = on_filled
        await asyncio.wait_for(manager.run(), 20)
    assert filled == [50]
