"""Starting, finding and stopping the components.

A component is recognised by two variables in its environment (which cluster, which component) and not by a
pid file: such a mark cannot go stale, cannot name a stranger, and exists from the first instant of the
process, so that whatever an interrupted ``up`` left behind is found again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import psutil

CLUSTER: Final = "KUBERAY_OP_LOCAL_CLUSTER"
COMPONENT: Final = "KUBERAY_OP_LOCAL_COMPONENT"

#: How long a killed process may take to vanish (the kernel frees its memory first).
VANISH_SECONDS: Final = 10.0


def start(
    program: Path, arguments: Sequence[str], *, root: Path, component: str, log: Path
) -> psutil.Process:
    """Start a component of the cluster in ``root``, in a session of its own: Ctrl-C passes it by."""
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    pid = os.posix_spawn(
        program,
        [str(program), *arguments],
        environment(root, component),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), append, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    return psutil.Process(pid)


def environment(root: Path, component: str) -> Mapping[str, str]:
    """The environment of a component: ours, without proxies (all traffic is on loopback), with the marks."""
    inherited = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    return {**inherited, CLUSTER: str(root), COMPONENT: component}


def find(root: Path) -> dict[str, psutil.Process]:
    """The living components of the cluster in ``root``, by name."""
    found: dict[str, psutil.Process] = {}
    for process in psutil.process_iter():
        try:
            marks = process.environ()
        except psutil.Error:  # somebody else's, or just gone, or a zombie
            continue
        if marks.get(CLUSTER) == str(root) and alive(process):
            found[marks.get(COMPONENT, str(process.pid))] = process
    return found


def alive(process: psutil.Process) -> bool:
    """Whether the process still runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def kill(targets: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Kill at once and wait; gives those that did not go.

    No polite signal first: a cluster's data is thrown away with it, and the API server would take its time.
    """
    for process in targets:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    _, left = psutil.wait_procs(targets, timeout=VANISH_SECONDS)
    return [process for process in left if alive(process)]
