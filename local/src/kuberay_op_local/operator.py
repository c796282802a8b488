"""Our operator on a local cluster: a process beside the components, found and ended as they are."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import httpx

from kuberay_op_local import components, health, paths, ports, processes
from kuberay_op_local.cluster import Cluster, quiet
from kuberay_op_local.components import OPERATOR
from kuberay_op_local.errors import LocalError
from kuberay_op_local.real.world import World
from kuberay_op_local.run import Say

#: How long the operator may take until its caches are filled.
READY_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.1
SAY_SECONDS: Final = 2.0


def install(cluster: Cluster, flags: Sequence[str] = (), *, say: Say = quiet) -> None:
    """Install the CRDs and start the operator, or start it anew with other flags; waits until it works."""
    program = _program()
    say("installing the CRDs")
    printed = subprocess.run([program, "crds"], check=True, capture_output=True, text=True).stdout
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=printed)
    # Before the server has looked at a CRD it has no status, and `kubectl wait` gives up on that.
    for what in ("jsonpath={.status.conditions}", "condition=Established"):
        cluster.kubectl("wait", f"--for={what}", "crd/rayclusters.ray.io", "--timeout=60s")

    root = cluster.layout.root
    running = processes.find(root)
    if OPERATOR in running:
        processes.kill([running[OPERATOR]])
    chosen = ports.choose(
        ("health", "metrics"),
        avoid=ports.reserved(paths.clusters_dir()),
        rng=random.Random(),  # noqa: S311 (not a secret)
    )
    began = time.monotonic()
    host = cluster.spec.host
    arguments = [
        "run",
        f"--kubeconfig={cluster.kubeconfig}",
        f"--health-probe-bind-address={host}:{chosen['health']}",
        f"--metrics-addr={host}:{chosen['metrics']}",
        "--enable-leader-election=false",
        *flags,
    ]
    command = [str(program), *arguments]
    if (
        components.NAMESPACES in running
    ):  # on a real node Ray is reached by names and addresses of the cluster
        command = [*World.of(running[components.NAMESPACES]).enter(mounts=True), *command]
    process = processes.start(
        Path(command[0]),
        command[1:],
        root=root,
        component=OPERATOR,
        log=cluster.layout.log(OPERATOR),
    )
    spoken = began
    while not _ready(host, chosen["health"]):
        now = time.monotonic()
        if not processes.alive(process):
            raise health.failure(
                OPERATOR, "ended while it was starting", cluster.layout, cluster=cluster.name
            )
        if now - began > READY_SECONDS:
            what = f"was not ready after {READY_SECONDS:.0f} seconds"
            raise health.failure(OPERATOR, what, cluster.layout, cluster=cluster.name)
        if now - spoken >= SAY_SECONDS:
            spoken = now
            say(f"waiting for the operator: {now - began:.0f} s")
        time.sleep(POLL_SECONDS)
    took = f"{time.monotonic() - began:.1f} s"
    say(f"the operator works after {took}; its metrics: http://{host}:{chosen['metrics']}/metrics")


def _program() -> Path:
    """The ``kuberay-op`` of this environment."""
    program = Path(sys.executable).with_name("kuberay-op")
    if not program.exists():
        raise LocalError(
            "the operator is not installed beside kuberay-op-local; install the package kuberay-op"
        )
    return program


def _ready(host: str, port: int) -> bool:
    try:
        answer = httpx.get(f"http://{host}:{port}/readyz", timeout=2.0, trust_env=False)
    except httpx.TransportError:
        return False
    return answer.status_code == httpx.codes.OK
