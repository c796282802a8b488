"""The status is written when it says something new, and never otherwise."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kuberay_op.controllers.act import Actor
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.kube.cache import Store
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.resource import Key
from kuberay_op.runtime.expectations import Expectations
from kuberay_op.testing import make
from kuberay_op.testing.clock import FakeClock

KEY = Key("default", "a")
READY = {"type": "Ready", "status": "True", "reason": "AllPodsReady", "message": ""}
FAILED = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreateHeadPod", "message": "x"}


class FakeClient:
    """Takes patches of the status, and gives back an object of the next version."""

    def __init__(self, error: Exception | None = None) -> None:
        self.patches: list[dict[str, Any]] = []
        self.error = error

    async def patch(self, resource: Any, name: str, namespace: str, body: Any, **more: Any) -> dict[str, Any]:
        assert more["subresource"] == "status"
        if self.error is not None:
            raise self.error
        self.patches.append(body["status"])
        return make.raycluster("a", make.stored(resource_version="2"))


def actor(client: FakeClient) -> tuple[Actor, Expectations]:
    expectations = Expectations(clock=FakeClock())
    made = Actor(
        cast(Client, client),
        owner=RAY_CLUSTERS,
        resources={},
        stores={RAY_CLUSTERS: Store(RAY_CLUSTERS)},
        expectations=expectations,
        recorder=cast(Any, None),
    )
    return made, expectations


async def published(before: dict[str, Any], status: dict[str, Any]) -> list[dict[str, Any]]:
    client = FakeClient()
    acting, expectations = actor(client)
    owner = make.raycluster("a", make.stored(), make.status(**before))
    written = await acting.publish(KEY, owner, status)
    assert written == bool(client.patches) == bool(expectations.unmet(KEY))
    return client.patches


async def test_only_what_changed_is_written() -> None:
    before = {"state": "ready", "readyWorkerReplicas": 1, "head": {"podName": "x"}, "conditions": [READY]}
    after = {"state": "ready", "readyWorkerReplicas": 2, "head": {"podName": None}, "conditions": [READY]}
    assert await published(before, after) == [{"readyWorkerReplicas": 2, "head": {"podName": None}}]


async def test_times_alone_are_not_news() -> None:
    times = {"lastUpdateTime": "later", "stateTransitionTimes": {"ready": "later"}}
    assert await published({"state": "ready"}, {"state": "ready", **times}) == []
    assert await published({"state": ""}, {"state": "ready", **times}) == [{"state": "ready", **times}]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([READY, FAILED], [READY]),
        ([READY], [READY, FAILED]),
        ([READY], [{**READY, "status": "False"}]),
        ([READY], [{**READY, "message": "other"}]),
        ([], [READY]),
    ],
)
async def test_conditions_are_written_as_a_whole(before: list[Any], after: list[Any]) -> None:
    assert await published({"conditions": before}, {"conditions": after}) == [{"conditions": after}]


async def test_the_same_conditions_are_not_written() -> None:
    assert await published({"conditions": [READY, FAILED]}, {"conditions": [READY, FAILED]}) == []
    assert await published({"conditions": [READY]}, {}) == []


async def test_an_object_that_is_gone_needs_no_status() -> None:
    acting, expectations = actor(FakeClient(NotFound("gone")))
    assert not await acting.publish(KEY, make.raycluster("a", make.stored()), {"state": "ready"})
    assert expectations.unmet(KEY) == []
