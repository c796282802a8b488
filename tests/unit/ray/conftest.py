"""What the tests of the Ray clients share: a fake Ray, and clients that reach it without sockets."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from kuberay_op.ray.breaker import State
from kuberay_op.ray.client import Connector, RayClient, Timeouts, TokenSource
from kuberay_op.ray.limits import Gates
from kuberay_op.ray.urls import direct
from kuberay_op.testing.clock import FakeClock
from kuberay_op.testing.fake_ray import FakeRay

#: Short enough for tests of things that never answer, long enough for a busy machine.
SOON = 0.2


class Recorder:
    """Metrics that a test can read."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self.states: list[tuple[str, State | None]] = []

    def request(self, *, call: str, outcome: str, seconds: float) -> None:
        assert seconds >= 0
        self.requests.append((call, outcome))

    def breaker(self, *, cluster: str, state: State | None) -> None:
        self.states.append((cluster, state))


@pytest.fixture(autouse=True)
def _guarded_loop(loop_guard: object) -> None:
    """No callback of these clients may hold the loop."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def metrics() -> Recorder:
    return Recorder()


@pytest.fixture
def gates(clock: FakeClock, metrics: Recorder) -> Gates:
    return Gates(clock=clock, rng=random.Random(1), metrics=metrics)  # noqa: S311 - jitter, not a secret


@pytest.fixture
def ray(clock: FakeClock) -> FakeRay:
    """A fake Ray without sockets, whose time is the test's."""
    return FakeRay(clock=clock)


@pytest.fixture
def connector(ray: FakeRay, clock: FakeClock, gates: Gates, metrics: Recorder) -> Connector:
    timeouts = Timeouts(direct=SOON, proxied=SOON)
    return Connector(direct=ray.transport(), gates=gates, clock=clock, timeouts=timeouts, metrics=metrics)


@pytest.fixture
def client(connector: Connector, ray: FakeRay) -> Callable[..., RayClient]:
    """Make a client for a fake cluster of this name."""

    def make(name: str = "ns/a", token: TokenSource | None = None) -> RayClient:
        ray.cluster(name)
        service, namespace = name.rsplit("/")[::-1]
        endpoint = direct(f"{service}.{namespace}.svc.cluster.local:8265")
        return connector.client(name, endpoint, token=token)

    return make
