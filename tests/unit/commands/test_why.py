"""What ``kuberay-op why`` makes of what it reads, without a server."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from click.testing import CliRunner

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.cli import cli
from kuberay_op.commands.why.answer import Answer
from kuberay_op.commands.why.look import Look
from kuberay_op.commands.why.operator import find_operator, missing_rights
from kuberay_op.commands.why.raycluster import examine, reported, seen
from kuberay_op.controllers.raycluster.why import Obstacle
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.errors import OperatorError
from kuberay_op.kube.errors import Forbidden, NotFound
from kuberay_op.testing import make

Json = dict[str, Any]
QUOTA = "a worker Pod of group workers cannot be made: exceeded quota: q, requested: pods=1"
NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def cluster(*parts: make.Part) -> RayCluster:
    return RayCluster(make.raycluster("a", make.stored(generation=2), *parts))


class Server:
    """Answers from lists; what is not in them is forbidden."""

    def __init__(self, **lists: Any) -> None:
        self.lists = lists

    async def list(self, resource: Any, namespace: str | None = None, **_: Any) -> Any:
        if resource.plural not in self.lists:
            raise Forbidden("no")
        return type("Listed", (), {"items": self.lists[resource.plural]})

    async def get(self, resource: Any, name: str, namespace: str | None = None) -> Json:
        if resource.plural not in self.lists:
            raise Forbidden("no")
        for obj in self.lists[resource.plural]:
            if obj["metadata"]["name"] == name:
                found: Json = obj
                return found
        text = self.lists.get("says", f'{resource.plural} "{name}" not found')
        raise NotFound(text)

    async def request(self, *_: Any, **__: Any) -> bytes:
        if "allowed" not in self.lists:
            raise Forbidden("no")
        return json.dumps({"status": {"allowed": self.lists["allowed"]}}).encode()


def look(**lists: Any) -> Look:
    server: Any = Server(**lists)
    return Look(server, "ns", now=lambda: NOW)


def lease(renewed: str = "2026-01-01T11:59:55.000000Z", holder: str = "op-0_1") -> Json:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}
    return {"metadata": {"name": "ray-operator-leader", "namespace": "sys"}, "spec": spec}


# --- what the operator has written


def test_refusals_are_read_from_the_condition() -> None:
    said = cluster(
        make.condition("Ready", holds=False, reason="QuotaExceeded", message=f"{QUOTA} (and 2 more)")
    )
    look_at = "kubectl describe resourcequota q -n default"
    assert reported(said) == [Obstacle("QuotaExceeded", QUOTA, look_at)]


def test_what_pods_show_is_not_read_from_the_condition() -> None:
    assert reported(cluster(make.condition("Ready", holds=False, reason="PodStarting", message="x"))) == []
    assert reported(cluster()) == []


def test_objections_of_plugins_come_first() -> None:
    found = reported(
        cluster(
            make.condition("Ready", holds=False, reason="QuotaExceeded", message=QUOTA),
            make.condition("PluginsAgree", holds=False, reason="PluginRefuses", message="plugin x: no"),
        )
    )
    assert [each.reason for each in found] == ["PluginRefuses", "QuotaExceeded"]


@pytest.mark.parametrize(
    ("parts", "answer"),
    [
        ([], False),
        ([make.status(observedGeneration=1)], False),
        ([make.status(observedGeneration=2)], True),
        ([make.condition("Ready", holds=False, reason="Invalid", message="a gate is off")], True),
        ([make.condition("Ready", holds=False, reason="PodStarting")], False),
    ],
)
def test_whether_an_operator_has_looked(parts: list[make.Part], answer: bool) -> None:
    assert seen(cluster(*parts)) is answer


def test_an_invalid_cluster_has_been_seen_if_the_mistake_is_the_same() -> None:
    wrong = make.head(rayStartParams={"num-cpus": "1"}, resources={"CPU": "1"})
    old = make.condition("Ready", holds=False, reason="Invalid", message="another mistake")
    assert not seen(cluster(wrong, old))
    text = reported(cluster(wrong, old))[0].text
    assert text.startswith("The RayCluster spec is invalid: spec.headGroupSpec.resources"), "as it is now"
    assert seen(cluster(wrong, make.condition("Ready", holds=False, reason="Invalid", message=text)))


# --- the operator


async def test_the_lease_tells_who_is_at_work() -> None:
    held = await find_operator(look(leases=[lease("2026-01-01T00:00:00Z", "old_2"), lease()]))
    assert (held.alive, held.holder, held.pod, held.namespace) == (True, "op-0_1", "op-0", "sys")
    assert held.gone() is None
    late = await find_operator(look(leases=[lease("2026-01-01T11:58:00Z")]))
    assert not late.alive
    free = await find_operator(look(leases=[lease(holder="")]))
    assert (free.alive, free.gone()) == (False, None)


async def test_rights_are_asked_for_as_far_as_possible() -> None:
    pod = {"metadata": {"name": "op-0"}, "spec": {"serviceAccountName": "op"}}
    for lists, count in (
        ({"pods": [pod], "allowed": False}, 1),
        ({"pods": [pod], "allowed": True}, 0),
        ({"pods": [pod]}, 0),  # the caller may not ask
        ({"pods": []}, 0),  # the operator is no Pod here
        ({}, 0),  # the caller may not see Pods
    ):
        here = look(leases=[lease()], **lists)
        operator = await find_operator(here)
        assert len(await missing_rights(here, operator, RAY_CLUSTERS)) == count
        assert bool(here.unseen) == (lists in ({"pods": [pod]}, {}))


# --- who asks for what


async def test_a_cluster_that_is_not_there() -> None:
    with pytest.raises(OperatorError, match="there is no RayCluster a in namespace ns; see: kubectl get"):
        await examine(look(rayclusters=[]), "a")
    left = {"metadata": {"name": "p", "deletionTimestamp": "now", "finalizers": ["x/y"]}}
    with pytest.raises(
        OperatorError, match="1 Pod with its label are still there: p should be gone since now"
    ):
        await examine(look(rayclusters=[], pods=[left]), "a")
    with pytest.raises(OperatorError, match=r"install them: kuberay-op crds \| kubectl apply"):
        await examine(look(rayclusters=[], says="the server could not find the requested resource"), "a")
    with pytest.raises(OperatorError, match="you may not get rayclusters in namespace ns"):
        await examine(look(), "a")


async def test_without_pods_the_status_is_all_there_is() -> None:
    ready = make.condition("Ready", holds=False, reason="PodStarting", message="head Pod x is starting")
    owner = cluster(make.status(observedGeneration=2), ready).raw
    answer = await examine(look(rayclusters=[owner], leases=[lease()]), "a")
    assert [each.text for each in answer.obstacles] == ["head Pod x is starting"]
    assert answer.unseen == ["pods in namespace ns: you may not list them"]
    owner = cluster(make.status(observedGeneration=2)).raw
    answer = await examine(look(rayclusters=[owner], leases=[lease()]), "a")
    assert answer.obstacles[0].text == "its status does not say why"


# --- printing

FIRST = Obstacle("QuotaExceeded", "there is no room", "kubectl describe resourcequota q")
SECOND = Obstacle("WorkersMissing", "group w has 0 of 1 workers", serious=False)


def test_the_first_line_names_the_cause() -> None:
    assert Answer("RayCluster", "ns", "a", [FIRST, SECOND], unseen=["events"]).as_text().splitlines() == [
        "RayCluster ns/a is not ready: there is no room",
        "    kubectl describe resourcequota q",
        "also:",
        "- group w has 0 of 1 workers (this may need time only)",
        "could not look at:",
        "- events",
    ]
    assert Answer("RayCluster", "ns", "a", notes=[FIRST]).as_text().splitlines()[:2] == [
        "RayCluster ns/a is ready",
        "but there is no room",
    ]


def test_json_has_it_all() -> None:
    found = json.loads(Answer("RayCluster", "ns", "a", [FIRST]).as_json())
    assert found["ready"] is False
    assert found["obstacles"][0] == {
        "reason": "QuotaExceeded",
        "text": "there is no room",
        "look": "kubectl describe resourcequota q",
        "serious": True,
    }


def test_wrong_use_is_told_apart() -> None:
    assert CliRunner().invoke(cli, ["why", "pod", "x"]).exit_code == 2
    assert CliRunner().invoke(cli, ["why", "raycluster"]).exit_code == 2
