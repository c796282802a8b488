"""Contract 02 §6.8 and §4: fault tolerance of the control store, and the volume claim."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.api.view import Json
from kuberay_op.build.gcs_ft import storage_claim
from kuberay_op.testing import make
from tests.unit.build.shapes import UID, cluster, flags, head, head_container, ray, variables, worker

ANNOTATED = make.annotations({"ray.io/ft-enabled": "TRUE"})
FT = (
    "RAY_external_storage_namespace",
    "RAY_REDIS_ADDRESS",
    "REDIS_USERNAME",
    "REDIS_PASSWORD",
    "RAY_gcs_storage",
    "RAY_gcs_storage_path",
    "RAY_gcs_rpc_server_reconnect_timeout_s",
)


def ft_variables(pod: Json) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in variables(ray(pod)) if name in FT]


def notes(pod: Json) -> tuple[str | None, str | None]:
    found = pod["metadata"].get("annotations", {})
    return found.get("ray.io/ft-enabled"), found.get("ray.io/external-storage-namespace")


@pytest.mark.parametrize("value", ["false", "", "yes"])
def test_off(value: str) -> None:
    part = make.annotations({"ray.io/ft-enabled": value})
    assert ft_variables(head(part)) == []
    assert notes(head(part)) == ("false", None)
    assert ft_variables(worker(part)) == []


@pytest.mark.parametrize("part", [ANNOTATED, make.redis(), make.cluster(gcsFaultToleranceOptions={})])
def test_workers_wait_long_for_a_lost_head(part: make.Part) -> None:
    assert ft_variables(worker(part)) == [("RAY_gcs_rpc_server_reconnect_timeout_s", "600")]
    assert notes(worker(part)) == (None, None)
    assert "RAY_gcs_rpc_server_reconnect_timeout_s" not in dict(ft_variables(head(part)))


def test_workers_wait_as_long_as_the_user_says() -> None:
    own = {"name": "RAY_gcs_rpc_server_reconnect_timeout_s", "value": "7"}
    template = make.pod_template("w")
    template["spec"]["containers"][0]["env"] = [own]
    pod = worker(make.redis(), group={"template": template})
    assert ft_variables(pod) == [("RAY_gcs_rpc_server_reconnect_timeout_s", "7")]


SECRET = {"secretKeyRef": {"name": "redis", "key": "password"}}


@pytest.mark.parametrize(
    ("part", "namespace", "wanted", "params"),
    [
        (ANNOTATED, UID, [], {}),
        (
            make.annotations({"ray.io/ft-enabled": "true", "ray.io/external-storage-namespace": "x"}),
            "x",
            [],
            {},
        ),
        (make.redis("r:1"), UID, [("RAY_REDIS_ADDRESS", "r:1")], {}),
        (make.cluster(gcsFaultToleranceOptions={}), UID, [("RAY_REDIS_ADDRESS", "")], {}),
        (
            make.redis(
                "r:1",
                externalStorageNamespace="y",
                redisUsername={"value": "u"},
                redisPassword={"valueFrom": SECRET},
            ),
            "y",
            [("RAY_REDIS_ADDRESS", "r:1"), ("REDIS_USERNAME", "u"), ("REDIS_PASSWORD", SECRET)],
            {"redis-username": "$REDIS_USERNAME", "redis-password": "$REDIS_PASSWORD"},
        ),
    ],
)
def test_the_head_with_redis(
    part: make.Part, namespace: str, wanted: list[tuple[str, Any]], params: dict[str, str]
) -> None:
    pod = head(part)
    assert notes(pod) == ("true", namespace)
    assert ft_variables(pod) == [("RAY_external_storage_namespace", namespace), *wanted]
    assert {key: value for key, value in flags(pod).items() if key.startswith("redis-")} == params


def test_options_win_over_the_annotation() -> None:
    pod = head(
        make.annotations({"ray.io/external-storage-namespace": "x"}),
        make.redis(externalStorageNamespace="y"),
    )
    assert notes(pod) == ("true", "y")


def test_a_password_among_the_flags_reaches_the_clean_up() -> None:
    pod = head(ANNOTATED, make.head(rayStartParams={"redis-password": "p"}))
    assert ft_variables(pod)[1:] == [("REDIS_PASSWORD", "p")]
    own = head_container(env=[{"name": "REDIS_PASSWORD", "value": "mine"}])
    pod = head(ANNOTATED, own, make.head(rayStartParams={"redis-password": "p"}))
    assert dict(ft_variables(pod))["REDIS_PASSWORD"] == "mine"


def test_a_namespace_of_the_user_is_used_and_shown() -> None:
    """Decided (§16.3 29): the annotation shows what Ray uses."""
    own = head_container(env=[{"name": "RAY_external_storage_namespace", "value": "mine"}])
    pod = head(make.redis(externalStorageNamespace="y"), own)
    assert dict(ft_variables(pod))["RAY_external_storage_namespace"] == "mine"
    assert notes(pod) == ("true", "mine")


# --- a volume instead of Redis


def rocksdb(**storage: Any) -> make.Part:
    return make.cluster(gcsFaultToleranceOptions={"backend": "rocksdb", "storage": storage})


@pytest.mark.parametrize(
    ("storage", "claim", "folder"),
    [
        ({}, "c-gcs-pvc", {}),
        ({"claimName": "mine", "subPath": "a/b"}, "mine", {"subPath": "a/b"}),
    ],
)
def test_the_head_with_a_volume(storage: Json, claim: str, folder: Json) -> None:
    pod = head(rocksdb(**storage))
    assert notes(pod) == ("true", None)
    assert ft_variables(pod) == [("RAY_gcs_storage", "rocksdb"), ("RAY_gcs_storage_path", "/data/gcs")]
    volume = {"name": "gcs-storage", "persistentVolumeClaim": {"claimName": claim}}
    assert volume in pod["spec"]["volumes"]
    assert {"name": "gcs-storage", "mountPath": "/data/gcs", **folder} in ray(pod)["volumeMounts"]
    assert "gcs-storage" not in [v["name"] for v in worker(rocksdb(**storage))["spec"]["volumes"]]


@pytest.mark.parametrize("part", [make.redis(), ANNOTATED, rocksdb(claimName="mine"), make.cluster()])
def test_no_claim_of_ours(part: make.Part) -> None:
    assert storage_claim(cluster(part)) is None


OWNER = {
    "apiVersion": "ray.io/v1",
    "kind": "RayCluster",
    "name": "c",
    "uid": UID,
    "controller": True,
    "blockOwnerDeletion": True,
}


@pytest.mark.parametrize(
    ("storage", "wanted", "owners"),
    [
        (
            {},
            {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            [OWNER],
        ),
        (
            {"size": "5Gi", "storageClassName": "fast", "accessModes": ["ReadWriteMany"]},
            {
                "accessModes": ["ReadWriteMany"],
                "resources": {"requests": {"storage": "5Gi"}},
                "storageClassName": "fast",
            },
            [OWNER],
        ),
        (
            {"deletionPolicy": "Retain", "storageClassName": ""},
            {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "",
            },
            None,
        ),
    ],
)
def test_the_claim(storage: Json, wanted: Json, owners: list[Json] | None) -> None:
    claim = storage_claim(cluster(rocksdb(**storage)))
    assert claim is not None
    assert claim["spec"] == wanted
    metadata = {"name": "c-gcs-pvc", "namespace": "ns", "labels": {"ray.io/cluster": "c"}}
    assert claim["metadata"] == {**metadata, **({"ownerReferences": owners} if owners else {})}
