"""Choosing and checking TCP ports on loopback."""

from __future__ import annotations

import contextlib
import json
import random
import socket
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from kuberay_op_local.errors import LocalError

#: Below the ports the kernel gives to outgoing connections and below those of NodePort Services.
RANGE: Final = range(20000, 30000)
ATTEMPTS: Final = 1000


def is_free(port: int) -> bool:
    """Whether nobody listens on the port of 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def choose(names: Iterable[str], *, avoid: Collection[int], rng: random.Random) -> dict[str, int]:
    """A free port for each name, none twice and none of ``avoid``."""
    taken = set(avoid)
    chosen: dict[str, int] = {}
    for name in names:
        for _ in range(ATTEMPTS):
            port = rng.choice(RANGE)
            if port not in taken and is_free(port):
                break
        else:
            raise LocalError(f"no free port for {name} between {RANGE.start} and {RANGE.stop - 1}")
        taken.add(port)
        chosen[name] = port
    return chosen


def reserved(clusters: Path) -> set[int]:
    """The ports of all clusters, also of those that do not run just now."""
    ports: set[int] = set()
    for file in clusters.glob("*/cluster.json"):
        with contextlib.suppress(OSError, ValueError, KeyError):  # half-made or just removed
            ports.update(json.loads(file.read_text())["ports"].values())
    return ports
