"""The submitter of a RayJob: every word of its command (§6.1), its Job (§6.3) and its sidecar (§6.4)."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.rayjob import RayJob
from kuberay_op.build.rayjob import job_cluster, job_head_service
from kuberay_op.build.submitter import sidecar, submit_command, submitter_job, submitter_template
from kuberay_op.config import Config
from kuberay_op.errors import Invalid
from kuberay_op.testing import make

ADDRESS = "http://c-head-svc.default.svc.cluster.local:8265"
WAIT = (
    'until python -c "import urllib.request; '
    f"r=urllib.request.urlopen('{ADDRESS}/api/gcs_healthz', timeout=10); "
    "exit(0 if b'success' in r.read() else 1)\" >/dev/null 2>&1 ; "
    f'do echo "Waiting for Ray Dashboard GCS to become healthy at {ADDRESS} ..." ; sleep 2 ; done ; '
)


def job(*parts: make.Part) -> RayJob:
    """A RayJob that is about to be submitted."""
    status = make.status(jobId="j-abcde", rayClusterName="c", dashboardURL=ADDRESS.removeprefix("http://"))
    return RayJob(make.rayjob("j", make.stored(), make.spec(submissionMode="K8sJobMode"), status, *parts))


def cluster(*parts: make.Part) -> RayCluster:
    """Its cluster."""
    return RayCluster(make.raycluster("c", make.stored(uid="uid-c"), *parts))


def command(*parts: make.Part, attach: bool = True) -> str:
    """The command without the part that waits."""
    found = submit_command(job(*parts), ADDRESS, f"{ADDRESS}/api/gcs_healthz", attach=attach)
    assert found.startswith(WAIT)
    return found.removeprefix(WAIT)


# --- the command


def test_the_command_submits_once_and_follows() -> None:
    assert command() == (
        f"if ! ray job status --address {ADDRESS} j-abcde >/dev/null 2>&1 ; then "
        f"ray job submit --address {ADDRESS} --no-wait --submission-id j-abcde -- python main.py ; "
        f"fi ; ray job logs --address {ADDRESS} --follow j-abcde"
    )


def test_without_restarts_it_waits_inside() -> None:
    expected = f"ray job submit --address {ADDRESS} --submission-id j-abcde -- python main.py ;"
    assert command(attach=False) == expected


def test_the_options_come_in_the_order_of_the_reference() -> None:
    found = command(
        make.spec(
            entrypoint="  python x.py && ls $HOME \n",
            runtimeEnvYAML=(
                "pip: [a]\nenv_vars: {DAY: 2026-01-31, X: on, TIME: 12:30, Q: 'a\"b', C: <&>, F: 1.0}"
            ),
            metadata={"z": "1", "a": "é"},
            entrypointNumCpus=1,
            entrypointNumGpus=0.5,
            entrypointResources='{"x": 1}',
        ),
        attach=False,
    )
    env = (
        r'"{\"env_vars\":{\"C\":\"\\u003c\\u0026\\u003e\",\"DAY\":\"2026-01-31\",\"F\":1,'
        r'\"Q\":\"a\\\"b\",\"TIME\":\"12:30\",\"X\":true},\"pip\":[\"a\"]}"'
    )
    assert found == (
        f"ray job submit --address {ADDRESS} --runtime-env-json {env} "
        r'--metadata-json "{\"a\":\"é\",\"z\":\"1\"}" --submission-id j-abcde '
        r'--entrypoint-num-cpus 1.000000 --entrypoint-num-gpus 0.500000 --entrypoint-resources "{\"x\": 1}" '
        "-- python x.py && ls $HOME ;"
    )


@pytest.mark.parametrize("version", ["2.5.0", "nightly"])
def test_metadata_needs_a_ray_that_has_it(version: str) -> None:
    with pytest.raises(Invalid, match=r"metadata"):
        command(make.spec(metadata={"a": "b"}), make.cluster(rayVersion=version))
    assert "--metadata-json" in command(make.spec(metadata={"a": "b"}), make.cluster(rayVersion=""))


def test_a_submitter_that_is_replaced_does_not_submit_again(tmp_path: Path) -> None:
    """The real line in a real shell, with a ``ray`` that remembers what it was told."""
    told, known = tmp_path / "told", tmp_path / "known"
    program(tmp_path / "python", "exit 0")
    program(
        tmp_path / "ray",
        f'echo "$2" >> {told}\n'
        f'case "$2" in status) test -e {known} ;; submit) touch {known} ;; logs) exit "${{LOGS:-0}}" ;; esac',
    )

    def run(**env: str) -> int:
        line = submit_command(job(), ADDRESS, f"{ADDRESS}/api/gcs_healthz", attach=True)
        path = f"{tmp_path}:{os.environ['PATH']}"
        return subprocess.run(
            ["/bin/bash", "-ce", "--", line], env={"PATH": path, **env}, check=False, timeout=30
        ).returncode

    assert run(LOGS="1") == 1, "the log broke off, so Kubernetes starts another Pod"
    assert run() == 0
    assert told.read_text().split() == ["status", "submit", "logs", "status", "logs"]


def program(path: Path, script: str) -> None:
    """A program of a few lines."""
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


# --- the Job


def test_the_job_of_ours() -> None:
    template = submitter_template(job(), cluster(), Config())
    container = template["spec"]["containers"][0]
    assert {name: container[name] for name in ("name", "image", "command", "resources")} == {
        "name": "ray-job-submitter",
        "image": "rayproject/ray:2.52.0",
        "command": ["/bin/bash", "-ce", "--"],
        "resources": {
            "limits": {"cpu": "1", "memory": "1Gi"},
            "requests": {"cpu": "500m", "memory": "200Mi"},
        },
    }
    assert container["env"] == [
        {"name": "PYTHONUNBUFFERED", "value": "1"},
        {"name": "RAY_DASHBOARD_ADDRESS", "value": ADDRESS.removeprefix("http://")},
        {"name": "RAY_JOB_SUBMISSION_ID", "value": "j-abcde"},
    ]
    assert template["spec"]["restartPolicy"] == "Never"
    made = submitter_job(job(), template)
    marks = {
        "ray.io/originated-from-cr-name": "j",
        "ray.io/originated-from-crd": "RayJob",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    assert made["metadata"]["labels"] == template["metadata"]["labels"] == marks
    assert (made["metadata"]["name"], made["spec"]["backoffLimit"]) == ("j", 2)
    assert made["metadata"]["ownerReferences"][0]["controller"] is True
    assert set(made["spec"]) == {"backoffLimit", "template"}


def test_a_login_shell_and_another_limit() -> None:
    template = submitter_template(job(), cluster(), Config(enable_login_shell=True))
    assert template["spec"]["containers"][0]["command"] == ["/bin/bash", "-cel", "--"]
    limited = job(make.spec(submitterConfig={"backoffLimit": 0}))
    assert submitter_job(limited, template)["spec"]["backoffLimit"] == 0


def test_it_gets_what_the_head_needs_to_start() -> None:
    pull: dict[str, Any] = {
        "imagePullSecrets": [{"name": "s"}],
        "tolerations": [{"key": "t"}],
        "nodeSelector": {"a": "b"},
    }
    head = make.head(template=make.pod_template("ray-head", serviceAccountName="sa", **pull))
    found = submitter_template(job(), cluster(head), Config())["spec"]
    assert {name: found.get(name) for name in pull} == pull
    assert found["serviceAccountName"] == "sa"


def user_template(**container: Any) -> make.Part:
    """A submitter of the user's own."""
    pod = {"containers": [{"name": "mine", "image": "mine:1", **container}, {"name": "other"}]}
    return make.spec(submitterPodTemplate={"metadata": {"labels": {"team": "x"}}, "spec": pod})


