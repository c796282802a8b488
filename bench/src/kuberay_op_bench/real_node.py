"""A real node and the operator's image on it: how long until they are ready, and how big the image is."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import statistics
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any, Final

import psutil

from kuberay_op_bench.report import HOME, Measure, Report
from kuberay_op_local import components, processes, versions
from kuberay_op_local.cluster import Cluster
from kuberay_op_local.images import build
from kuberay_op_local.real.world import World

CHECKOUT: Final = HOME.parent
READY_SECONDS: Final = 120.0
NAMESPACE: Final = "default"

#: Runs inside the node's network and prints when the operator says that it is ready.
ASK: Final = """
import sys, time, urllib.request
while True:
    try:
        if urllib.request.urlopen(sys.argv[1], timeout=1).status == 200:
            break
    except OSError:
        time.sleep(0.02)
print(time.time())
"""


def run(*, rounds: int = 3) -> Report:
    """Bring a real node up and down, and start the operator from its image; the medians of the rounds."""
    image = build.build("operator", source=CHECKOUT, given={}, say=lambda _: None)
    times = [_seconds(image.archive, image.name) for _ in range(rounds)]
    up, down, ready = (statistics.median(column) for column in zip(*times, strict=True))
    measures = (
        Measure("node Ready, programs at hand", round(up, 2), "s", at_most=25.0),
        Measure("down", round(down, 2), "s"),
        Measure("operator in its image, start to ready", round(ready, 2), "s", at_most=3.0),
        Measure("operator image, compressed", compressed(Path(image.archive)), "MB", at_most=100.0),
    )
    return Report("real_node", measures, {"rounds": rounds, "Kubernetes": versions.KUBERNETES})


def compressed(archive: Path) -> float:
    """The size of an image as registries keep it: each layer by itself, gzip."""
    total = 0
    with tarfile.open(archive) as tar:
        (manifest,) = json.load(tar.extractfile("manifest.json") or io.BytesIO())
        for name in manifest["Layers"]:
            layer = tar.extractfile(name)
            total += len(gzip.compress(layer.read(), compresslevel=6)) if layer else 0
    return round(total / 1e6, 1)


def _seconds(archive: str, image: str) -> tuple[float, float, float]:
    """Seconds until the node is Ready, of down, and of the operator's start."""
    name = f"bench-{os.getpid()}"
    times = [time.perf_counter()]
    try:
        cluster = Cluster.up(name, node="real")
        times.append(time.perf_counter())
        cluster.load(archive)
        ready = _operator(cluster, image)
        times.append(time.perf_counter())
    finally:
        Cluster(name).down()
    times.append(time.perf_counter())
    up, _, down = (after - before for before, after in itertools.pairwise(times))
    return up, down, ready


def _operator(cluster: Cluster, image: str) -> float:
    """Seconds from the first instant of the operator's process to its first "ready"."""
    program = Path(sys.executable).with_name("kuberay-op")
    crds = subprocess.run([program, "crds"], check=True, capture_output=True, text=True).stdout
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=crds)
    account = f"{NAMESPACE}:default"
    cluster.kubectl(
        "create", "clusterrolebinding", "op", "--clusterrole=cluster-admin", f"--serviceaccount={account}"
    )
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(_pod(image)))
    address = _address(cluster)
    holder = processes.find(cluster.layout.root)[components.NAMESPACES]
    inside = World.of(holder)
    url = f"http://{address}:8082/readyz"
    asked = subprocess.run(
        [*inside.enter(), sys.executable, "-c", ASK, url],
        check=True,
        capture_output=True,
        text=True,
        timeout=READY_SECONDS,
    )
    started = min(
        process.create_time()
        for process in psutil.Process(inside.pid).children(recursive=True)
        if _is_operator(process)
    )
    return float(asked.stdout) - started


def _pod(image: str) -> dict[str, Any]:
    safe = {"readOnlyRootFilesystem": True, "runAsNonRoot": True, "allowPrivilegeEscalation": False}
    container = {
        "name": "operator",
        "image": image,
        "securityContext": safe,
        "imagePullPolicy": "Never",
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - in the container, as in our chart
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "operator", "namespace": NAMESPACE},
        "spec": {"containers": [container], "volumes": [{"name": "tmp", "emptyDir": {}}]},
    }


def _address(cluster: Cluster) -> str:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if found := cluster.kubectl("get", "pod", "operator", "-o", "jsonpath={.status.podIP}"):
            return found
        time.sleep(0.05)
    raise TimeoutError("the operator's Pod has no address")


def _is_operator(process: psutil.Process) -> bool:
    try:
        return any(word.endswith("/manager") for word in process.cmdline())
    except psutil.Error:
        return False
