"""The operators that are compared, as processes: how each is started, and what it uses.

``ours`` runs with its defaults. The reference runs with its defaults and tuned (ten passes at once, 500 calls
a second). The ``floor`` makes the same writes and thinks of nothing: what the control plane allows.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
import yaml

from kuberay_op.errors import OperatorError
from kuberay_op.testing.reference import our_command, reference_program
from kuberay_op_local import ports

OURS: Final = "ours"
DEFAULT: Final = "reference"
TUNED: Final = "reference, tuned"
FLOOR: Final = "floor"

#: All of them, in the order in which they take turns.
PEERS: Final = (DEFAULT, OURS, TUNED, FLOOR)

#: What the reference is tuned with.
TUNING: Final = {"reconcileConcurrency": 10, "qps": 500, "burst": 1000}

READY_SECONDS: Final = 120.0
STOP_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used so far, and holds now."""

    cpu: float
    resident: float
    peak: float
    read: float
    written: float

    def since(self, before: Usage) -> Usage:
        """What was used after ``before``; memory is as it is now."""
        return Usage(
            self.cpu - before.cpu,
            self.resident,
            self.peak,
            self.read - before.read,
            self.written - before.written,
        )


class Peer:
    """One of the operators at work."""

    def __init__(self, process: subprocess.Popen[bytes], health: int | None, started: float) -> None:
        self._process = process
        self._watched = psutil.Process(process.pid)
        self._health = health
        #: When it was started, on the clock of ``time.time``.
        self.started = started

    def usage(self) -> Usage:
        """CPU seconds, and megabytes of memory and of bytes read and written (sockets included)."""
        times = self._watched.cpu_times()
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        read_write = dict(
            line.split(": ") for line in Path(f"/proc/{self._process.pid}/io").read_text().splitlines()
        )
        return Usage(
            cpu=times.user + times.system,
            resident=_kilobytes(fields["VmRSS"]) / 1024,
            peak=_kilobytes(fields["VmHWM"]) / 1024,
            read=int(read_write["rchar"]) / 2**20,
            written=int(read_write["wchar"]) / 2**20,
        )

    def wait_ready(self) -> None:
        """Wait until it says that it is ready."""
        deadline = time.monotonic() + READY_SECONDS
        while not self._ready():
            if self._process.poll() is not None:
                raise OperatorError(f"the operator ended with {self._process.returncode}; see its log")
            if time.monotonic() > deadline:
                raise OperatorError(f"the operator was not ready within {READY_SECONDS:.0f} s; see its log")
            time.sleep(0.05)

    def _ready(self) -> bool:
        if self._health is None:
            return True
        try:
            url = f"http://127.0.0.1:{self._health}/readyz"
            return httpx.get(url, timeout=2.0, trust_env=False).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def stop(self) -> None:
        """End it, in good order if it lets us."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


@contextmanager
def running(
    name: str, *, kubeconfig: Path, namespace: str, folder: Path, command: Sequence[str] | None = None
) -> Iterator[Peer]:
    """One of the operators, on one namespace (or several, with commas), ready, while the block lasts.

    ``command`` starts it in another way.
    """
    rng = random.Random()  # noqa: S311 (for ports)
    health, metrics = ports.choose(("health", "metrics"), avoid=(), rng=rng).values()
    settings: dict[str, Any] = {
        "apiVersion": "config.ray.io/v1alpha1",
        "kind": "Configuration",
        "watchNamespace": namespace,
        "probeAddr": f"127.0.0.1:{health}",
        "metricsAddr": f"127.0.0.1:{metrics}",
        "enableLeaderElection": False,
        "enableMetrics": True,
        **(TUNING if name == TUNED else {}),
    }
    file = folder / "configuration.yaml"
    file.write_text(yaml.safe_dump(settings))
    log = folder / "operator.log"
    environment: Mapping[str, str] = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "KUBECONFIG": str(kubeconfig),
        "NAMESPACE": namespace,
    }
    with log.open("ab") as output:
        started = time.time()
        words = [*(command or _command(name)), *([] if name == FLOOR else [f"--config={file}"])]
        process = subprocess.Popen(words, env=environment, stdout=output, stderr=output)
    peer = Peer(process, None if name == FLOOR else health, started)
    try:
        peer.wait_ready()
        yield peer
    finally:
        peer.stop()


def _command(name: str) -> list[str]:
    if name == FLOOR:
        return [sys.executable, "-m", "kuberay_op_bench.floor"]
    return our_command() if name == OURS else [str(reference_program())]


def _kilobytes(text: str) -> int:
    return int(text.split(maxsplit=1)[0])
