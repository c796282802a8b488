"""Starting, finding and stopping processes, and telling why one failed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kuberay_op_local import health, processes
from kuberay_op_local.paths import Layout
from kuberay_op_local.run import run


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    yield Layout(tmp_path)
    processes.kill(list(processes.find(tmp_path).values()))


def start(layout: Layout, script: str, component: str = "etcd") -> psutil.Process:
    return processes.start(
        Path("/bin/sh"), ["-c", script], root=layout.root, component=component, log=layout.log(component)
    )


def test_a_component_is_found_by_its_marks_and_killed(layout: Layout) -> None:
    process = start(layout, "echo hello; exec sleep 600")
    assert processes.find(layout.root) == {"etcd": process}
    assert processes.find(layout.root / "other") == {}
    assert os.getsid(process.pid) == process.pid
    assert processes.kill([process]) == []
    assert not processes.alive(process)
    assert processes.find(layout.root) == {}
    assert layout.log("etcd").read_text() == "hello\n"


def test_a_stranger_is_never_found(layout: Layout) -> None:
    with subprocess.Popen(["/bin/sleep", "600"], cwd=layout.root) as stranger:
        assert processes.find(layout.root) == {}
        stranger.kill()


def test_a_component_that_ended_is_not_alive_though_nobody_waited_for_it(layout: Layout) -> None:
    process = start(layout, "exit 3")
    deadline = time.monotonic() + 30
    while processes.alive(process):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert processes.find(layout.root) == {}
    assert processes.kill([process]) == []


def test_proxies_of_the_environment_are_not_passed_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    monkeypatch.setenv("KEPT", "1")
    environment = processes.environment(tmp_path, "etcd")
    assert "HTTPS_PROXY" not in environment
    assert environment["KEPT"] == "1"


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("listen tcp 127.0.0.1:1: bind: address already in use", "another program took the port"),
        ("write /x: no space left on device", "free some disk space"),
        ("open /x: permission denied", "check who owns the state folder"),
        ("something odd", "run `kuberay-op local down --name c` and `up` again"),
    ],
)
def test_a_failure_names_component_log_and_what_to_try(layout: Layout, line: str, advice: str) -> None:
    layout.log("etcd").parent.mkdir()
    layout.log("etcd").write_text("".join(f"line {i}\n" for i in range(100)) + line + "\n")
    error = health.failure("etcd", "ended while it was starting", layout, cluster="c")
    text = str(error).splitlines()
    assert text[0] == "etcd ended while it was starting"
    assert text[1] == f"  last lines of {layout.log('etcd')}:"
    assert text[2] == "    line 93"
    assert text[-2] == f"    {line}"
    assert text[-1].startswith(f"  try: {advice}")


def test_a_failure_without_a_log_says_so(layout: Layout) -> None:
    assert "    (empty)" in str(health.failure("etcd", "ended", layout, cluster="c"))


def test_progress_is_told_while_a_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kuberay_op_local.run.TICK_SECONDS", 0.05)
    ticks: list[tuple[int, float]] = []
    done = run(
        ["/bin/sh", "-c", "echo one >&2; echo out; sleep 1; exit 4"], tick=lambda *tick: ticks.append(tick)
    )
    assert (done.code, done.output, done.complaints) == (4, ["out"], ["one"])
    assert ticks[-1][0] == 1
    assert ticks[-1][1] > ticks[0][1]


def test_an_interrupted_program_is_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    def interrupt() -> None:
        while not pid.exists() or not pid.read_text().strip():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    helper = threading.Thread(target=interrupt)
    helper.start()
    script = (
        f"import os, pathlib, time; pathlib.Path({str(pid)!r}).write_text(str(os.getpid())); time.sleep(600)"
    )
    with pytest.raises(KeyboardInterrupt):
        run([sys.executable, "-c", script], tick=lambda *_: None)
    helper.join()
    assert not psutil.pid_exists(int(pid.read_text()))
