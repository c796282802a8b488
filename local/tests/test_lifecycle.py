"""The command as users run it: side by side, interrupted, without root, on bad input."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
import pytest

from kuberay_op_local import binaries, components, processes, versions

pytestmark = pytest.mark.apiserver

COMMAND: Final = (sys.executable, "-c", "from kuberay_op.cli import main; main()", "local")


@dataclass
class Machine:
    """A home folder with all that ``kuberay-op local`` may write to, and a folder with programs."""

    home: Path
    programs: Path

    def environment(self) -> dict[str, str]:
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(self.home / "tmp"),
            "XDG_STATE_HOME": str(self.home / "state"),
            "KUBERAY_OP_BINARIES": str(self.programs),
            "KUBERAY_OP_RELEASES": "none",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, *arguments],
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.home,
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        with self.start(*arguments) as process:
            out, err = process.communicate(timeout=200)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def files(self) -> set[str]:
        return {str(path) for path in self.home.rglob("*")}

    def processes(self) -> set[str]:
        """Command lines of all processes that have to do with this home."""
        found: set[str] = set()
        for process in psutil.process_iter():
            try:
                command = " ".join(process.cmdline())
                if str(self.home) in command + " ".join(process.environ().values()):
                    found.add(command)
            except psutil.Error:
                continue
        return found

    def components(self, name: str) -> set[str]:
        return set(processes.find(self.home / "state" / "kuberay-op" / "clusters" / name))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    programs = tmp_path / "programs"
    programs.mkdir()
    found = binaries.resolve(
        versions.ALL_TOOLS, kubernetes=versions.KUBERNETES, folder=None, say=lambda _: None, make=False
    )
    for tool, path in found.items():
        (programs / tool).symlink_to(path)
    home = tmp_path / "home"
    for folder in ("tmp", "state"):
        (home / folder).mkdir(parents=True)
    made = Machine(home, programs)
    yield made
    for name in ("default", "other"):
        if made.components(name):
            made.run("down", "--name", name)


def eventually(check: Callable[[], bool], seconds: float = 200.0) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


def test_down_leaves_no_process_and_no_file(machine: Machine) -> None:
    before = (machine.files(), machine.processes())
    assert machine.run("up", "--node", "kwok:2").returncode == 0
    assert machine.run("kubectl", "get", "nodes").returncode == 0
    assert machine.run("helm", "list").returncode == 0
    assert len(machine.processes() - before[1]) == len(components.ALL)
    assert machine.files() > before[0]
    assert machine.run("down").returncode == 0
    assert (machine.files(), machine.processes()) == before


def test_clusters_live_side_by_side(machine: Machine) -> None:
    with machine.start("up") as first, machine.start("up", "--name", "other") as second:
        first.communicate(timeout=200)
        second.communicate(timeout=200)
    for name in ("default", "other"):
        assert machine.run("status", "--name", name).returncode == 0
    assert machine.run("kubectl", "create", "namespace", "only-here").returncode == 0
    other = machine.run("kubectl", "--name", "other", "get", "namespace", "only-here")
    assert other.returncode == 1
    assert "not found" in other.stderr
    assert machine.run("down").returncode == 0
    assert machine.run("status", "--name", "other").returncode == 0
    missing = machine.run("env")
    assert missing.returncode == 1
    assert "there is no cluster 'default' (there are: other)" in missing.stderr


@pytest.mark.parametrize("moment", ["", "kube-apiserver", "kwok"])
def test_an_interrupted_up_is_removed_by_down(machine: Machine, moment: str) -> None:
    before = (machine.files(), machine.processes())
    root = machine.home / "state" / "kuberay-op" / "clusters" / "default"
    with machine.start("up", "--node", "kwok:2") as up:
        eventually(lambda: root.exists() if not moment else moment in machine.components("default"))
        up.send_signal(signal.SIGINT)
        _, err = up.communicate(timeout=200)
    assert up.returncode == 130
    assert "interrupted" in err
    assert machine.run("down").returncode == 0
    assert (machine.files(), machine.processes()) == before


def test_an_interrupted_up_is_finished_by_the_next(machine: Machine) -> None:
    with machine.start("up") as up:
        eventually(lambda: "kube-apiserver" in machine.components("default"))
        up.send_signal(signal.SIGINT)
        up.communicate(timeout=200)
    assert machine.run("up").returncode == 0
    assert machine.run("status").returncode == 0


def test_two_ups_at_once_make_one_cluster(machine: Machine) -> None:
    with machine.start("up") as first, machine.start("up") as second:
        first.communicate(timeout=200)
        second.communicate(timeout=200)
    assert (first.returncode, second.returncode) == (0, 0)
    assert machine.components("default") == set(components.CONTROL_PLANE)


def test_it_works_without_root(machine: Machine) -> None:
    """In a user namespace of its own even root has no power over the machine."""
    alone = ("unshare", "--user")
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine allows no user namespaces")
    command = shlex.join(COMMAND)
    script = f"{command} up --node kwok:1 && {command} status && id -u && {command} down"
    done = subprocess.run(
        [*alone, "sh", "-c", script],
        env=machine.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "cluster default: running" in done.stdout
    assert done.stdout.splitlines()[-1] != "0"
    assert not machine.components("default")


def test_it_works_without_any_network(machine: Machine) -> None:
    alone = ("unshare", "--user", "--map-root-user", "--net", "sh", "-c")
    if subprocess.run([*alone, "ip link set lo up"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine allows no network namespaces, or has no ip command")
    command = shlex.join(COMMAND)
    done = subprocess.run(
        [*alone, f"ip link set lo up && {command} up --node kwok:1 && {command} down"],
        env=machine.environment() | {"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_taken_port_is_one_sentence(machine: Machine) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        result = machine.run("up", "--port", str(port))
    assert result.returncode == 1
    assert result.stderr == f"Error: port {port} is taken by another program; choose a free one with --port\n"
    assert list((machine.home / "state").iterdir()) == []


def test_a_chosen_port_is_used(machine: Machine) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    assert machine.run("up", "--port", str(port)).returncode == 0
    assert f"https://127.0.0.1:{port}" in machine.run("status").stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small tmpfs needs root")
def test_a_full_disk_is_one_sentence(machine: Machine) -> None:
    state = machine.home / "state"
    mounted = subprocess.run(
        ["/bin/mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(state)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("this machine does not let us mount a tmpfs")
    try:
        result = machine.run("up")
        left = list(state.iterdir())
    finally:
        subprocess.run(["/bin/umount", str(state)], check=True)
    assert result.returncode == 1
    assert "MB left and 300 MB are needed; free some space" in result.stderr
    assert result.stderr.count("\n") == 1
    assert left == []


def test_a_missing_program_is_one_sentence(machine: Machine) -> None:
    (machine.programs / "kube-scheduler").unlink()
    result = machine.run("up")
    assert result.returncode == 1
    assert "has no program kube-scheduler; put it there or leave out --binaries" in result.stderr


def test_no_programs_and_no_way_to_make_them_is_one_clear_text(machine: Machine) -> None:
    shutil.rmtree(machine.programs)
    environment = {
        **machine.environment(),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "UV_OFFLINE": "1",
    }
    del environment["KUBERAY_OP_BINARIES"]
    done = subprocess.run([*COMMAND, "up"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Go 1.26 or later is needed to build Kubernetes; it is not on PATH" in done.stderr
    assert "try: install Go, or name a folder with programs: --binaries" in done.stderr


@pytest.mark.parametrize("version", ["abc", "9.9.9", "1.36"])
def test_a_wrong_version_is_one_sentence(machine: Machine, version: str) -> None:
    result = machine.run("up", "--kubernetes", version)
    assert result.returncode == 1
    assert result.stderr.startswith(f"Error: {version!r} is not a Kubernetes version; give all three numbers")
    assert result.stderr.count("\n") == 1


def test_programs_of_another_version_are_refused(machine: Machine) -> None:
    result = machine.run("up", "--kubernetes", "1.34.4")
    assert result.returncode == 1
    assert f"is Kubernetes {versions.KUBERNETES}, not 1.34.4" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("up", "--node", "kwok:many"),
            "--node 'kwok:many' is not known; use kwok:COUNT (1 to 5000), real or none",
        ),
        (("up", "--name", "A B"), "--name 'A B' is not allowed"),
        (
            ("kubectl", "get", "pods"),
            "there is no cluster 'default'; `kuberay-op local up",
        ),
        (("logs", "etcd"), "there is no cluster 'default'"),
        (("status",), "cluster 'default' is absent; `kuberay-op local up --name default` brings it up"),
    ],
)
def test_other_bad_input_is_one_sentence(machine: Machine, arguments: tuple[str, ...], sentence: str) -> None:
    result = machine.run(*arguments)
    assert result.returncode == 1
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1


def test_down_of_nothing_is_no_failure(machine: Machine) -> None:
    result = machine.run("down")
    assert result.returncode == 0
    assert result.stderr == "there is no cluster 'default'\n"
