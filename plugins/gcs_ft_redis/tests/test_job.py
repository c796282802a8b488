"""Contract 02 §3.1: the Job that empties Redis."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.view import Json
from kuberay_op.build.pod import plain_head_pod
from kuberay_op.config import Config
from kuberay_op.declarative.manifest import read_manifest
from kuberay_op.declarative.options import checked_options
from kuberay_op.features import Gates
from kuberay_op.testing import make
from kuberay_op_gcs_ft_redis.job import cleanup_job

MANIFEST = Path(__file__).parent.parent / "src" / "kuberay_op_gcs_ft_redis" / "plugin.yaml"
UID = "4b1a3a2c-0000-4000-8000-00000000c0de"
OWN_INIT: list[Json] = [{"name": "own-init", "image": "x"}]


def cluster(*parts: make.Part) -> RayCluster:
    return RayCluster(make.raycluster("c", make.namespace("ns"), make.stored(uid=UID), *parts))


def job(*parts: make.Part, config: Config | None = None, **options: Any) -> Json:
    chosen = checked_options(read_manifest(MANIFEST), options)
    return cleanup_job(cluster(make.redis("r:1"), *parts), config or Config(), chosen)


def head_pod_spec(**fields: Any) -> make.Part:
    return lambda obj: obj["spec"]["headGroupSpec"]["template"]["spec"].update(fields)


def variables(container: Json) -> list[tuple[str, Any]]:
    return [(each["name"], each.get("value")) for each in container["env"]]


def test_the_job() -> None:
    made = job()
    assert made["apiVersion"] == "batch/v1"
    metadata = made["metadata"]
    assert metadata["name"] == "c-redis-cleanup"
    assert metadata["ownerReferences"][0]["uid"] == UID
    assert metadata["labels"]["ray.io/node-type"] == "redis-cleanup"
    assert metadata["labels"]["ray.io/cluster"] == "c"
    notes = {"ray.io/ft-enabled": "true", "ray.io/external-storage-namespace": UID}
    assert metadata["annotations"] == notes, "and no hash"
    assert {key: value for key, value in made["spec"].items() if key != "template"} == {
        "backoffLimit": 0,
        "activeDeadlineSeconds": 300,
    }
    template = made["spec"]["template"]
    assert template["metadata"]["labels"]["ray.io/node-type"] == "redis-cleanup"
    assert template["metadata"]["annotations"] == notes


def test_its_pod_is_the_heads_with_one_container() -> None:
    parts = (
        make.autoscaling(),
        make.cluster(tlsOptions={"enabled": True}),
        head_pod_spec(tolerations=[{"operator": "Exists"}], initContainers=OWN_INIT),
    )
    config = Config(gates=Gates.default().with_overrides("RayClusterMTLS=true"))
    pod = job(*parts, config=config)["spec"]["template"]["spec"]
    head = plain_head_pod(cluster(make.redis("r:1"), *parts), config)["spec"]
    same = ("volumes", "tolerations", "serviceAccountName")
    assert {key: pod[key] for key in same} == {key: head[key] for key in same}
    assert [c["name"] for c in pod["initContainers"]] == ["own-init"]
    assert pod["restartPolicy"] == "Never"
    [ray] = pod["containers"]
    amounts = {"cpu": "200m", "memory": "256Mi"}
    assert ray["resources"] == {"limits": amounts, "requests": amounts}
    assert "livenessProbe" not in ray
    assert "readinessProbe" not in ray
    assert ray["command"] == ["/bin/bash", "-c", "--"]
    assert variables(ray) == [
        *variables(head["containers"][0]),
        ("RAY_redis_db_connect_retries", "120"),
        ("RAY_redis_db_connect_wait_milliseconds", "500"),
    ]


def test_the_job_is_found_whatever_the_template_says() -> None:
    """Decided (§16.1 7): Jobs are found by this label."""
    labels = {"app.kubernetes.io/created-by": "me"}

    def theirs(obj: Json) -> None:
        obj["spec"]["headGroupSpec"]["template"]["metadata"] = {"labels": labels}

    made = job(theirs)
    assert made["metadata"]["labels"]["app.kubernetes.io/created-by"] == "kuberay-operator"


def test_options() -> None:
    head = {"tolerations": [{"key": "mine"}], "securityContext": {"fsGroup": 1}}
    options: dict[str, Any] = {
        "resources": {"limits": {"memory": "1Gi"}},
        "tolerations": [{"key": "spot"}],
        "podSecurityContext": {"runAsNonRoot": True},
        "securityContext": {"readOnlyRootFilesystem": True},
    }
    pod = job(head_pod_spec(**head), **options)["spec"]["template"]["spec"]
    assert pod["tolerations"] == [{"key": "mine"}, {"key": "spot"}]
    assert pod["securityContext"] == {"runAsNonRoot": True}
    assert pod["containers"][0]["securityContext"] == {"readOnlyRootFilesystem": True}
    assert pod["containers"][0]["resources"] == {"limits": {"memory": "1Gi"}}
    plain = job(head_pod_spec(**head))["spec"]["template"]["spec"]
    assert (plain["tolerations"], plain["securityContext"]) == ([{"key": "mine"}], {"fsGroup": 1})


#: Stands in for Ray: says what it was asked to do.
FAKE_RAY = """
import json, sys
def cleanup_redis_storage(**asked):
    print(json.dumps(asked))
    return asked["host"] != "broken"
"""


@pytest.mark.parametrize(
    ("options", "environment", "wanted"),
    [
        (
            {},
            {"RAY_REDIS_ADDRESS": "redis:6379"},
            {"host": "redis", "port": 6379, "password": "", "use_ssl": False},
        ),
        (
            {},
            {"RAY_REDIS_ADDRESS": "rediss://u:p@a:1,b:2"},
            {"host": "a", "port": 1, "password": "p", "use_ssl": True},
        ),
        (
            {"redisUsername": {"value": "me"}},
            {"RAY_REDIS_ADDRESS": "redis://u:p@a:1", "REDIS_USERNAME": "me", "REDIS_PASSWORD": "mine"},
            {"host": "a", "port": 1, "username": "me", "password": "mine", "use_ssl": False},
        ),
        ({}, {"RAY_REDIS_ADDRESS": "broken:1"}, None),
    ],
)
def test_what_its_script_does(
    tmp_path: Path, options: Json, environment: dict[str, str], wanted: dict[str, Any] | None
) -> None:
    folder = tmp_path / "ray" / "_private"
    folder.mkdir(parents=True)
    (folder / "gcs_utils.py").write_text(FAKE_RAY)
    (tmp_path / "python").symlink_to(sys.executable)
    made = job(make.redis("x:1", **options))
    [ray] = made["spec"]["template"]["spec"]["containers"]
    done = subprocess.run(
        [*ray["command"], *ray["args"]],
        env={
            **environment,
            "RAY_external_storage_namespace": "keys",
            "PATH": f"{tmp_path}:/usr/bin:/bin",
            "PYTHONPATH": str(tmp_path),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == (1 if wanted is None else 0), done.stderr
    if wanted is not None:
        hint, asked = done.stdout.splitlines()
        assert "docs.ray.io" in hint
        assert json.loads(asked) == {**wanted, "storage_namespace": "keys"}