def test_a_users_template_gets_the_command_unless_it_has_one() -> None:
    found = submitter_template(job(user_template(args=["lost"])), cluster(), Config())
    assert found["spec"]["containers"][0]["args"] == [
        submit_command(job(), ADDRESS, f"{ADDRESS}/api/gcs_healthz", attach=True)
    ]
    assert "restartPolicy" not in found["spec"], "the user must say"
    assert found["metadata"]["labels"]["team"] == "x"
    own = submitter_template(job(user_template(command=["/submitter"], args=["--x"])), cluster(), Config())
    container = own["spec"]["containers"][0]
    assert (container["command"], container["args"]) == (["/submitter"], ["--x"])
    assert container["env"][-1] == {"name": "RAY_JOB_SUBMISSION_ID", "value": "j-abcde"}
    assert "env" not in own["spec"]["containers"][1]


def test_tokens() -> None:
    token = submitter_template(job(), cluster(make.cluster(authOptions={"mode": "token"})), Config())
    assert token["spec"]["containers"][0]["env"][3:] == [
        {"name": "RAY_AUTH_MODE", "value": "token"},
        {"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": {"name": "c", "key": "auth_token"}}},
    ]
    kubernetes = make.cluster(authOptions={"mode": "token", "enableK8sTokenAuth": True})
    found = submitter_template(job(), cluster(kubernetes), Config())["spec"]
    assert {"name": "RAY_ENABLE_K8S_TOKEN_AUTH", "value": "true"} in found["containers"][0]["env"]
    assert found["volumes"] == [
        {"name": "ray-token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    ]
    assert found["containers"][0]["volumeMounts"] == [
        {"name": "ray-token", "mountPath": "/var/run/secrets/ray.io/serviceaccount", "readOnly": True}
    ]


# --- the cluster


def test_the_cluster_of_a_job() -> None:
    of = job(make.labels(team="x"), make.annotations(note="y"), make.workers(1))
    made = job_cluster(of, Config())
    assert made["metadata"]["name"] == "c"
    assert made["metadata"]["labels"] == {
        "team": "x",
        "ray.io/originated-from-cr-name": "j",
        "ray.io/originated-from-crd": "RayJob",
        "ray.io/job-submission-mode": "K8sJobMode",
    }
    assert made["metadata"]["annotations"] == {"note": "y"}
    assert made["spec"] == of.spec.ray_cluster_spec.raw
    made["spec"]["headGroupSpec"]["template"]["spec"]["containers"].append({})
    assert len(of.spec.ray_cluster_spec.head_group_spec.template["spec"]["containers"]) == 1, "a copy"


@pytest.mark.parametrize("restarts", [False, True])
def test_a_sidecar_in_the_head(restarts: bool) -> None:
    config = Config(gates=Config().gates.with_overrides(f"SidecarSubmitterRestart={str(restarts).lower()}"))
    of = job(make.spec(submissionMode="SidecarMode"), make.status(dashboardURL=""))
    made = job_cluster(of, config)
    assert made["metadata"]["annotations"] == {"ray.io/disable-provisioned-head-restart": "true"}
    pod = made["spec"]["headGroupSpec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    container = pod["containers"][-1]
    assert container == sidecar(of, RayCluster(made), config)
    assert container["name"] == "ray-job-submitter"
    assert container.get("restartPolicy") == ("OnFailure" if restarts else None)
    line = container["args"][0]
    assert "urlopen('http://localhost:8265/api/gcs_healthz'" in line
    assert "healthy at http://127.0.0.1:8265 ..." in line
    assert ("--follow" in line) == restarts
    assert line.endswith("--follow j-abcde" if restarts else "-- python main.py ;")
    assert {"name": "RAY_DASHBOARD_ADDRESS"} in container["env"]


def test_a_sidecar_finds_another_port() -> None:
    template = make.pod_template("ray-head")
    template["spec"]["containers"][0]["ports"] = [{"name": "dashboard", "containerPort": 9000}]
    of = job(make.spec(submissionMode="SidecarMode"), make.head(template=template))
    assert "http://127.0.0.1:9000" in sidecar(of, RayCluster(job_cluster(of, Config())), Config())["args"][0]


def test_the_service_of_a_job_leads_to_its_cluster() -> None:
    made = job_head_service(job(), cluster(), Config())
    assert made["metadata"]["name"] == "j-head-svc"
    assert made["metadata"]["labels"] == {
        "ray.io/originated-from-cr-name": "j",
        "ray.io/originated-from-crd": "RayJob",
        "ray.io/node-type": "head",
        "ray.io/identifier": "j-head",
    }
    assert made["metadata"]["ownerReferences"][0]["kind"] == "RayJob"
    assert made["spec"]["selector"]["ray.io/cluster"] == "c"
    assert (made["spec"]["clusterIP"], made["spec"]["publishNotReadyAddresses"]) == ("None", True)
