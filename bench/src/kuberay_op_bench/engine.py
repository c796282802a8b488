"""The engine: how much memory a cache takes, how fast it fills, how many events a second it bears.

Every number comes from a process that does nothing else (``probe``). The list is served by a real API
server and received in turn by curl and by the engine, so that both meet the same machine; the events are
replayed by a process on another core, since no API server on a small machine makes 2,000 a second.
"""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlencode

import orjson
import yaml

from kuberay_op.errors import Misconfigured, OperatorError
from kuberay_op.kube.client import Client
from kuberay_op.kube.resource import NAMESPACES, PODS, SERVICE_ACCOUNTS
from kuberay_op.kube.watch import INITIAL_EVENTS_END
from kuberay_op.testing.faults import plain_kubeconfig
from kuberay_op_bench import pods as made
from kuberay_op_bench.report import Measure, Report

#: A rate that no server reaches: everything at once.
FULL_SPEED: Final = 10**9

#: Creations under way at once; the API server is the limit.
CREATORS: Final = 32


@dataclass(frozen=True, slots=True)
class Source:
    """A server with the Pods, as the client and as curl reach it."""

    kubeconfig: Path
    url: str
    curl_options: tuple[str, ...] = ()


def run(
    *, pods: int = 10_000, rate: int = 2_000, seconds: int = 30, rounds: int = 5, server: str = "real"
) -> Report:
    """Measure; the median of the rounds counts. See ``kuberay-op bench engine --help``."""
    if shutil.which("curl") is None:
        raise Misconfigured("the benchmark compares with curl, which is not installed; install it")
    with TemporaryDirectory(prefix="kuberay-op-bench-") as name:
        folder = Path(name)
        measures = [
            *_sync(pods, rounds, server, folder),
            *_events(pods, rate, rate * seconds, folder),
            *_full_speed(pods, rate * seconds, folder),
        ]
    settings = {
        "pods": pods,
        "events a second": rate,
        "for seconds": seconds,
        "rounds": rounds,
        "server": server,
    }
    return Report("engine", tuple(measures), settings)


def _sync(pods: int, rounds: int, server: str, folder: Path) -> Iterator[Measure]:
    with (_real if server == "real" else _replayed)(pods, folder) as source:
        curls, streams, syncs = [], [], []
        for _ in range(rounds):
            curls.append(_curl(source))
            streams.append(_curl_streamed(source))
            syncs.append(_probe("sync", source.kubeconfig, folder))
    if any(sync["pods"] != pods for sync in syncs):
        raise OperatorError(f"the cache holds {[sync['pods'] for sync in syncs]} Pods instead of {pods}")
    curl_seconds = median(curl["seconds"] for curl in curls)
    stream_seconds = median(streams)
    sync_seconds = median(sync["seconds"] for sync in syncs)
    yield Measure("size of the list", curls[0]["bytes"] / 2**20, "MB")
    yield Measure("curl receives the list", curl_seconds, "s")
    yield Measure("curl receives the list as a stream", stream_seconds, "s")
    yield Measure("the cache is filled (by a stream)", sync_seconds, "s")
    yield Measure("cache / curl with the same request", sync_seconds / stream_seconds, "×", at_most=1.5)
    yield Measure("cache / curl with a plain list", sync_seconds / curl_seconds, "×")
    yield Measure("CPU to fill the cache", median(sync["cpu"] for sync in syncs), "s")
    yield Measure("API calls to fill the cache", sum(syncs[0]["calls"].values()), "")
    yield Measure("memory growth with the cache", median(sync["growth"] for sync in syncs), "MB", at_most=40)
    yield Measure("resident memory of the process", median(sync["rss"] for sync in syncs), "MB")
    yield Measure("highest resident memory", median(sync["peak"] for sync in syncs), "MB")


def _events(pods: int, rate: int, events: int, folder: Path) -> Iterator[Measure]:
    with _replayed(pods, folder, events=events, rate=rate) as source:
        load = _probe("events", source.kubeconfig, folder, "--count", str(events), "--core", str(_cores()[0]))
    yield Measure("watch events taken in", load["events"] / load["seconds"], "a second", at_least=0.99 * rate)
    yield Measure("CPU of one core for that", 100 * load["cpu"] / load["seconds"], "%", at_most=100)
    yield Measure("passes of the controller", load["passes"] / load["seconds"], "a second")
    yield Measure("longest queue", load["depth_max"], "keys")
    yield Measure("longest queue in the second half", load["depth_last_half"], "keys")
    yield Measure("last event until the queue is empty", load["drain"], "s", at_most=1)
    yield Measure("lateness of the event loop, p99", 1000 * load["lag_p99"], "ms")
    yield Measure("lateness of the event loop, worst", 1000 * load["lag_max"], "ms")
    yield Measure("memory growth over the events", load["growth"], "MB")


