"""Fields of plugins' objects: what a plugin no longer wants goes, what is others' stays."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.plan.actions import Desired, Update
from kuberay_op.plan.diff import diff
from kuberay_op.plan.fields import fields_of, with_fields

OWNER = {"kind": "RayCluster", "name": "a", "uid": "u"}


def note(**data: str) -> dict[str, Any]:
    metadata = {
        "name": "n",
        "namespace": "x",
        "ownerReferences": [OWNER],
        "labels": {"kuberay-op/plugin": "p"},
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def test_names_are_remembered_and_values_are_not() -> None:
    made = with_fields(note(password="hunter2"))
    text = made["metadata"]["annotations"]["kuberay-op/fields"]
    assert text == '{"data":{"password":0},"metadata":{"labels":{"kuberay-op/plugin":0}}}'
    assert fields_of(made) == {"data": {"password": 0}, "metadata": {"labels": {"kuberay-op/plugin": 0}}}
    assert "annotations" not in note()["metadata"]


def test_the_texts_of_a_secret_are_where_the_server_keeps_them() -> None:
    secret = {**note(), "kind": "Secret", "stringData": {"token": "t"}}
    assert fields_of(with_fields(secret))["data"] == {"token": 0}


def test_what_is_no_longer_wanted_goes_and_what_is_others_stays() -> None:
    stored = with_fields(note(a="1", b="2"))
    stored = {**stored, "data": {**stored["data"], "theirs": "3"}}
    (update,) = diff([Desired(with_fields(note(a="1")), "because")], [stored])
    assert isinstance(update, Update)
    assert update.patch["data"] == {"b": None}
    assert list(update.patch["metadata"]) == ["annotations"]
    assert diff([Desired(with_fields(note(a="1", b="2")), "because")], [stored]) == []


def test_a_map_that_is_no_longer_wanted_goes_key_by_key() -> None:
    stored = with_fields(note(a="1"))
    stored = {**stored, "data": {"a": "1", "theirs": "3"}}
    bare = {key: value for key, value in note().items() if key != "data"}
    (update,) = diff([Desired(with_fields(bare), "because")], [stored])
    assert isinstance(update, Update)
    assert update.patch["data"] == {"a": None}
    assert "data" not in bare


@pytest.mark.parametrize(
    "text", ["", "not JSON", "[1, 2]", "3", '{"data": [1]}', "null", '{"stringData": {"a": 1}}']
)
def test_an_annotation_that_makes_no_sense_takes_nothing_away(text: str) -> None:
    stored = with_fields(note(a="1"))
    stored["metadata"]["annotations"]["kuberay-op/fields"] = text
    for action in diff([Desired(with_fields(note(a="1")), "because")], [stored]):
        assert isinstance(action, Update)
        assert set(action.patch) == {"metadata"}
