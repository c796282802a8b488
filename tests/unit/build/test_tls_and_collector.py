"""Contract 02 §11.4 and §6.10: certificates in Pods, and the history server's collector."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from kuberay_op.api.view import Json
from kuberay_op.config import Config
from kuberay_op.testing import make
from tests.unit.build.shapes import (
    HOST,
    container,
    gated,
    head,
    head_container,
    init_names,
    ray,
    variables,
    worker,
    worker_template,
)

TLS = make.cluster(tlsOptions={"enabled": True})
MTLS = gated("RayClusterMTLS")
FILES = [
    ("RAY_USE_TLS", "1"),
    ("RAY_TLS_SERVER_CERT", "/etc/ray/tls/tls.crt"),
    ("RAY_TLS_SERVER_KEY", "/etc/ray/tls/tls.key"),
    ("RAY_TLS_CA_CERT", "/etc/ray/tls/ca.crt"),
]
MOUNT = {"name": "ray-tls", "mountPath": "/etc/ray/tls", "readOnly": True}


def tls_variables(found: Json) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in variables(found) if "TLS" in name]


@pytest.mark.parametrize(
    ("part", "config"), [(TLS, Config()), (make.cluster(tlsOptions={"enabled": False}), MTLS)]
)
def test_tls_is_off(part: make.Part, config: Config) -> None:
    pod = head(part, config=config)
    assert init_names(pod) == []
    assert tls_variables(ray(pod)) == []


def test_the_certificate_is_where_ray_looks() -> None:
    on_head = head(TLS, make.autoscaling(), config=MTLS)
    on_worker = worker(TLS, config=MTLS)
    talking = [ray(on_head), container(on_head, "autoscaler"), ray(on_worker)]
    talking.append(on_worker["spec"]["initContainers"][1])
    assert [tls_variables(one) for one in talking] == [FILES] * 4
    assert [one["volumeMounts"].count(MOUNT) for one in talking] == [1] * 4
    volume = {"name": "ray-tls", "secret": {"secretName": "ray-head-secret-c"}}
    assert volume in on_head["spec"]["volumes"]
    volume = {"name": "ray-tls", "secret": {"secretName": "ray-worker-secret-c"}}
    assert volume in on_worker["spec"]["volumes"]


@pytest.mark.parametrize("where", ["/etc/ray/tls", "/elsewhere"])
def test_a_mount_of_the_user_stays(where: str) -> None:
    own = {"name": "mine" if where == MOUNT["mountPath"] else "ray-tls", "mountPath": where}
    found = ray(head(TLS, head_container(volumeMounts=[own]), config=MTLS))["volumeMounts"]
    assert own in found
    assert MOUNT not in found


def test_pods_wait_for_their_certificate() -> None:
    own: Json = {"imagePullPolicy": "Always", "securityContext": {"runAsUser": 1}}
    pods = [
        head(TLS, head_container(**own), config=MTLS),
        worker(TLS, config=MTLS, group={"template": worker_template(own)}),
    ]
    for pod in pods:
        waiting = pod["spec"]["initContainers"][0]
        assert waiting["name"] == "wait-for-tls-ip-san"
        assert waiting["image"] == make.IMAGE
        assert waiting["imagePullPolicy"] == "Always"
        assert waiting["securityContext"] == {"runAsUser": 1}
        assert waiting["command"] == ["sh", "-c"]
        assert variables(waiting) == [
            ("POD_IP", "status.podIP"), ("FQ_RAY_IP", HOST), ("RAY_IP", "c-head-svc"),
        ]  # fmt: skip
        assert waiting["volumeMounts"] == [MOUNT]
        amounts = {"cpu": "50m", "memory": "64Mi"}
        assert waiting["resources"] == {"limits": amounts, "requests": amounts}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for two addresses, one of them IPv6."""
    folder = tmp_path_factory.mktemp("tls")
    names = "subjectAltName=IP:10.0.0.12,IP:fd00::1"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-addext", names]
    files = ["-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt")]
    try:
        subprocess.run([*command, *files], check=True, capture_output=True, timeout=60)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    return folder