def _full_speed(pods: int, events: int, folder: Path) -> Iterator[Measure]:
    with _replayed(pods, folder, events=events, rate=FULL_SPEED) as source:
        load = _probe("events", source.kubeconfig, folder, "--count", str(events), "--core", str(_cores()[0]))
    yield Measure("watch events at full speed", load["events"] / load["seconds"], "a second")
    yield Measure("CPU per 1,000 events", 1000 * load["cpu"] / load["events"], "s")


def _cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def _probe(what: str, kubeconfig: Path, folder: Path, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "kuberay_op_bench.probe", what, "--kubeconfig", str(kubeconfig)]
    done = subprocess.run(
        [*command, "--log", str(folder / "probe.log"), *options],
        stdout=subprocess.PIPE,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        raise OperatorError(f"the measurement {what!r} ended with code {done.returncode}; see above")
    result: dict[str, Any] = orjson.loads(done.stdout)
    return result


def _curl(source: Source) -> dict[str, float]:
    command = ["curl", "-sSf", "-o", os.devnull, "-w", "%{time_total} %{size_download}", *source.curl_options]
    try:
        done = subprocess.run([*command, source.url], capture_output=True, text=True, timeout=600, check=True)
    except subprocess.CalledProcessError as error:
        raise OperatorError(f"curl cannot read the list: {error.stderr.strip()}") from error
    seconds, size = done.stdout.split()
    return {"seconds": float(seconds), "bytes": float(size)}


def _curl_streamed(source: Source) -> float:
    """Seconds until curl has received the list in the way in which the engine asks for it."""
    query = urlencode(
        {
            "watch": "1",
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": "300",
        }
    )
    url = f"{source.url.partition('?')[0]}?{query}"
    started = time.perf_counter()
    command = ["curl", "-sSfN", *source.curl_options, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            for line in process.stdout or ():
                if INITIAL_EVENTS_END.encode() in line:
                    return time.perf_counter() - started
        finally:
            process.kill()
    raise OperatorError("curl cannot read the list as a stream; see above")


@contextmanager
def _replayed(pods: int, folder: Path, *, events: int = 0, rate: int = FULL_SPEED) -> Iterator[Source]:
    """The replay server, on the last core and in a process of its own."""
    command = [sys.executable, "-m", "kuberay_op_bench.replay", "--pods", str(pods)]
    with subprocess.Popen(
        [*command, "--events", str(events), "--rate", str(rate)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            url = process.stdout.readline().strip() if process.stdout else ""
            if not url:
                raise OperatorError("the replay server did not start; see above")
            os.sched_setaffinity(process.pid, {_cores()[-1]})
            path = PODS.path(made.NAMESPACE)
            yield Source(plain_kubeconfig(url, folder / "replay.kubeconfig"), f"{url}{path}")
        finally:
            if process.stdin:
                process.stdin.close()  # it takes that as its end


@contextmanager
def _real(pods: int, folder: Path) -> Iterator[Source]:
    """A control plane of our own with the Pods in it, removed afterwards."""
    # Late: the replay server serves those who cannot run Kubernetes here.
    from kuberay_op_local.cluster import Cluster

    cluster = Cluster(f"bench-{os.getpid()}")
    try:
        cluster = Cluster.up(cluster.name, only=("etcd", "kube-apiserver"))
        asyncio.run(_create(cluster.kubeconfig, pods))
        # Without being asked not to, the API server indents what it sends to curl.
        url = f"{cluster.server}{PODS.path(made.NAMESPACE)}?pretty=false"
        yield Source(cluster.kubeconfig, url, _curl_credentials(cluster.kubeconfig, folder))
    finally:
        cluster.down()


async def _create(kubeconfig: Path, count: int) -> None:
    async with await Client.connect(kubeconfig, qps=0) as client:
        about = {"metadata": {"name": made.NAMESPACE}}
        await client.create(NAMESPACES, about, reason="benchmark")
        account = {"metadata": {"name": "default", "namespace": made.NAMESPACE}}
        await client.create(SERVICE_ACCOUNTS, account, reason="benchmark")
        numbers = iter(range(count))

        async def create() -> None:
            for number in numbers:
                await client.create(PODS, made.manifest(number), reason="benchmark")
                await client.patch(
                    PODS,
                    made.name_of(number),
                    made.NAMESPACE,
                    {"status": made.status(number)},
                    subresource="status",
                    field_manager="kubelet",
                    reason="benchmark",
                )

        await asyncio.gather(*(create() for _ in range(CREATORS)))


def _curl_credentials(kubeconfig: Path, folder: Path) -> tuple[str, ...]:
    config = yaml.safe_load(kubeconfig.read_text())
    parts = {**config["clusters"][0]["cluster"], **config["users"][0]["user"]}
    options: list[str] = []
    for option, field in (
        ("--cacert", "certificate-authority-data"),
        ("--cert", "client-certificate-data"),
        ("--key", "client-key-data"),
    ):
        path = folder / field
        path.touch(mode=0o600)
        path.write_bytes(base64.b64decode(parts[field]))
        options += [option, str(path)]
    return tuple(options)
