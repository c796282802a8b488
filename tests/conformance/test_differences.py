"""The comparison itself: it finds what differs, and an entry of the list hides no more than it says."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.conformance.differences import ABSENT, Allowed, compare, key_of, stable, unexplained


def pod(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}


def found(theirs: Any, ours: Any) -> list[tuple[str, Any, Any]]:
    sides = ({"Pod a": {"spec": value}} for value in (theirs, ours))
    return [(d.path, d.theirs, d.ours) for d in compare("m", *sides)]


@pytest.mark.parametrize(
    ("theirs", "ours", "wanted"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [("spec.a", 1, 2)]),
        ({"a": 1}, {"a": True}, [("spec.a", 1, True)]),
        ({"a": 1}, {}, [("spec.a", 1, ABSENT)]),
        ([1, 2], [1], [("spec[1]", 2, ABSENT)]),
        (
            [{"name": "a"}, {"name": "b"}],
            [{"name": "b"}, {"name": "a"}],
            [("spec (order)", ["a", "b"], ["b", "a"])],
        ),
        (
            [{"name": "a"}],
            [{"name": "a"}, {"name": "a", "x": 1}],
            [("spec[a#2]", ABSENT, {"name": "a", "x": 1})],
        ),
        ([{"name": "a", "v": 1}], [{"name": "a", "v": 2}], [("spec[a].v", 1, 2)]),
    ],
)
def test_differences_are_found(theirs: Any, ours: Any, wanted: list[tuple[str, Any, Any]]) -> None:
    assert found(theirs, ours) == wanted


def test_objects_that_only_one_side_has() -> None:
    assert [(d.obj, d.theirs, d.ours) for d in compare("m", {"A": {}}, {"B": {}})] == [
        ("A", "<exists>", ABSENT),
        ("B", ABSENT, "<exists>"),
    ]


def test_chance_is_taken_out() -> None:
    first = pod(name="c-w-worker-abcde", generateName="c-w-worker-", namespace="ns-1", uid="u", labels={})
    first["metadata"]["labels"] = {"ray.io/worker-group-replica-name": "w-x7x7x", "ray.io/group": "w"}
    first["spec"] = {"host": "h.ns-1.svc", "id": "uid-1", "volumes": [{"name": "kube-api-access-ab3de"}]}
    second = pod(name="c-w-worker-fghij", generateName="c-w-worker-", namespace="ns-2", uid="v", labels={})
    second["metadata"]["labels"] = {"ray.io/worker-group-replica-name": "w-y8y8y", "ray.io/group": "w"}
    second["spec"] = {"host": "h.ns-2.svc", "id": "uid-2", "volumes": [{"name": "kube-api-access-xyz12"}]}
    assert stable(first, namespace="ns-1", uid="uid-1") == stable(second, namespace="ns-2", uid="uid-2")
    assert key_of(first) == key_of(second)


def test_a_secret_is_compared_by_its_shape() -> None:
    def secret(text: bytes) -> dict[str, Any]:
        data = {"auth_token": base64.b64encode(base64.b64encode(text)).decode()}
        return {"kind": "Secret", "metadata": {"name": "s"}, "data": data}

    shapes = [
        stable(secret(text), namespace="none", uid="none")["data"] for text in (b"a" * 32, b"b" * 32, b"c")
    ]
    assert shapes[0] == shapes[1] == {"auth_token": "44 characters, 32 bytes"}
    assert shapes[2] != shapes[0]


def entry(**fields: Any) -> Allowed:
    return Allowed(**{"obj": "Pod *", "path": "spec.a", "section": "§1", "reason": "because", **fields})


@pytest.mark.parametrize(
    ("theirs", "ours", "entries", "explained", "used"),
    [
        ("x", "y", [entry()], True, [1]),
        ("x", "y", [entry(path="spec.b")], False, [0]),
        ("x", "y", [entry(obj="Service *")], False, [0]),
        ("x", "y", [entry(manifests="other*")], False, [0]),
        ("x", "y", [entry(theirs="x", ours="y")], True, [1]),
        ("x", "y", [entry(theirs="x", ours="z")], False, [0]),
        ("x", "y", [entry(ours="y")], True, [1]),
        ("x", "y", [entry(ours="z")], False, [0]),
        ("ulimit 1; ray", "ulimit 2; ray", [entry(theirs="ulimit 1", ours="ulimit 2")], True, [1]),
        ("ulimit 1; ray", "ulimit 2; RAY", [entry(theirs="ulimit 1", ours="ulimit 2")], False, [0]),
        ("a b", "A B", [entry(theirs="a", ours="A"), entry(theirs="b", ours="B")], True, [1, 1]),
        ("a b", "A B", [entry(theirs="a", ours="A")], False, [0]),
        ("x", "y", [entry(theirs="x", ours="y"), entry()], True, [1, 0]),
    ],
)
def test_what_an_entry_explains(
    theirs: str, ours: str, entries: list[Allowed], explained: bool, used: list[int]
) -> None:
    differences = [*compare("m", {"Pod a": {"spec": {"a": theirs}}}, {"Pod a": {"spec": {"a": ours}}})]
    assert (unexplained(differences, entries) == []) is explained
    assert [each.used for each in entries] == used


def test_stars_in_paths() -> None:
    [difference] = compare(
        "m",
        {"Pod a": {"spec": {"c": [{"name": "x", "v": 1}]}}},
        {"Pod a": {"spec": {"c": [{"name": "x", "v": 2}]}}},
    )
    assert difference.path == "spec.c[x].v"
    assert entry(path="spec.c[*].v").about(difference)
    assert not entry(path="spec.c[y].v").about(difference)
