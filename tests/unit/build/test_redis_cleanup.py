"""Contract 02 §3.1: the Job that empties Redis."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kuberay_op.api.view import Json
from kuberay_op.build.pod import plain_head_pod
from kuberay_op.build.redis_cleanup import redis_cleanup_job
from kuberay_op.config import Config
from kuberay_op.testing import make
from tests.unit.build.shapes import UID, cluster, gated, head_pod_spec, head_template, variables

OWN_INIT: list[Json] = [{"name": "own-init", "image": "x"}]


def job(*parts: make.Part, config: Config | None = None) -> Json:
    return redis_cleanup_job(cluster(make.redis("r:1"), *parts), config or Config())


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
    config = gated("RayClusterMTLS")
    found = cluster(make.redis("r:1"), *parts)
    pod = redis_cleanup_job(found, config)["spec"]["template"]["spec"]
    head = plain_head_pod(found, config)["spec"]
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
    made = job(head_template(labels={"app.kubernetes.io/created-by": "me"}))
    assert made["metadata"]["labels"]["app.kubernetes.io/created-by"] == "kuberay-operator"


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
    made = redis_cleanup_job(cluster(make.redis("x:1", **options)), Config())
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
