"""Real Ray on a real node: alone in a Pod, in a RayCluster, and in a RayJob of every mode."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any, Final

import pytest

from tests.e2e.conftest import OPERATOR_NAMESPACE, RAY, TASK, Node, cluster_spec

pytestmark = [pytest.mark.apiserver, pytest.mark.real_node, pytest.mark.slow, pytest.mark.timeout(900)]

#: Ray's head alone takes half a minute of CPU to start; the machine may be busy.
READY_SECONDS: Final = 300.0


def raycluster(name: str, *, workers: int) -> dict[str, Any]:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name},
        "spec": cluster_spec(workers=workers),
    }


def rayjob(name: str, mode: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name},
        "spec": {
            "submissionMode": mode,
            "shutdownAfterJobFinishes": True,
            "rayClusterSpec": cluster_spec(workers=0),
            **spec,
        },
    }


def test_a_pod_with_ray_runs_a_task_and_others_reach_it(node: Node) -> None:
    command = "ray start --head --block --dashboard-host=0.0.0.0 --num-cpus=1"
    container = {
        "name": "ray",
        "image": RAY,
        "command": ["/bin/bash", "-c", command],
        "readinessProbe": {"httpGet": {"path": "/api/version", "port": 8265}, "periodSeconds": 2},
    }
    dashboard = {"selector": {"app": "alone"}, "ports": [{"port": 8265}]}
    node.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "alone", "labels": {"app": "alone"}},
            "spec": {"containers": [container]},
        },
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "alone"}, "spec": dashboard},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "alone-headless"},
            "spec": {**dashboard, "clusterIP": "None"},
        },
    )
    node.kubectl("wait", "--for=condition=Ready", "pod/alone", "--timeout=300s", timeout=310)
    assert "answer 42" in node.kubectl("exec", "alone", "--", "python", "-c", TASK)

    address = node.get("service", "alone")["spec"]["clusterIP"]
    fetch = (
        "import json, sys, urllib.request as u\n"
        "for host in sys.argv[1:]:\n"
        "    print(host, json.load(u.urlopen(f'http://{host}:8265/api/version', timeout=30))['ray_version'])"
    )
    hosts = ["alone", address, "alone-headless.default.svc.cluster.local"]
    asking = {"name": "ask", "image": RAY, "command": ["python", "-c", fetch, *hosts]}
    node.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "other"},
            "spec": {"containers": [asking], "restartPolicy": "Never"},
        }
    )
    node.kubectl("wait", "pod/other", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=120s")
    assert node.kubectl("logs", "other").split() == [word for host in hosts for word in (host, "2.60.0")]
    node.kubectl("delete", "pod", "alone", "other", "--grace-period=0", "--force")


def test_the_operator_runs_as_a_pod_without_any_privilege(operator: Node) -> None:
    selector = ("-n", OPERATOR_NAMESPACE, "-l", "app.kubernetes.io/name=kuberay-operator")
    (pod,) = json.loads(operator.kubectl("get", "pods", *selector, "-o", "json"))["items"]
    assert pod["spec"]["serviceAccountName"] == "kuberay-operator"
    (container,) = pod["spec"]["containers"]
    assert container["image"].startswith("kuberay-op/operator:")
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    inside = ("exec", "-n", OPERATOR_NAMESPACE, pod["metadata"]["name"], "--")
    assert operator.kubectl(*inside, "id", "-u").strip() not in {"", "0"}
    assert operator.kubectl(*inside, "/manager", "--help").startswith("Usage:")


def test_a_raycluster_becomes_ready_with_real_ray(operator: Node) -> None:
    operator.apply(raycluster("first", workers=1))
    found = operator.wait(
        "raycluster", "first", lambda it: it.get("status", {}).get("state") == "ready", READY_SECONDS
    )
    assert found["status"]["availableWorkerReplicas"] == 1
    head = found["status"]["head"]["podName"]
    count = "import ray; ray.init(address='auto', log_to_driver=False); print('nodes', len(ray.nodes()))"
    assert "nodes 2" in operator.kubectl("exec", head, "--", "python", "-c", count)
    operator.kubectl("delete", "raycluster", "first", "--timeout=120s")


@pytest.mark.parametrize("mode", ["HTTPMode", "K8sJobMode", "SidecarMode"])
def test_a_rayjob_succeeds(operator: Node, mode: str) -> None:
    name = mode.lower()
    operator.apply(rayjob(name, mode, entrypoint=f'python -c "{TASK}"'))
    finished(operator, name)


def test_an_interactive_rayjob_follows_what_its_user_submits(operator: Node) -> None:
    operator.apply(rayjob("interactive", "InteractiveMode"))
    waiting = operator.wait(
        "rayjob",
        "interactive",
        lambda it: it.get("status", {}).get("jobDeploymentStatus") == "Waiting",
        READY_SECONDS,
    )
    cluster = waiting["status"]["rayClusterName"]
    head = operator.get("raycluster", cluster)["status"]["head"]["podName"]
    submit = ["ray", "job", "submit", "--no-wait", "--submission-id", "mine", "--", "python", "-c", TASK]
    operator.kubectl("exec", head, "--", *submit)
    operator.kubectl("patch", "rayjob", "interactive", "--type=merge", "-p", '{"spec": {"jobId": "mine"}}')
    finished(operator, "interactive")


def test_the_light_submitter_submits_without_ray(operator: Node) -> None:
    light = {
        "name": "ray-job-submitter",
        "image": f"kuberay-op/submitter:{version('kuberay-op')}",
        "command": ["/submitter"],
        "args": ["--", f'python -c "{TASK}"'],
        "securityContext": {"readOnlyRootFilesystem": True, "runAsNonRoot": True},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [light]}}
    job = rayjob("light", "K8sJobMode", entrypoint=f'python -c "{TASK}"', submitterPodTemplate=template)
    operator.apply(job)
    finished(operator, "light")


def test_redis_answers(node: Node) -> None:
    node.kubectl("run", "redis", "--image=redis:7")
    node.kubectl("wait", "--for=condition=Ready", "pod/redis", "--timeout=120s")
    node.kubectl("exec", "redis", "--", "redis-cli", "set", "a", "1")
    assert node.kubectl("exec", "redis", "--", "redis-cli", "get", "a").strip() == "1"
    assert node.kubectl("exec", "redis", "--", "id", "-u").strip() == "999"
    node.kubectl("delete", "pod", "redis", "--grace-period=0", "--force")


def finished(operator: Node, name: str) -> None:
    """Wait until the job has succeeded and its cluster is gone; then remove it."""
    ended = {"SUCCEEDED", "FAILED", "STOPPED"}
    found = operator.wait(
        "rayjob", name, lambda it: it.get("status", {}).get("jobStatus") in ended, READY_SECONDS + 120
    )
    assert found["status"]["jobStatus"] == "SUCCEEDED", found["status"]
    done = operator.wait(
        "rayjob", name, lambda it: it["status"].get("jobDeploymentStatus") == "Complete", READY_SECONDS
    )
    cluster = done["status"]["rayClusterName"]
    operator.wait("raycluster", cluster, lambda it: not it, READY_SECONDS)
    operator.kubectl("delete", "rayjob", name, "--timeout=120s")
