"""A real node: Pods run, find each other by every kind of name, and kubectl gets into them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable
from typing import Any, Final

import pytest

from kuberay_op_local import components, processes
from kuberay_op_local.cluster import Cluster
from kuberay_op_local.errors import LocalError
from kuberay_op_local.operator import install
from kuberay_op_local.real import objects, world

pytestmark = [pytest.mark.apiserver, pytest.mark.real_node]

IMAGE: Final = "kuberay-op/base:bookworm"
PORT: Final = 8000
WAIT: Final = "--timeout=120s"


def pod(name: str, *command: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": IMAGE, "command": list(command), **spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }


def service(name: str, app: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": app}, "ports": [{"port": PORT}], **spec},
    }


def apply(cluster: Cluster, *documents: dict[str, Any]) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(listed))


def eventually(check: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.2)


def answers(cluster: Cluster) -> bool:
    """Whether one gets into the server's Pod: a kubelet that just came back does not know it at once."""
    try:
        return cluster.kubectl("exec", "server", "--", "cat", "/etc/hostname") == "server\n"
    except LocalError:
        return False


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> str:
    """A Pod that serves its own files, behind a Service and a headless one; gives its cluster address."""
    command = ("python3", "-u", "-m", "http.server", str(PORT), "--directory", "/etc")
    ready = {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 1}
    apply(
        cluster,
        pod("server", *command, readinessProbe=ready),
        service("plain", "server"),
        service("headless", "server", clusterIP="None"),
    )
    cluster.kubectl("wait", "--for=condition=Ready", "pod/server", WAIT)
    return cluster.kubectl("get", "service", "plain", "-o", "jsonpath={.spec.clusterIP}")


@pytest.mark.parametrize(
    "way", ["plain", "plain.default.svc.cluster.local", "headless.default.svc", "the cluster address"]
)
def test_a_pod_reaches_another(cluster: Cluster, server: str, way: str) -> None:
    host = server if way == "the cluster address" else way
    url = f"http://{host}:{PORT}/hostname"
    fetch = f"import urllib.request as u; print(u.urlopen('{url}', timeout=20).read().decode())"
    name = f"client-{abs(hash(way)) % 10**6}"
    ended = pod(name, "python3", "-c", fetch)
    ended["spec"]["restartPolicy"] = "Never"
    apply(cluster, ended)
    cluster.kubectl("wait", f"pod/{name}", "--for=jsonpath={.status.phase}=Succeeded", WAIT)
    assert cluster.kubectl("logs", name).strip() == "server"


def test_a_pod_reaches_itself_through_its_service(cluster: Cluster, server: str) -> None:
    fetch = f"import urllib.request as u; print(u.urlopen('http://plain:{PORT}/hostname', timeout=20).status)"
    assert cluster.kubectl("exec", "server", "--", "python3", "-c", fetch).strip() == "200"


def test_a_pod_reaches_the_api_server_with_its_service_account(cluster: Cluster, server: str) -> None:
    folder = "/var/run/secrets/kubernetes.io/serviceaccount"
    ask = (
        "import ssl, urllib.request as u; "
        f"r = u.Request('https://kubernetes.default.svc/version', "
        f"headers={{'Authorization': 'Bearer ' + open('{folder}/token').read()}}); "
        f"print(u.urlopen(r, context=ssl.create_default_context(cafile='{folder}/ca.crt')).status)"
    )
    assert cluster.kubectl("exec", "server", "--", "python3", "-c", ask).strip() == "200"


def test_logs_exec_and_port_forward_work(cluster: Cluster, server: str) -> None:
    assert cluster.kubectl("exec", "server", "--", "cat", "/etc/hostname") == "server\n"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(
        [cluster.spec.programs["kubectl"], "port-forward", "service/plain", f"{port}:{PORT}"],
        env=cluster.environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as forward:
        try:
            assert forward.stdout is not None
            assert "Forwarding from" in forward.stdout.readline()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/hostname", timeout=20) as answer:
                assert answer.read() == b"server\n"
        finally:
            forward.terminate()
    assert '"GET /hostname HTTP/1.1" 200' in cluster.kubectl("logs", "server")


def test_small_machines_schedule_big_pods(cluster: Cluster) -> None:
    if not cluster.spec.small_requests:
        pytest.skip("this machine has enough cores, so requests stay as they are")
    wanted = {"cpu": "64", "memory": "512Gi"}
    asked = {"requests": wanted, "limits": {"cpu": "64", "memory": "512Gi"}}
    apply(cluster, pod("big", "sleep", "infinity", resources=asked))
    cluster.kubectl("wait", "--for=condition=Ready", "pod/big", WAIT)
    told = json.loads(cluster.kubectl("get", "pod", "big", "-o", "json"))["spec"]["containers"][0][
        "resources"
    ]
    assert told["requests"] == {"cpu": objects.SMALL_CPU, "memory": objects.SMALL_MEMORY}
    assert told["limits"] == {"cpu": objects.SMALL_CPU_LIMIT, "memory": "512Gi"}


def test_the_operator_beside_it_lives_in_the_nodes_network(cluster: Cluster) -> None:
    """Ray is reached by names and addresses that mean something only there."""
    install(cluster)
    running = processes.find(cluster.layout.root)
    operator, holder = running[components.OPERATOR], world.World.of(running[components.NAMESPACES])
    for kind in ("net", "mnt"):
        assert os.readlink(f"/proc/{operator.pid}/ns/{kind}") == os.readlink(f"/proc/{holder.pid}/ns/{kind}")
    processes.kill([operator])


def test_an_image_that_does_not_exist_is_one_sentence(cluster: Cluster) -> None:
    with pytest.raises(LocalError) as failure:
        cluster.load("kuberay-op.invalid/nothing:1")
    text = str(failure.value)
    assert text.startswith("the image kuberay-op.invalid/nothing:1 cannot be fetched from its registry (")
    assert text.endswith("check the name, or load an archive, or build one with --build")
    assert "\n" not in text
    with pytest.raises(LocalError, match=r"^there is no archive /nowhere\.tar$"):
        cluster.load("/nowhere.tar")
    with pytest.raises(LocalError, match="containerd does not take the image: "):
        cluster.load(__file__)


def test_a_killed_kubelet_is_named_and_comes_back(cluster: Cluster, server: str) -> None:
    cluster.kill(components.KUBELET)
    status = cluster.status()
    assert status.state == "broken"
    assert status.components is not None
    assert [name for name, part in status.components.items() if not part["running"]] == [components.KUBELET]
    eventually(lambda: b"kubelet" not in _inside(cluster))
    assert Cluster.up(cluster.name).status().state == "running"
    eventually(lambda: answers(cluster))


def test_a_killed_containerd_leaves_pods_alone(cluster: Cluster, server: str) -> None:
    started = "jsonpath={.status.containerStatuses[0].state.running.startedAt}"
    before = cluster.kubectl("get", "pod", "server", "-o", started)
    cluster.kill(components.CONTAINERD)
    Cluster.up(cluster.name)
    eventually(lambda: answers(cluster))
    assert cluster.kubectl("get", "pod", "server", "-o", started) == before


def _inside(cluster: Cluster) -> bytes:
    """The names of all processes in the node's world."""
    holder = processes.find(cluster.layout.root)[components.NAMESPACES]
    place = os.readlink(f"/proc/{world.World.of(holder).pid}/ns/pid")
    names = b""
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            try:
                if os.readlink(f"{entry.path}/ns/pid") == place:
                    with open(f"{entry.path}/comm", "rb") as comm:
                        names += comm.read()
            except OSError:
                continue
    return names
