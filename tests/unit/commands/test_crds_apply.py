"""When a CRD on the server is as it should be, and whose version counts."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kuberay_op.api.crds import crd
from kuberay_op.commands.crds_apply import holds, newer


@pytest.mark.parametrize(
    ("version", "than", "later"),
    [
        ("0.2.0", "0.1.0", True),
        ("0.10.0", "0.9.9", True),
        ("1.0", "0.9.9", True),
        ("0.1.0", "0.1.0", False),
        ("0.1.0", "0.2.0", False),
        ("", "0.1.0", False),
        ("rubbish", "0.1.0", False),
    ],
)
def test_newer(version: str, than: str, later: bool) -> None:
    assert newer(version, than) is later


@pytest.mark.parametrize(
    ("found", "wanted", "there"),
    [
        ({"a": 1, "default": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 2]}}, True),
        ({"a": [1, 2, 3]}, {"a": [1, 2]}, False),
        ({"a": [{"x": 1, "y": 2}]}, {"a": [{"x": 1}]}, True),
        ({"a": None}, {"a": {}}, False),
    ],
)
def test_holds(found: Any, wanted: Any, there: bool) -> None:
    assert holds(found, wanted) is there


def test_a_crd_without_one_field_is_not_the_same() -> None:
    wanted = crd("RayCluster")
    found = copy.deepcopy(wanted)
    assert holds(found["spec"], wanted["spec"])
    del found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][
        "suspend"
    ]
    assert not holds(found["spec"], wanted["spec"])
