"""Objects that the server does not let be changed: deleted where they differ, and made again when gone."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.plan.actions import Create, Delete, Desired, Update
from kuberay_op.plan.diff import diff

HELD = "example.com/held"


def obj(size: int, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "x/v1",
        "kind": "Gang",
        "metadata": {"name": "a", **metadata},
        "spec": {"size": size},
    }


def wanted(size: int, **metadata: Any) -> list[Desired]:
    return [Desired(obj(size, **metadata), "a test", replace=True, releases=(HELD,))]


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ([], [Create]),
        ([obj(3)], []),
        ([obj(2)], [Delete]),
        ([obj(2, deletionTimestamp="now")], []),
        ([obj(2, deletionTimestamp="now", finalizers=["somebody/else"])], []),
        ([obj(2, deletionTimestamp="now", finalizers=[HELD])], [Delete]),
    ],
    ids=["missing", "equal", "different", "going", "held by others", "held"],
)
def test_what_is_done(there: list[dict[str, Any]], expected: list[type]) -> None:
    found = diff(wanted(3), there)
    assert [type(action) for action in found] == expected
    for action in found:
        if isinstance(action, Delete):
            assert (action.releases, action.reason) == ((HELD,), "it must be made anew")


def test_labels_can_be_changed() -> None:
    (action,) = diff(wanted(3, labels={"a": "b"}), [obj(3)])
    assert isinstance(action, Update)
