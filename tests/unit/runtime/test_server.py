"""Probes and metrics over real sockets."""

from __future__ import annotations

import socket

import aiohttp
import pytest

from kuberay_op.errors import Misconfigured
from kuberay_op.metrics import Metrics
from kuberay_op.runtime.health import Health
from kuberay_op.runtime.server import health_routes, metrics_routes, serving

HERE = ("127.0.0.1", 0)


async def get(address: tuple[str, int], path: str) -> tuple[int, str, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{address[0]}:{address[1]}{path}") as response,
    ):
        return response.status, await response.text(), response.headers["Content-Type"]


async def test_a_probe_gives_a_line_per_check_and_fails_with_any() -> None:
    problem: str | None = None

    async def check() -> str | None:
        return problem

    health = Health(live={"loop": check}, ready={"caches": check})
    async with serving(HERE, health_routes(health), option="--health-probe-bind-address") as address:
        assert await get(address, "/healthz") == (200, "[+]loop ok\nok\n", "text/plain; charset=utf-8")
        problem = "pods are missing"
        status, text, _ = await get(address, "/readyz")
        assert (status, text) == (500, "[-]caches failed: pods are missing\nfailed\n")


async def test_metrics_are_served_in_the_format_asked_for() -> None:
    metrics = Metrics(process=False)
    metrics.leader("ray-operator-leader", leading=True)
    async with serving(HERE, metrics_routes(metrics), option="--metrics-addr") as address:
        status, text, kind = await get(address, "/metrics")
        assert status == 200
        assert 'leader_election_master_status{name="ray-operator-leader"} 1.0' in text
        assert kind.startswith("text/plain; version=")


async def test_a_taken_port_is_one_clear_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Misconfigured) as caught:
            async with serving(("127.0.0.1", port), [], option="--metrics-addr"):
                raise AssertionError("it must not come up")
    assert str(caught.value) == (
        f"--metrics-addr is '127.0.0.1:{port}', but another program listens there; "
        "choose another port, or 0 for none"
    )


async def test_an_address_that_is_not_ours_is_one_clear_sentence() -> None:
    with pytest.raises(Misconfigured, match="where we cannot listen"):
        async with serving(("192.0.2.1", 8080), [], option="--metrics-addr"):
            raise AssertionError("it must not come up")
