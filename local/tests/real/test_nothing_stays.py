"""After ``down`` the machine is as it was: processes, mounts, namespaces, links, firewall, cgroups, files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil
import pytest

from kuberay_op_local import components, processes
from kuberay_op_local.real import kernel, packages
from kuberay_op_local.real.able import real_cluster

pytestmark = [pytest.mark.apiserver, pytest.mark.real_node]

COMMAND: Final = (sys.executable, "-c", "from kuberay_op.cli import main; main()", "local")

#: Folders in which a container runtime likes to leave things.
FOLDERS: Final = ("/etc", "/opt", "/run", "/var/lib", "/var/log", "/usr/libexec")


@pytest.fixture
def state(able: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield tmp_path
    subprocess.run([*COMMAND, "down", "--name", "gone"], check=False, capture_output=True)


def output(*command: str) -> str:
    program = packages.path_of(command[0])
    return subprocess.run([program, *command[1:]], capture_output=True, text=True, check=True).stdout


def firewall() -> set[str]:
    """The rules of the machine itself; comments and counters left out."""
    lines = output("iptables-save").splitlines()
    return {line.partition(" [")[0] for line in lines if not line.startswith("#")}


def machine(state: Path) -> dict[str, set[str]]:
    """Everything of this machine that a node could leave behind."""
    ours = [process for process in psutil.process_iter() if _of_node(process, str(state))]
    return {
        "processes": {f"{process.name()} {process.pid}" for process in ours if processes.alive(process)},
        "mounts": {
            line for line in Path("/proc/self/mounts").read_text().splitlines() if "kuberay-op" in line
        },
        "links": {name for name in psutil.net_if_addrs() if name.startswith(("kr", "cni", "tap"))},
        "routes": {line for line in output("ip", "route").splitlines() if "10.213." in line},
        "namespaces": set(output("lsns", "-n", "-t", "net", "-o", "NS").split()),
        "firewall": firewall(),
        "cgroups": {str(path) for path in kernel.CGROUPS.glob("*/kuberay-op-*")}
        | {str(path) for path in kernel.CGROUPS.glob("kuberay-op-*")},
        "settings": {f"{name}={(kernel.SETTINGS / name).read_text()}" for name in kernel.KUBELET_WRITES},
        "files": {str(path) for path in state.rglob("*")},
        "folders": {entry.path for folder in FOLDERS for entry in os.scandir(folder) if _ours(entry.name)},
    }


def _of_node(process: psutil.Process, mine: str) -> bool:
    """Whether a process belongs to the node: by its words, or by what only a node runs."""
    try:
        words = [*process.cmdline(), *process.environ().values()]
        return mine in " ".join(words) or process.name() in {"catatonit", "containerd-shim", "pause"}
    except psutil.Error:
        return False


def _ours(name: str) -> bool:
    return any(word in name for word in ("cni", "containerd", "kube", "netns", "slirp", "kuberay"))


def settled(state: Path, wanted: dict[str, set[str]]) -> dict[str, set[str]]:
    """What is there once the kernel has taken a dead network away, which it does in its own time."""
    deadline = time.monotonic() + 20
    while (found := machine(state)) != wanted and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def test_down_leaves_the_machine_as_it_was(state: Path) -> None:
    before = machine(state)
    with real_cluster("gone") as cluster:
        cluster.kubectl("run", "one", "--image=kuberay-op.local/pause:1", "--restart=Never")
        cluster.kubectl("wait", "--for=condition=Ready", "pod/one", "--timeout=120s")
        during = machine(state)
        for what in ("processes", "links", "routes", "namespaces", "cgroups", "files"):
            assert during[what] - before[what], f"the comparison does not see {what}"
        assert during["settings"] != before["settings"] or "vm/overcommit_memory=1\n" in before["settings"]
        assert during["firewall"] == before["firewall"], "the node has a firewall of its own"
    assert settled(state, before) == before


@pytest.mark.parametrize("moment", [components.NAMESPACES, components.CONTAINERD, components.KUBELET])
def test_an_interrupted_up_is_removed_by_down(state: Path, moment: str) -> None:
    before = machine(state)
    root = state / "kuberay-op" / "clusters" / "gone"
    with subprocess.Popen(
        [*COMMAND, "up", "--name", "gone", "--node", "real"], stderr=subprocess.PIPE, text=True
    ) as up:
        while moment not in processes.find(root):
            assert up.poll() is None
            time.sleep(0.01)
        up.send_signal(signal.SIGINT)
        up.communicate(timeout=200)
    assert up.returncode == 130
    subprocess.run([*COMMAND, "down", "--name", "gone"], check=True, capture_output=True)
    assert settled(state, before) == before