@pytest.mark.parametrize(
    ("address", "named"),
    [("10.0.0.12", True), ("10.0.0.1", False), ("10.0.0.120", False), ("fd00::1", True), ("fd00::2", False)],
)
def test_the_wait_knows_its_address(certificate: Path, address: str, named: bool) -> None:
    """§16.6 45: also for IPv6, and not by a part of the text."""
    [script] = head(TLS, config=MTLS)["spec"]["initContainers"][0]["args"]
    script = script.replace("/etc/ray/tls", str(certificate)).replace("sleep 5", "exit 7")
    environment = {"POD_IP": address, "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=environment, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == (0 if named else 7)


# --- §6.10 the collector

HISTORY = gated("RayClusterHistoryServer")


def collector(**options: Any) -> make.Part:
    return make.cluster(historyServerOptions={"collectorOptions": {"image": "collect:1", **options}})


def test_no_collector_without_its_gate() -> None:
    assert [c["name"] for c in head(collector())["spec"]["containers"]] == ["ray-head"]
    assert "RAY_enable_ray_event" not in dict(variables(ray(head(collector()))))


def test_the_collector() -> None:
    found = container(head(collector(), config=HISTORY), "ray-history-collector")
    assert found["image"] == "collect:1"
    assert found["imagePullPolicy"] == "IfNotPresent"
    assert found["resources"] == {
        "limits": {"cpu": "200m", "memory": "256Mi"},
        "requests": {"cpu": "50m", "memory": "64Mi"},
    }
    assert "command" not in found
    base = [
        ("POD_IP", "status.podIP"),
        ("RAY_CLUSTER_NAME", "c"),
        ("RAY_CLUSTER_NAMESPACE", "ns"),
        ("RAY_ROLE", "Head"),
        ("EVENTS_PORT", "8084"),
        ("FQ_RAY_IP", HOST),
    ]
    assert variables(found) == [*base, ("RAY_DASHBOARD_ADDRESS", "http://localhost:8265")]
    base[3] = ("RAY_ROLE", "Worker")
    on_worker = container(worker(collector(), config=HISTORY), "ray-history-collector")
    assert variables(on_worker) == base


def test_the_collector_as_the_user_wants_it() -> None:
    own = [{"name": "RAY_DASHBOARD_ADDRESS", "value": "x"}, {"name": "STORAGE_BACKEND", "value": "S3"}]
    origin = {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "j"}
    part = collector(imagePullPolicy="Always", resources={}, env=own)
    auth = make.cluster(authOptions={"mode": "token"})
    found = container(head(part, make.labels(origin), auth, config=HISTORY), "ray-history-collector")
    assert found["imagePullPolicy"] == "Always"
    assert found["resources"] == {}
    assert [name for name, _ in variables(found)][6:] == [
        "OWNER_KIND", "OWNER_NAME", "RAY_DASHBOARD_ADDRESS", "STORAGE_BACKEND",
        "RAY_AUTH_MODE", "RAY_AUTH_TOKEN",
    ]  # fmt: skip
    assert dict(variables(found))["OWNER_KIND"] == "RayJob"
    assert dict(variables(found))["OWNER_NAME"] == "j"


def test_ray_sends_its_events_to_the_collector() -> None:
    types = (
        "TASK_DEFINITION_EVENT,TASK_LIFECYCLE_EVENT,ACTOR_TASK_DEFINITION_EVENT,TASK_PROFILE_EVENT,"
        "DRIVER_JOB_DEFINITION_EVENT,DRIVER_JOB_LIFECYCLE_EVENT,ACTOR_DEFINITION_EVENT,ACTOR_LIFECYCLE_EVENT,"
        "NODE_DEFINITION_EVENT,NODE_LIFECYCLE_EVENT"
    )
    wanted = [
        ("RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "1"),
        ("RAY_enable_ray_event", "true"),
        ("RAY_enable_core_worker_ray_event_to_aggregator", "true"),
        ("RAY_DASHBOARD_AGGREGATOR_AGENT_EVENTS_EXPORT_ADDR", "http://localhost:8084/v1/events"),
        ("RAY_DASHBOARD_AGGREGATOR_AGENT_EXPOSABLE_EVENT_TYPES", types),
        ("RAY_DASHBOARD_AGGREGATOR_AGENT_PUBLISHER_HTTP_ENDPOINT_EXPOSABLE_EVENT_TYPES", types),
    ]
    assert variables(ray(head(collector(), config=HISTORY)))[-6:] == wanted
    assert variables(ray(worker(collector(), config=HISTORY)))[-6:] == wanted


def test_ray_and_the_collector_share_logs() -> None:
    mount = {"name": "ray-logs", "mountPath": "/tmp/ray"}
    for pod in (head(collector(), config=HISTORY), worker(collector(), config=HISTORY)):
        assert {"name": "ray-logs", "emptyDir": {}} in pod["spec"]["volumes"]
        assert [mount in c["volumeMounts"] for c in pod["spec"]["containers"]] == [True, True]
