from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuberay_op.frozen import thaw
from kuberay_op.kube.trim import EVERYTHING, REMEMBERED, Trim, Trimmer, join

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

OBJECT: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "a",
        "labels": {"a.b/c": "d"},
        "managedFields": [{"manager": "x"}],
        "annotations": {LAST_APPLIED: "{}", "keep": "me"},
    },
    "spec": {
        "nodeName": "n",
        "containers": [{"name": "c", "image": "i"}, {"name": "d"}],
        "hostNetwork": True,
    },
    "status": {"phase": "Running", "podIP": "10.0.0.1"},
}

METADATA = {"name": "a", "labels": {"a.b/c": "d"}, "annotations": {"keep": "me"}}


def test_nobody_needs_managed_fields_and_the_last_applied_copy() -> None:
    assert Trimmer()(OBJECT) == {**OBJECT, "metadata": METADATA}


@pytest.mark.parametrize(
    ("trim", "spec", "status"),
    [
        (Trim.only("spec.nodeName"), {"nodeName": "n"}, None),
        (Trim.only("spec.containers.name"), {"containers": [{"name": "c"}, {"name": "d"}]}, None),
        (Trim.only("spec.nodeName", "spec"), OBJECT["spec"], None),
        (Trim.only("status.phase", "status.missing.below"), None, {"phase": "Running"}),
        (Trim.only(), None, None),
        (Trim.without("spec.containers"), {"nodeName": "n", "hostNetwork": True}, OBJECT["status"]),
        (
            Trim.without("spec.containers.image", "status"),
            {"nodeName": "n", "containers": [{"name": "c"}, {"name": "d"}], "hostNetwork": True},
            None,
        ),
    ],
)
def test_trims_keep_and_drop_paths(trim: Trim, spec: Any, status: Any) -> None:
    wanted = {"spec": spec, "status": status}
    assert Trimmer(trim)(OBJECT) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": METADATA,
        **{name: value for name, value in wanted.items() if value is not None},
    }


def test_keys_with_dots_are_given_as_tuples() -> None:
    trimmed = Trimmer(Trim.without(("metadata", "labels", "a.b/c")))(OBJECT)
    assert trimmed["metadata"]["labels"] == {}


@pytest.mark.parametrize(
    ("trims", "joined"),
    [
        ([Trim.only("spec.a"), Trim.only("status")], Trim.only("spec.a", "status")),
        ([Trim.only("spec.a"), EVERYTHING], EVERYTHING),
        ([Trim.without("spec.a", "status"), Trim.without("spec")], Trim.without("spec.a")),
        ([Trim.without("spec.a", "status"), Trim.only("spec.a.b")], Trim.without("status")),
        ([Trim.without("spec"), Trim.only("spec.a")], Trim.without()),
        ([Trim.without("metadata.labels"), Trim.only("spec.a")], Trim.without()),
        ([], EVERYTHING),
    ],
)
def test_joined_trims_drop_only_what_nobody_wants(trims: list[Trim], joined: Trim) -> None:
    assert join(trims) == joined
    assert join(reversed(trims)) == joined


PATHS = st.sampled_from(["spec", "spec.nodeName", "spec.containers.name", "status", "status.phase"])
TRIMS = st.builds(lambda p: Trim.only(*p), st.sets(PATHS)) | st.builds(
    lambda p: Trim.without(*p), st.sets(PATHS)
)


def includes(whole: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return all(name in whole and includes(whole[name], value) for name, value in part.items())
    if isinstance(part, list):
        return all(includes(a, b) for a, b in zip(whole, part, strict=True))
    return bool(whole == part)


@given(TRIMS, TRIMS)
def test_a_joined_trim_gives_each_what_it_wanted(one: Trim, other: Trim) -> None:
    both = Trimmer(one | other)(OBJECT)
    assert includes(both, Trimmer(one)(OBJECT))
    assert includes(both, Trimmer(other)(OBJECT))


def test_the_object_given_is_not_changed() -> None:
    before = copy.deepcopy(OBJECT)
    Trimmer(Trim.only("spec.nodeName"))(OBJECT)
    assert before == OBJECT


def test_equal_parts_are_stored_once() -> None:
    trimmer = Trimmer()
    one, other = trimmer(thaw(OBJECT)), trimmer(thaw(OBJECT))
    assert one is not other
    assert one["spec"]["containers"] is other["spec"]["containers"]
    assert one["metadata"]["labels"] is other["metadata"]["labels"]
    assert one["status"]["phase"] is other["status"]["phase"]


def test_parts_that_differ_only_in_what_is_cut_are_equal() -> None:
    trimmer = Trimmer(Trim.only("spec.containers.name"))
    one = trimmer({"spec": {"containers": [{"name": "c", "image": "1"}]}})
    other = trimmer({"spec": {"containers": [{"name": "c", "image": "2"}]}})
    assert one["spec"]["containers"] is other["spec"]["containers"]


def test_parts_of_the_same_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kuberay_op.kube.trim.hash", lambda value: 1, raising=False)
    trimmer = Trimmer()
    for obj in (OBJECT, {"spec": {"a": [1], "b": {"c": "d"}}}, OBJECT, {"spec": {"a": [2], "b": {"c": "e"}}}):
        assert orjson.dumps(trimmer(obj)["spec"]) == orjson.dumps(obj["spec"])


def test_what_a_trimmer_remembers_is_bounded() -> None:
    trimmer = Trimmer()
    for n in range(REMEMBERED * 3):
        trimmer({"metadata": {"name": f"n{n}", "labels": {"n": f"v{n}"}}})
    assert len(trimmer._young) + len(trimmer._old) <= 2 * REMEMBERED + 10
    assert len(trimmer._strings) <= REMEMBERED + 10


def test_everything_a_trimmer_gives_is_frozen_and_is_json() -> None:
    trimmed = Trimmer()(OBJECT)
    assert orjson.loads(orjson.dumps(trimmed)) == trimmed
    for part in (
        trimmed,
        trimmed["metadata"],
        trimmed["metadata"]["labels"],
        trimmed["spec"]["containers"][0],
    ):
        with pytest.raises(TypeError, match="change a copy"):
            part["x"] = 1
    with pytest.raises(TypeError, match="change a copy"):
        trimmed["spec"]["containers"].append({})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3),
    max_leaves=12,
)


@given(st.lists(st.dictionaries(st.sampled_from(["spec", "status", "data"]), JSON), max_size=6))
def test_sharing_changes_nothing_that_can_be_seen(objects: list[dict[str, Any]]) -> None:
    trimmer = Trimmer()
    for obj in objects:
        assert orjson.dumps(trimmer(obj)) == orjson.dumps(obj)
