from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuberay_op.frozen import freeze
from kuberay_op.kube.merge import merge_patch, overlay

POD: dict[str, Any] = {
    "metadata": {
        "name": "a",
        "labels": {"ours": "1", "theirs": "2"},
        "annotations": {"injected": "yes"},
        "finalizers": ["theirs/x"],
    },
    "spec": {
        "containers": [
            {
                "name": "ray",
                "image": "ray:2",
                "imagePullPolicy": "IfNotPresent",
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
                "env": [{"name": "A", "value": "1"}, {"name": "INJECTED", "value": "x"}],
                "ports": [{"containerPort": 6379, "protocol": "TCP", "name": "gcs"}],
                "command": ["ray", "start"],
            },
            {"name": "sidecar", "image": "mesh"},
        ],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
        "restartPolicy": "Always",
    },
}


def in_container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "ray", **fields}]}}


@pytest.mark.parametrize(
    "desired",
    [
        {},
        POD,
        {"metadata": {"labels": {"ours": "1"}}},
        {"metadata": {"labels": {}, "annotations": {}}},
        {"metadata": {"finalizers": ["theirs/x"]}},
        {"metadata": {"uid": "u", "resourceVersion": "3", "generation": 1, "managedFields": [{}]}},
        in_container(image="ray:2"),
        in_container(env=[{"name": "A", "value": "1"}]),
        in_container(resources={"limits": {"cpu": "1000m", "memory": 1073741824}}),
        in_container(resources={"limits": {"cpu": 1}}),
        in_container(ports=[{"containerPort": 6379, "name": "gcs"}]),
        in_container(command=["ray", "start"], stdin=False, workingDir="", volumeMounts=[], livenessProbe={}),
        {"spec": {"volumes": [{"name": "shm", "emptyDir": {"sizeLimit": "1024Mi"}}]}},
        {"spec": {"nodeName": None, "nodeSelector": {}, "hostNetwork": False, "priority": 0}},
    ],
)
def test_what_is_there_needs_no_patch(desired: dict[str, Any]) -> None:
    assert merge_patch(POD, desired) is None
    assert merge_patch(freeze(POD), freeze(desired)) is None


@pytest.mark.parametrize(
    ("desired", "patch"),
    [
        ({"metadata": {"labels": {"ours": "2"}}}, {"metadata": {"labels": {"ours": "2"}}}),
        ({"metadata": {"labels": {"new": "x"}}}, {"metadata": {"labels": {"new": "x"}}}),
        ({"metadata": {"labels": {"ours": None}}}, {"metadata": {"labels": {"ours": None}}}),
        ({"metadata": {"finalizers": ["ours/y"]}}, {"metadata": {"finalizers": ["theirs/x", "ours/y"]}}),
        ({"spec": {"restartPolicy": "Never"}}, {"spec": {"restartPolicy": "Never"}}),
        ({"spec": {"hostNetwork": True}}, {"spec": {"hostNetwork": True}}),
        ({"data": {"a": {"b": 1, "c": None}}}, {"data": {"a": {"b": 1}}}),
        ({"spec": {"restartPolicy": None}}, {"spec": {"restartPolicy": None}}),
        ({"spec": {"tolerations": [{"key": "x"}]}}, {"spec": {"tolerations": [{"key": "x"}]}}),
    ],
)
def test_the_patch_has_only_what_differs(desired: dict[str, Any], patch: dict[str, Any]) -> None:
    assert merge_patch(POD, desired) == patch


def test_a_changed_item_of_a_shared_list_leaves_the_others_alone() -> None:
    patch = merge_patch(POD, in_container(image="ray:3", env=[{"name": "B", "value": "2"}]))
    assert patch is not None
    ray, sidecar = patch["spec"]["containers"]
    assert sidecar == {"name": "sidecar", "image": "mesh"}
    assert ray["image"] == "ray:3"
    assert ray["imagePullPolicy"] == "IfNotPresent", "what the server has filled in stays"
    assert [env["name"] for env in ray["env"]] == ["A", "INJECTED", "B"]


