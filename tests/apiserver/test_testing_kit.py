"""The fixtures of the test kit on real clusters: shared, private, and gone at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import platformdirs
import pytest

from kuberay_op.testing.controlplane import ControlPlane

pytest_plugins = ("pytester",)
pytestmark = pytest.mark.apiserver

#: Where programs are; read before pytester moves the home folder.
CACHE: Final = platformdirs.user_cache_path()


def pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "a", "image": "none"}]},
    }


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A pytester whose clusters are in its own folder and whose programs are the machine's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHE))
    monkeypatch.setenv("XDG_STATE_HOME", str(pytester.path / "state"))
    return pytester


def leftovers(inner: pytest.Pytester) -> list[str]:
    from kuberay_op_local import processes

    folders = list((inner.path / "state").rglob("clusters/*"))
    running = [name for folder in folders for name in processes.find(folder)]
    return [str(path) for path in folders] + running


def test_the_namespace_is_there_and_takes_pods(control_plane: ControlPlane, namespace: str) -> None:
    made = control_plane.api("POST", f"/api/v1/namespaces/{namespace}/pods", pod("a"))
    assert made["metadata"]["namespace"] == namespace
    assert made["status"]["phase"] == "Pending"
    assert "a" in control_plane.kubectl("get", "pods", "--namespace", namespace)


def test_every_test_has_its_own_namespace(control_plane: ControlPlane, namespace: str) -> None:
    assert control_plane.api("GET", f"/api/v1/namespaces/{namespace}/pods")["items"] == []


def test_a_private_cluster_can_lose_its_api_server_and_get_it_back(
    own_cluster: Callable[..., ControlPlane],
) -> None:
    plane = own_cluster()
    before = plane.server
    plane.cluster.kill("kube-apiserver")
    assert plane.cluster.status().state == "broken"
    plane.cluster.start("kube-apiserver")
    assert plane.server == before
    assert plane.api("GET", "/api/v1/namespaces/default")["status"]["phase"] == "Active"


def test_pods_run_on_the_kwok_cluster(kwok_cluster: ControlPlane, kwok_namespace: str) -> None:
    pods = f"/api/v1/namespaces/{kwok_namespace}/pods"
    kwok_cluster.api("POST", pods, pod("a"))
    kwok_cluster.kubectl("wait", "--for=condition=Ready", "pod/a", "-n", kwok_namespace, "--timeout=60s")
    assert kwok_cluster.api("GET", f"{pods}/a")["spec"]["nodeName"].startswith("kwok-")


def test_workers_share_one_cluster_and_it_is_gone_at_the_end(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        """
        import pathlib
        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_it(control_plane, namespace, number, worker_id):
            control_plane.kubectl("get", "namespace", namespace)
            pathlib.Path(f"seen-{worker_id}-{number}").write_text(control_plane.server + namespace)
        """
    )
    result = inner.runpytest_subprocess("-n", "2", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=4)
    seen = [path.read_text() for path in inner.path.glob("seen-*")]
    assert len({text.partition("test-it")[0] for text in seen}) == 1
    assert len(set(seen)) == 4
    assert leftovers(inner) == []


def test_a_failing_and_an_interrupted_run_leave_nothing(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        """
        def test_fails(control_plane):
            assert not control_plane.server

        def test_interrupts():
            raise KeyboardInterrupt
        """
    )
    assert inner.runpytest_subprocess().ret == pytest.ExitCode.INTERRUPTED
    assert leftovers(inner) == []


def test_the_next_run_removes_what_a_killed_one_left(inner: pytest.Pytester) -> None:
    hanging = inner.makepyfile(
        test_hangs="""
        import pathlib, time

        def test_it(control_plane):
            pathlib.Path("up").write_text("")
            time.sleep(600)
        """
    )
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", str(hanging)], cwd=inner.path, stdout=subprocess.DEVNULL
    ) as run:
        wait_for(inner.path / "up", run)
        os.kill(run.pid, signal.SIGKILL)
    left = leftovers(inner)
    assert "kube-apiserver" in left
    inner.makepyfile(test_next="def test_it(control_plane): pass")
    inner.runpytest_subprocess("test_next.py").assert_outcomes(passed=1)
    assert leftovers(inner) == []


def wait_for(path: Path, run: subprocess.Popen[bytes]) -> None:
    while not path.exists():
        assert run.poll() is None, "the run ended early"
        time.sleep(0.05)
