"""Defaults are those of the schema, and the object that was given stays as it was."""

from __future__ import annotations

import copy

from kuberay_op.api.defaults import with_defaults
from kuberay_op.testing import make


def test_a_worker_group_gets_its_defaults() -> None:
    obj = make.raycluster("a", make.cluster(workerGroupSpecs=[{"groupName": "g", "template": {}}]))
    assert with_defaults(obj)["spec"]["workerGroupSpecs"] == [
        {
            "groupName": "g",
            "template": {},
            "replicas": 0,
            "minReplicas": 0,
            "maxReplicas": 2147483647,
            "numOfHosts": 1,
            "priority": 0,
        }
    ]


def test_defaults_reach_every_depth() -> None:
    cron = make.raycronjob("a", make.workers(1), make.cluster(networkPolicy={}))
    job = with_defaults(cron)["spec"]["jobTemplate"]
    assert (job["submissionMode"], job["backoffLimit"], job["ttlSecondsAfterFinished"]) == (
        "K8sJobMode",
        0,
        0,
    )
    assert job["rayClusterSpec"]["networkPolicy"] == {"mode": "DenyAll"}
    assert job["rayClusterSpec"]["workerGroupSpecs"][0]["numOfHosts"] == 1


def test_pod_templates_get_the_defaults_of_kubernetes_that_the_schema_has() -> None:
    pod = {
        "containers": [
            {"name": "a", "ports": [{"containerPort": 80}], "livenessProbe": {"grpc": {"port": 1}}}
        ],
        "imagePullSecrets": [{}],
        "volumes": [{"name": "v", "azureDisk": {"diskName": "d", "diskURI": "u"}}],
    }
    obj = make.raycluster("a", make.head(template={"spec": pod}))
    spec = with_defaults(obj)["spec"]["headGroupSpec"]["template"]["spec"]
    assert spec["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert spec["containers"][0]["livenessProbe"] == {"grpc": {"port": 1, "service": ""}}
    assert spec["imagePullSecrets"] == [{"name": ""}]
    disk = {"diskName": "d", "diskURI": "u", "fsType": "ext4", "readOnly": False}
    assert spec["volumes"][0]["azureDisk"] == disk
    assert "restartPolicy" not in spec


def test_a_null_counts_as_not_set() -> None:
    obj = make.raycluster(
        "a", make.workers(1, "g", minReplicas=None, rayStartParams=None, labels={"a": None})
    )
    group = with_defaults(obj)["spec"]["workerGroupSpecs"][0]
    assert group["minReplicas"] == 0
    assert "rayStartParams" not in group
    assert group["labels"] == {}


def test_a_null_stays_where_null_is_allowed_or_nothing_is_known() -> None:
    obj = make.raycluster("a", make.status(lastUpdateTime=None))
    obj["spec"]["unknown"] = None
    result = with_defaults(obj)
    assert result["status"] == {"lastUpdateTime": None}
    assert result["spec"]["unknown"] is None


def test_what_is_set_wins_and_the_input_stays() -> None:
    obj = make.rayjob("a", make.spec(submissionMode="HTTPMode"), make.workers(3))
    obj["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["unknown"] = {"kept": [1]}
    before = copy.deepcopy(obj)
    result = with_defaults(obj)
    assert obj == before
    assert result["spec"]["submissionMode"] == "HTTPMode"
    group = result["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]
    assert group["unknown"] == {"kept": [1]}
    group["unknown"]["kept"].append(2)
    assert obj == before


def test_defaults_twice_are_defaults_once() -> None:
    for obj in (make.raycluster("a", make.workers()), make.rayservice("a"), make.raycronjob("a")):
        once = with_defaults(obj)
        assert with_defaults(once) == once


def test_other_kinds_come_back_as_they_are() -> None:
    obj = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [None]}}
    result = with_defaults(obj)
    assert result == obj
    assert result is not obj
