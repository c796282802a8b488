"""The schema layer: each check with an object that passes and one that does not.

That the verdicts are those of a real API server is shown in tests/apiserver/test_crds.py.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kuberay_op.api.problems import Problem
from kuberay_op.api.schema import schema_problems
from kuberay_op.api.view import Json
from kuberay_op.testing import make


def texts(obj: Json, old: Json | None = None) -> list[str]:
    """The problems as lines."""
    return [str(problem) for problem in schema_problems(obj, old=old)]


def cluster(**fields: Any) -> Json:
    """A RayCluster with fields of its spec."""
    return make.raycluster("a", make.workers(1, "g"), make.cluster(**fields))


def job(**fields: Any) -> Json:
    """A RayJob with fields of its spec."""
    return make.rayjob("a", make.spec(**fields))


def test_a_good_object_has_no_problems() -> None:
    for obj in (cluster(), job(), make.rayservice("a"), make.raycronjob("a")):
        assert texts(obj) == []


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"suspend": "true"}, "spec.suspend: must be true or false, not the string 'true'"),
        ({"rayVersion": 2.5}, "spec.rayVersion: must be a string, not a number"),
        ({"workerGroupSpecs": {}}, "spec.workerGroupSpecs: must be a list, not a mapping"),
        ({"headGroupSpec": []}, "spec.headGroupSpec: must be a mapping, not a list"),
        ({"headGroupSpec": None}, "spec.headGroupSpec: is required"),
        ({"workerGroupSpecs": [None]}, "spec.workerGroupSpecs[0]: must be a mapping, not null"),
        ({"workerGroupSpec": []}, "spec.workerGroupSpec: unknown field; did you mean 'workerGroupSpecs'?"),
        ({"zzz": 1}, "spec.zzz: unknown field"),
        (
            {"authOptions": {"mode": "tokens"}},
            "spec.authOptions.mode: must be disabled or token, not 'tokens'; did you mean 'token'?",
        ),
        ({"managedBy": "me"}, "spec.managedBy: must be 'ray.io/kuberay-operator' or "
         "'kueue.x-k8s.io/multikueue'"),
        (
            {"gcsFaultToleranceOptions": {"storage": {"size": "2GB"}}},
            "spec.gcsFaultToleranceOptions.storage.size: must be a quantity such as 500m or 2Gi, not '2GB'",
        ),
        (
            {"gcsFaultToleranceOptions": {"storage": {"size": 0.5}}},
            "spec.gcsFaultToleranceOptions.storage.size: must be a quantity such as 500m or 2Gi; put it in "
            "quotes, not the number 0.5",
        ),
        (
            {"networkPolicy": {"workerGroups": [{"groupName": "g"}, {"groupName": "g"}]}},
            "spec.networkPolicy.workerGroups[1]: is there twice: groupName 'g'",
        ),
    ],
)  # fmt: skip
def test_mistakes_in_a_cluster(fields: dict[str, Any], line: str) -> None:
    assert texts(cluster(**fields)) == [line]


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (0, ""),
        (3.0, ""),
        (None, ""),
        (-1, ""),
        (2**31 - 1, ""),
        (2**31, "must be at most 2147483647, not 2147483648"),
        (-(2**31) - 1, "must be at least -2147483648, not -2147483649"),
        (2**64, "must be a whole number, not the number 18446744073709551616"),
        (3.5, "must be a whole number, not the number 3.5"),
        (True, "must be a whole number, not the flag true"),
        ("3", "must be a whole number, not the string '3'"),
    ],
)
def test_whole_numbers(value: object, line: str) -> None:
    obj = make.raycluster("a", make.workers(1, "g", minReplicas=value))
    wanted = [f"spec.workerGroupSpecs[0].minReplicas: {line}"] if line else []
    assert texts(obj) == wanted


@pytest.mark.parametrize(
    ("value", "good"),
    [(1, True), ("500m", True), ("1e3", True), ("", False), ("1\n", False), (True, False), (2.0, True)],
)
def test_quantities(value: object, good: bool) -> None:
    found = texts(cluster(gcsFaultToleranceOptions={"storage": {"size": value}}))
    assert (found == []) is good


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"preRunningDeadlineSeconds": 0}, "spec.preRunningDeadlineSeconds: must be at least 1, not 0"),
        ({"entrypointNumCpus": "1"}, "spec.entrypointNumCpus: must be a number, not the string '1'"),
        ({"entrypointNumCpus": True}, "spec.entrypointNumCpus: must be a number, not the flag true"),
        (
            {"deletionStrategy": {"deletionRules": []}},
            "spec.deletionStrategy.deletionRules: must have at least 1 entry",
        ),
        (
            {"deletionStrategy": {"onSuccess": {}}},
            "spec.deletionStrategy: give deletionRules, or both onSuccess and onFailure",
        ),
        (
            {"deletionStrategy": {"onSuccess": {}, "onFailure": None}},
            "spec.deletionStrategy: give deletionRules, or both onSuccess and onFailure",
        ),
        (
            {
                "deletionStrategy": {
                    "onFailure": {},
                    "deletionRules": [{"policy": "DeleteSelf", "condition": {"jobStatus": "FAILED"}}],
                }
            },
            "spec.deletionStrategy: give either deletionRules or onSuccess and onFailure, not both",
        ),
        (
            {"deletionStrategy": {"deletionRules": [{"policy": "DeleteSelf", "condition": {}}]}},
            "spec.deletionStrategy.deletionRules[0].condition: give jobStatus or jobDeploymentStatus",
        ),
        (
            {
                "deletionStrategy": {
                    "deletionRules": [
                        {
                            "policy": "DeleteSelf",
                            "condition": {"jobStatus": "FAILED", "jobDeploymentStatus": "Failed"},
                        }
                    ]
                }
            },
            "spec.deletionStrategy.deletionRules[0].condition: give either jobStatus or "
            "jobDeploymentStatus, not both",
        ),
    ],
)
def test_mistakes_in_a_job(fields: dict[str, Any], line: str) -> None:
    assert texts(job(**fields)) == [line]


def test_rules_hold_at_every_depth() -> None:
    cron = make.raycronjob("a", make.cluster(managedBy="me"))
    assert [problem.path_text for problem in schema_problems(cron)] == [
        "spec.jobTemplate.rayClusterSpec.managedBy"
    ]


def test_values_that_may_not_change() -> None:
    old = cluster(managedBy="ray.io/kuberay-operator", gcsFaultToleranceOptions={"backend": "redis"})
    new = cluster(managedBy="kueue.x-k8s.io/multikueue", gcsFaultToleranceOptions={"backend": "rocksdb"})
    assert texts(new, old) == [
        "spec.managedBy: cannot be changed once it is set",
        "spec.gcsFaultToleranceOptions.backend: cannot be changed once it is set",
    ]
    assert texts(new, cluster()) == []  # adding is not blocked
    assert texts(cluster(), old) == []  # nor is removing
    assert texts(old, old) == []


def test_doubled_ports_are_found_after_defaults() -> None:
    obj = make.raycluster("a")
    container = obj["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    container["ports"] = [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]
    assert texts(obj) == []
    container["ports"].append({"containerPort": 80, "protocol": "TCP"})
    path = "spec.headGroupSpec.template.spec.containers[0].ports[2]"
    assert texts(obj) == [f"{path}: is there twice: containerPort 80, protocol 'TCP'"]


def test_what_stands_in_status_is_not_checked_but_unknown_fields_are() -> None:
    assert texts(make.raycluster("a", make.status(state=5, desiredCPU="x"))) == []
    assert texts(make.raycluster("a", make.status(stat="x"))) == [
        "status.stat: unknown field; did you mean 'state'?"
    ]
    assert len(texts(make.raycluster("a", make.status(state={"a": 1})))) == 1


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"kind": "X"}, "kind: must be RayCluster, RayCronJob, RayJob or RayService, not 'X'"),
        ({"kind": None}, "kind: must be RayCluster, RayCronJob, RayJob or RayService"),
        ({"apiVersion": "ray.io/v2"},
         "apiVersion: must be ray.io/v1 or ray.io/v1alpha1 for RayCluster, not 'ray.io/v2'"),
        ({"apiVersion": "v1"}, "apiVersion: must be ray.io/v1 or ray.io/v1alpha1 for RayCluster, not 'v1'"),
        ({"metadata": None}, "metadata.name: is required"),
        ({"metadata": {}}, "metadata.name: is required"),
        ({"metadata": {"name": "a", "lables": {}}}, "metadata.lables: unknown field; did you mean 'labels'?"),
        ({"metadata": {"name": "a", "labels": {"a": 1}}},
         "metadata.labels.a: must be a string, not a number"),
        ({"metadata": {"name": "a", "ownerReferences": [{"kind": "x", "name": "y", "uid": "z"}]}},
         "metadata.ownerReferences[0].apiVersion: is required"),
        ({"spec": 5}, "spec: must be a mapping, not a number"),
        ({"extra": 5}, "extra: unknown field"),
    ],
)  # fmt: skip
def test_mistakes_around_the_spec(change: dict[str, Any], line: str) -> None:
    assert texts({**cluster(), **change}) == [line]


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        ({"name": "A"}, "metadata.name"),
        ({"name": "a" * 254}, "metadata.name"),
        ({"generateName": "A-"}, "metadata.generateName"),
        ({"name": "a", "labels": {"a/b/c": "d"}}, "metadata.labels[a/b/c]"),
        ({"name": "a", "labels": {"a": "b c"}}, "metadata.labels.a"),
        ({"name": "a", "annotations": {"": "b c"}}, "metadata.annotations[]"),
        ({"name": "a", "annotations": {"a": "x" * 300_000}}, "metadata.annotations"),
        ({"name": "a", "finalizers": ["a b"]}, "metadata.finalizers[0]"),
        (
            {
                "name": "a",
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "P", "name": name, "uid": name, "controller": True}
                    for name in ("x", "y")
                ],
            },
            "metadata.ownerReferences",
        ),
    ],
)
def test_mistakes_in_metadata(metadata: Json, path: str) -> None:
    found = schema_problems({**cluster(), "metadata": metadata})
    assert [problem.path_text for problem in found] == [path]


def test_metadata_that_is_fine() -> None:
    owner = {"apiVersion": "v1", "kind": "P", "name": "x", "uid": "x", "controller": True}
    metadata = {
        "generateName": "a-",
        "labels": {"ray.io/x": "", "a": "A.b_c"},
        "annotations": {"Ray.io/X": "any text at all"},
        "finalizers": ["ray.io/done"],
        "ownerReferences": [owner, copy.deepcopy(owner)],  # the server merges equal ones
        "managedFields": [{"anything": 1}],
        "creationTimestamp": None,
    }
    assert texts({**cluster(), "metadata": metadata}) == []


def test_all_mistakes_are_found_at_once() -> None:
    obj = cluster(suspend=1, rayVersion=2, networkPolicy={"mode": "x"})
    obj["metadata"]["name"] = "A"
    assert len(schema_problems(obj)) == 4


def test_nothing_that_could_be_a_secret_is_shown() -> None:
    secret = 12345678
    obj = cluster(gcsFaultToleranceOptions={"redisPassword": {"value": secret}})
    obj["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["env"] = [
        {"name": "A", "value": secret}
    ]
    found = schema_problems(obj)
    assert len(found) == 2
    for problem in found:
        assert str(secret) not in str(problem)
        assert problem.value is None


def test_the_deprecated_version_knows_only_its_own_fields() -> None:
    obj = make.raycluster("a", make.workers(1, "g"))
    obj["apiVersion"] = "ray.io/v1alpha1"
    assert texts(obj) == []
    obj["spec"]["workerGroupSpecs"][0]["numOfHosts"] = 2
    del obj["spec"]["workerGroupSpecs"][0]["rayStartParams"]
    assert texts(obj) == [
        "spec.workerGroupSpecs[0].numOfHosts: unknown field",
        "spec.workerGroupSpecs[0].rayStartParams: is required",
    ]


def test_times_are_read_as_the_server_reads_them() -> None:
    def verdict(moment: object) -> bool:
        condition = {
            "type": "A",
            "status": "True",
            "reason": "A",
            "message": "",
            "lastTransitionTime": moment,
        }
        service = {"status": {"conditions": [condition]}}
        return texts(make.raycluster("a", make.head(headService=service))) == []

    good = ["2026-01-31T12:00:00Z", "2026-01-31t12:00:00.5+01:00", "0000-02-29T00:00:00Z", [], ["x"]]
    bad = [
        "",
        "2026-01-31",
        "2026-02-30T12:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T12:00:00",
        [{"a": 1}],
        5,
    ]
    assert [verdict(moment) for moment in good] == [True] * len(good)
    assert [verdict(moment) for moment in bad] == [False] * len(bad)


def test_checking_changes_nothing() -> None:
    obj = cluster(suspend=1)
    before = copy.deepcopy(obj)
    schema_problems(obj)
    assert obj == before


def test_a_problem_reads_well() -> None:
    problem = Problem(("spec", "workerGroupSpecs", 0, "labels", "ray.io/x"), "is wrong")
    assert problem.path_text == "spec.workerGroupSpecs[0].labels[ray.io/x]"
    assert str(problem) == "spec.workerGroupSpecs[0].labels[ray.io/x]: is wrong"
    assert str(Problem((), "is wrong")) == "is wrong"
    assert problem.severity == "error"
