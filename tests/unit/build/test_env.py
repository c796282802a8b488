"""Contract 02 §6.11 and §6.12: variables and probes of the Ray container."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op import __version__
from kuberay_op.api.view import Json
from kuberay_op.config import Config
from kuberay_op.testing import make
from tests.unit.build.shapes import (
    HOST,
    head,
    head_container,
    head_pod_spec,
    ray,
    start_command,
    variables,
    worker,
    worker_template,
)

FIELDS = [
    ("RAY_CLUSTER_NAME", "metadata.labels['ray.io/cluster']"),
    ("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
    ("RAY_CLOUD_INSTANCE_ID", "metadata.name"),
    ("RAY_NODE_TYPE_NAME", "metadata.labels['ray.io/group']"),
]


def tags(kind: str) -> tuple[str, str]:
    value = f"kuberay_version=kuberay-op-{__version__};kuberay_crd={kind}"
    return "RAY_USAGE_STATS_EXTRA_TAGS", value


def test_variables_of_the_head_in_order() -> None:
    pod = head()
    assert variables(ray(pod)) == [
        *FIELDS,
        ("KUBERAY_GEN_RAY_START_CMD", start_command(pod)),
        ("RAY_PORT", "6379"),
        ("RAY_ADDRESS", "127.0.0.1:6379"),
        ("RAY_USAGE_STATS_KUBERAY_IN_USE", "1"),
        tags("RayCluster"),
        ("RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "1"),
    ]


def test_variables_of_a_worker_in_order() -> None:
    pod = worker(make.head(rayStartParams={"port": "7"}))
    assert variables(ray(pod)) == [
        ("FQ_RAY_IP", HOST),
        ("RAY_IP", "c-head-svc"),
        *FIELDS,
        ("KUBERAY_GEN_RAY_START_CMD", start_command(pod)),
        ("RAY_PORT", "7"),
        ("RAY_ADDRESS", f"{HOST}:7"),
        ("RAY_USAGE_STATS_KUBERAY_IN_USE", "1"),
        ("RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "1"),
    ]


def test_the_order_of_everything_that_adds_variables() -> None:
    pod = head(
        make.autoscaling("v2"),
        make.redis(),
        make.cluster(authOptions={"mode": "token"}),
        head_container(env=[{"name": "MINE", "value": "1"}]),
        config=Config(default_container_envs=({"name": "DEFAULT", "value": "1"},)),
    )
    names = [name for name, _ in variables(ray(pod))]
    assert names[:8] == [
        "MINE",
        "RAY_enable_autoscaler_v2",
        "RAY_external_storage_namespace",
        "RAY_REDIS_ADDRESS",
        "RAY_AUTH_MODE",
        "RAY_AUTH_TOKEN",
        "DEFAULT",
        "RAY_CLUSTER_NAME",
    ]


KEPT = ("RAY_PORT", "RAY_ADDRESS", "RAY_USAGE_STATS_KUBERAY_IN_USE", "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE")
OVERRIDDEN = ("RAY_CLUSTER_NAME", "KUBERAY_GEN_RAY_START_CMD", "RAY_USAGE_STATS_EXTRA_TAGS")


def test_which_of_the_users_variables_count() -> None:
    own = [{"name": name, "value": "mine"} for name in (*KEPT, *OVERRIDDEN, "DEFAULT")]
    config = Config(default_container_envs=({"name": "DEFAULT", "value": "operators"},))
    found = variables(ray(head(head_container(env=own), config=config)))
    last = dict(found)  # of two variables of one name the last counts
    assert [last[name] for name in (*KEPT, "DEFAULT")] == ["mine"] * 5
    assert [last[name] == "mine" for name in OVERRIDDEN] == [False] * 3
    assert [[name for name, _ in found].count(name) for name in KEPT] == [1] * 4


def test_variables_of_a_service() -> None:
    origin = make.labels({"ray.io/originated-from-crd": "RayService"})
    own = [{"name": "RAY_SERVE_KV_TIMEOUT_S", "value": "60"}]
    found = dict(variables(ray(head(origin, head_container(env=own)))))
    assert found["RAY_timeout_ms_task_wait_for_death_info"] == "0"
    assert found["RAY_gcs_server_request_timeout_seconds"] == "5"
    assert found["RAY_SERVE_KV_TIMEOUT_S"] == "60"
    assert tags("RayService") in found.items()
    assert dict(variables(ray(worker(origin))))["RAY_SERVE_KV_TIMEOUT_S"] == "5"


def test_init_containers_of_the_user_learn_where_the_head_is() -> None:
    own: list[Json] = [{"name": "own", "image": "x", "env": [{"name": "RAY_IP", "value": "mine"}]}]
    addresses = [("RAY_IP", "mine"), ("FQ_RAY_IP", HOST), ("RAY_IP", "c-head-svc")]
    [found] = head(head_pod_spec(initContainers=own))["spec"]["initContainers"]
    assert variables(found) == addresses
    template = worker_template()
    template["spec"]["initContainers"] = own
    found = worker(group={"template": template})["spec"]["initContainers"][0]
    assert variables(found) == addresses


def test_the_domain_of_the_cluster_and_the_users_own_service_are_in_the_address() -> None:
    part = make.head(headService={"metadata": {"name": "mine"}})
    found = dict(variables(ray(worker(part, config=Config(cluster_domain="corp.example")))))
    assert found["FQ_RAY_IP"] == "mine.ns.svc.corp.example"
    assert found["RAY_IP"] == "mine"


# --- §6.12 probes

A = "wget --tries 1 -T 2 -q -O- http://localhost:52365/api/local_raylet_healthz | grep success"
B = "wget --tries 1 -T 10 -q -O- http://localhost:8265/api/gcs_healthz | grep success"
C = "wget --tries 1 -T 10 -q -O- http://localhost:8000/-/healthz | grep success"
HTTP: Json = {"httpGet": {"path": "/api/healthz", "port": 52365}}
SERVICE = make.labels({"ray.io/originated-from-crd": "RayService"})


def script(*commands: str) -> Json:
    return {"exec": {"command": ["bash", "-c", " && ".join(commands)]}}


def probe(kind: str, timeout: int, failures: int, check: Json) -> Json:
    return {
        "initialDelaySeconds": 30 if kind == "liveness" else 10,
        "timeoutSeconds": timeout,
        "periodSeconds": 5,
        "successThreshold": 1,
        "failureThreshold": failures,
        **check,
    }


@pytest.mark.parametrize(
    ("version", "new"),
    [
        ("2.53.0", True),
        ("v2.53", True),
        ("2.100.0rc1", True),
        ("2.52.9", False),
        ("", False),
        ("nightly", False),
    ],
)
@pytest.mark.parametrize("service", [False, True])
def test_probes(version: str, new: bool, service: bool) -> None:
    parts = [make.cluster(rayVersion=version), *([SERVICE] if service else [])]
    on_head = ray(head(*parts))
    check = HTTP if new else script(A, B)
    assert on_head["livenessProbe"] == probe("liveness", 5, 120, check)
    assert on_head["readinessProbe"] == probe("readiness", 5, 10, check)
    on_worker = ray(worker(*parts))
    check = HTTP if new else script(A)
    assert on_worker["livenessProbe"] == probe("liveness", 2, 120, check)
    ready = probe("readiness", 2, 1, script(A, C)) if service else probe("readiness", 2, 10, check)
    assert on_worker["readinessProbe"] == ready


@pytest.mark.parametrize(
    ("params", "agent", "dashboard"),
    [
        ({"dashboard-agent-listen-port": "1", "dashboard-port": "2"}, 1, 2),
        ({"dashboard-agent-listen-port": "x", "dashboard-port": "99999999999"}, 52365, 8265),
        ({"dashboard-agent-listen-port": " 1", "dashboard-port": "1_0"}, 52365, 8265),
    ],
)
def test_ports_of_probes(params: dict[str, str], agent: int, dashboard: int) -> None:
    found = ray(head(make.head(rayStartParams=params)))
    text = found["livenessProbe"]["exec"]["command"][2]
    assert f":{agent}/api/local_raylet" in text
    assert f":{dashboard}/api/gcs" in text
    found = ray(head(make.head(rayStartParams=params), make.cluster(rayVersion="2.53.0")))
    assert found["livenessProbe"]["httpGet"]["port"] == agent


def test_the_serve_port_of_a_worker() -> None:
    template = worker_template({"ports": [{"name": "serve", "containerPort": 9000}]})
    found = ray(worker(SERVICE, group={"template": template}))
    assert "localhost:9000/-/healthz" in found["readinessProbe"]["exec"]["command"][2]


@pytest.mark.parametrize("which", ["livenessProbe", "readinessProbe"])
def test_each_probe_of_the_user_stays(which: str) -> None:
    own: dict[str, Any] = {which: {"tcpSocket": {"port": 1}}}
    found = ray(head(head_container(**own)))
    other = ({"livenessProbe", "readinessProbe"} - {which}).pop()
    assert found[which] == own[which]
    assert "exec" in found[other]


def test_no_probes_when_the_operator_is_told_so() -> None:
    assert "livenessProbe" not in ray(head(config=Config(enable_probes_injection=False)))
