"""A real cluster with kwok nodes: what it does, and what happens when parts of it die."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kuberay_op_local import components, processes
from kuberay_op_local.cli import local
from kuberay_op_local.cluster import Cluster
from kuberay_op_local.errors import ComponentError, LocalError
from kuberay_op_local.health import Probe

pytestmark = pytest.mark.apiserver

NODES = 50
PODS = 500


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        made = Cluster("module")
        try:
            result = run("up", "--name", "module", "--node", f"kwok:{NODES}")
            assert result.exit_code == 0, result.stderr
            yield made
        finally:
            assert made.down()


@pytest.fixture
def healthy(cluster: Cluster) -> Cluster:
    """The cluster, whole: an earlier test may have left it in pieces."""
    return Cluster.up(cluster.name)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(local, arguments)


def pids(cluster: Cluster) -> dict[str, int]:
    return {name: process.pid for name, process in processes.find(cluster.layout.root).items()}


def eventually(check: Callable[[], bool], seconds: float = 200.0) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.2)


def ready(pod: dict[str, Any]) -> bool:
    conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions", ())}
    containers = pod["status"].get("containerStatuses", ())
    return (
        pod["status"]["phase"] == "Running"
        and conditions.get("Ready") == "True"
        and bool(containers)
        and all(container["ready"] for container in containers)
    )


def test_five_hundred_pods_run_and_are_ready(healthy: Cluster) -> None:
    healthy.kubectl("create", "deployment", "many", "--image=none", f"--replicas={PODS}")
    with Probe(healthy.spec, healthy.layout) as probe:

        def pods() -> list[dict[str, Any]]:
            items: list[dict[str, Any]] = probe.api("GET", "/api/v1/namespaces/default/pods").json()["items"]
            return items

        eventually(lambda: sum(map(ready, pods())) == PODS)
        found = pods()
        assert len({pod["spec"]["nodeName"] for pod in found}) == NODES
        assert len({pod["status"]["podIP"] for pod in found}) == PODS
        assert probe.ready_nodes() == NODES
        healthy.kubectl("delete", "deployment", "many")
        eventually(lambda: not pods())


def test_a_job_ends_well(healthy: Cluster) -> None:
    healthy.kubectl("create", "job", "once", "--image=none")
    healthy.kubectl("wait", "--for=condition=complete", "job/once", "--timeout=60s")
    pod = json.loads(healthy.kubectl("get", "pods", "-l", "job-name=once", "-o", "json"))["items"][0]
    assert pod["status"]["phase"] == "Succeeded"
    assert {c["type"]: c["status"] for c in pod["status"]["conditions"]}["Ready"] == "False"
    healthy.kubectl("delete", "job", "once")


def test_up_again_changes_nothing(healthy: Cluster) -> None:
    before = (pids(healthy), healthy.spec, healthy.kubeconfig.read_text())
    result = run("up", "--name", healthy.name, "--node", f"kwok:{NODES}")
    assert result.exit_code == 0
    assert (pids(healthy), healthy.spec, healthy.kubeconfig.read_text()) == before


def test_status_says_that_all_is_well(healthy: Cluster) -> None:
    result = run("status", "--name", healthy.name, "--output", "json")
    assert result.exit_code == 0
    status = json.loads(result.stdout)
    assert status["state"] == "running"
    assert list(status["components"]) == list(components.ALL)
    assert {part["pid"] for part in status["components"].values()} == set(pids(healthy).values())
    text = run("status", "--name", healthy.name)
    assert f"nodes kwok:{NODES}" in text.stdout
    assert text.stdout.count(" ready") == len(components.ALL)


def test_env_and_logs_print_what_they_should(healthy: Cluster) -> None:
    assert run("env", "--name", healthy.name).stdout == f"export KUBECONFIG={healthy.kubeconfig}\n"
    log = run("logs", "--name", healthy.name, "kube-apiserver")
    assert log.stdout == healthy.layout.log("kube-apiserver").read_text()
    unknown = run("logs", "--name", healthy.name, "kubelet")
    assert unknown.exit_code == 1
    assert "there is no component 'kubelet'; there are etcd, kube-apiserver" in unknown.stderr


def test_a_log_can_be_followed_until_ctrl_c(healthy: Cluster) -> None:
    command = [sys.executable, "-c", "from kuberay_op.cli import main; main()", "local", "logs", "kwok", "-f"]
    with subprocess.Popen([*command, "--name", healthy.name], stdout=subprocess.PIPE, text=True) as logs:
        assert logs.stdout is not None
        assert logs.stdout.readline() == healthy.layout.log("kwok").read_text().splitlines(keepends=True)[0]
        with healthy.layout.log("kwok").open("a") as log:
            log.write("something new\n")
        while "something new" not in logs.stdout.readline():
            pass
        logs.send_signal(signal.SIGINT)
    assert logs.returncode == 130


def test_another_user_has_no_rights_but_a_name(healthy: Cluster) -> None:
    config = healthy.issue_client_cert("ann", ["dev"])
    who = json.loads(healthy.kubectl("auth", "whoami", "--kubeconfig", str(config), "-o", "json"))
    assert who["status"]["userInfo"]["username"] == "ann"
    assert "dev" in who["status"]["userInfo"]["groups"]
    with pytest.raises(LocalError, match="forbidden"):
        healthy.kubectl("get", "pods", "--kubeconfig", str(config))


def test_nodes_come_and_go(healthy: Cluster) -> None:
    assert run("up", "--name", healthy.name, "--node", "kwok:2").exit_code == 0
    assert healthy.kubectl("get", "nodes", "-o", "name").split() == ["node/kwok-0", "node/kwok-1"]
    assert run("up", "--name", healthy.name, "--node", "none").exit_code == 0
    assert healthy.kubectl("get", "nodes", "-o", "name") == ""
    assert "kwok" not in pids(healthy)
    assert run("up", "--name", healthy.name, "--node", f"kwok:{NODES}").exit_code == 0
    assert healthy.status().state == "running"


def test_a_killed_component_is_reported_and_repaired(healthy: Cluster) -> None:
    healthy.kill("kube-scheduler")
    status = run("status", "--name", healthy.name)
    assert status.exit_code == 1
    assert f"cluster '{healthy.name}' is broken: kube-scheduler not running;" in status.stderr
    assert run("up", "--name", healthy.name).exit_code == 0
    assert healthy.status().state == "running"


def test_after_everything_was_killed_up_brings_the_data_back(healthy: Cluster) -> None:
    healthy.kubectl("create", "configmap", "kept")
    for component in components.ALL:
        healthy.kill(component)
    status = run("status", "--name", healthy.name)
    assert status.exit_code == 1
    assert f"cluster '{healthy.name}' is stopped" in status.stderr
    assert run("up", "--name", healthy.name).exit_code == 0
    assert "configmap/kept" in healthy.kubectl("get", "configmaps", "-o", "name")
    healthy.kubectl("delete", "configmap", "kept")


def test_etcd_can_be_killed_and_started_on_its_port(healthy: Cluster) -> None:
    before = healthy.spec
    healthy.kill("etcd")
    healthy.start("etcd")
    eventually(lambda: healthy.status().state == "running")
    assert healthy.spec == before


def test_a_port_taken_meanwhile_is_named_with_its_component(healthy: Cluster) -> None:
    healthy.kill("kube-scheduler")
    port = healthy.spec.ports["kube-scheduler"]
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("127.0.0.1", port))
        thief.listen()
        result = run("up", "--name", healthy.name)
    assert result.exit_code == 1
    assert f"port {port} of kube-scheduler is taken by another program" in result.stderr


def test_what_cannot_change_is_refused(healthy: Cluster) -> None:
    for option, value in (("--kubernetes", "1.34.4"), ("--port", "1")):
        result = run("up", "--name", healthy.name, option, value)
        assert result.exit_code == 1
        assert f"not {value}; run `kuberay-op local down --name {healthy.name}` first" in result.stderr


def test_a_component_that_does_not_start_is_named_with_its_log(state_home: object) -> None:
    with pytest.raises(ComponentError) as failure:
        Cluster.up(
            "broken", only=["etcd", "kube-apiserver"], extra_args={"kube-apiserver": ["--no-such-flag"]}
        )
    text = str(failure.value)
    assert failure.value.component == "kube-apiserver"
    assert text.startswith("kube-apiserver ended while it was starting\n  last lines of ")
    assert "unknown flag: --no-such-flag" in text
    assert "try: the extra arguments do not suit this Kubernetes version" in text
    assert Cluster("broken").down()