def test_what_was_ours_and_is_no_longer_wanted_goes() -> None:
    before = {"metadata": {"labels": {"ours": "1"}}, **in_container(env=[{"name": "A"}], image="ray:2")}
    patch = merge_patch(POD, {"metadata": {"labels": {}}, **in_container(env=[], image="ray:2")}, before)
    assert patch is not None
    assert patch["metadata"] == {"labels": {"ours": None}}
    assert [env["name"] for env in patch["spec"]["containers"][0]["env"]] == ["INJECTED"]
    assert merge_patch(POD, {"metadata": {}}, {"metadata": {"labels": {"ours": "1"}}}) == {
        "metadata": {"labels": None}
    }
    assert merge_patch(POD, {"metadata": {"finalizers": []}}, {"metadata": {"finalizers": ["theirs/x"]}}) == {
        "metadata": {"finalizers": []}
    }


def test_the_ports_of_a_service_are_ours_but_their_node_ports_are_not() -> None:
    service = {
        "spec": {
            "ports": [
                {"name": "gcs", "port": 6379, "protocol": "TCP", "targetPort": 6379, "nodePort": 30001},
                {"name": "old", "port": 1, "protocol": "TCP", "targetPort": 1, "nodePort": 30002},
            ]
        }
    }
    assert merge_patch(service, {"spec": {"ports": [{"port": 6379, "name": "gcs"}, {"port": 1}]}}) is None
    patch = merge_patch(service, {"spec": {"ports": [{"port": 6379, "name": "new", "targetPort": "x"}]}})
    assert patch == {
        "spec": {
            "ports": [{"name": "new", "port": 6379, "protocol": "TCP", "targetPort": "x", "nodePort": 30001}]
        }
    }


def test_a_list_without_keys_is_ours_in_its_order() -> None:
    role = {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]}
    assert merge_patch(role, copy.deepcopy(role)) is None
    wanted = {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "get"]}]}
    assert merge_patch(role, wanted) == wanted


def test_the_text_of_a_secret_is_compared_with_its_data() -> None:
    observed = {"data": {"password": "aHVudGVyMg==", "other": "eA=="}}
    assert merge_patch(observed, {"stringData": {"password": "hunter2"}}) is None
    assert merge_patch(observed, {"stringData": {"password": "x"}}) == {"data": {"password": "eA=="}}


def test_true_is_not_one() -> None:
    assert merge_patch({"spec": {"x": True}}, {"spec": {"x": 1}}) == {"spec": {"x": 1}}


@pytest.mark.parametrize(
    ("have", "want", "same"),
    [
        ("1", "1000m", True),
        ("1Gi", "1024Mi", True),
        ("1e3", "1k", True),
        ("500m", ".5", True),
        (2, "2", True),
        ("1G", "1Gi", False),
        ("x", "1", False),
        ("", "1", False),
    ],
)
def test_amounts_are_the_same_however_they_are_written(have: object, want: object, same: bool) -> None:
    def of(amount: object) -> dict[str, Any]:
        return {"spec": {"resources": {"limits": {"cpu": amount}}}}

    assert (merge_patch(of(have), of(want)) is None) is same


LEAF = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a", "b"])
NAMES = st.sampled_from(["a", "b", "env", "ports", "finalizers", "containers", "limits"])
JSON = st.recursive(
    LEAF,
    lambda below: (
        st.lists(st.sampled_from(["x", "y", "z"]), max_size=2, unique=True)
        | st.lists(
            st.fixed_dictionaries({"name": st.sampled_from("xyz")}, optional={"value": below}), max_size=2
        )
        | st.dictionaries(NAMES, below, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=4)


def without_nulls(value: Any) -> Any:
    """As the server stores it."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@given(OBJECTS, OBJECTS, OBJECTS)
def test_once_patched_nothing_is_left_to_patch(observed: Any, desired: Any, previous: Any) -> None:
    observed = without_nulls(observed)
    before = copy.deepcopy((observed, desired, previous))
    patch = merge_patch(observed, desired, previous)
    assert before == (observed, desired, previous), "the arguments are not changed"
    if patch is not None:
        assert merge_patch(overlay(observed, patch), desired, previous) is None


@given(OBJECTS, OBJECTS)
def test_fields_that_are_not_ours_are_never_in_the_patch(observed: Any, desired: Any) -> None:
    patch = merge_patch(without_nulls(observed), desired) or {}
    assert patch.keys() <= desired.keys()
