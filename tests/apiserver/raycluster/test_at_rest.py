"""At rest the operator leaves the API server alone, as the server's own audit log tells."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.kube.client import Client
from kuberay_op.testing import make
from kuberay_op.testing.audit import AuditLog, Call
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.operator import eventually

pytestmark = [
    pytest.mark.apiserver,
    pytest.mark.loop_guard(milliseconds=10_000),  # this loop only drives; the operator is another process
]

USER = "operator-at-rest"
#: Passes over all clusters that are waited for.
RESYNCS = 5
#: Token authentication, without which no Secret is ever read.
TOKEN = make.spec(rayVersion="2.55.0", authOptions={"mode": "token"})


@asynccontextmanager
async def operator(plane: ControlPlane, log: Path) -> AsyncIterator[str]:
    """``kuberay-op run``, looking at every cluster each second; gives the address of its metrics."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from kuberay_op.cli import main; main()", "run"),
            f"--kubeconfig={plane.cluster.issue_client_cert(USER, ['system:masters'])}",
            "--leader-election-namespace=default",
            f"--metrics-addr={address}",
            "--health-probe-bind-address=0",
            env={**os.environ, "RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV": "1"},
            stdout=output,
            stderr=output,
        )
    try:
        yield f"http://{address}/metrics"
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 60) == 0, f"see {log}"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def passes(metrics: str) -> int:
    """How often the operator has looked at a RayCluster and found nothing to do."""
    async with aiohttp.ClientSession() as session, session.get(metrics) as answer:
        text = await answer.text()
    lines = re.findall(
        r'^controller_runtime_reconcile_total\{.*controller="raycluster".*\} (\S+)$', text, re.M
    )
    return sum(int(float(line)) for line in lines)


async def test_nothing_but_watches_the_lease_and_one_secret(own_cluster: Any, tmp_path: Path) -> None:
    audit = AuditLog(tmp_path, [USER], reads=True)
    arguments = {"kube-apiserver": audit.arguments()}
    plane: ControlPlane = own_cluster(only=None, node="kwok:2", extra_args=arguments)
    install_crds(plane)
    async with await Client.connect(plane.kubeconfig) as client, operator(plane, tmp_path / "log") as metrics:
        for name, parts in (("plain", ()), ("hosts", (make.workers(1, numOfHosts=2),)), ("token", (TOKEN,))):
            cluster = make.raycluster(name, make.workers(1, group="more"), *parts)
            await client.create(RAY_CLUSTERS, cluster, reason="a test")

        async def versions() -> set[str]:
            found = (await client.list(RAY_CLUSTERS, "default")).items
            ready = [each for each in found if each.get("status", {}).get("state") == "ready"]
            return {each["metadata"]["resourceVersion"] for each in ready}

        async def looked(more: int, than: int) -> bool:
            return await passes(metrics) >= than + more

        async def all_up() -> bool:
            return len(await versions()) == 3

        await eventually(all_up)
        began = await passes(metrics)
        await eventually(lambda: looked(3 * 2, began))  # what events are told about comes to an end
        quiet, known, began = await versions(), len(audit.calls()), await passes(metrics)
        await eventually(lambda: looked(3 * RESYNCS, began))
        calls, made = audit.calls()[known:], await passes(metrics) - began
        assert await versions() == quiet, "nothing was written"
    counts = Counter(map(kind, calls))
    secrets = counts.pop("get secrets", 0)
    assert set(counts) <= {"get leases", "update leases", "watch"}, counts
    assert 1 <= secrets <= made / 3 + 2, "one for each look at the one cluster that has a token"


def kind(call: Call) -> str:
    return "watch" if call.verb == "watch" else f"{call.verb} {call.resource}"
