"""What the webhook refuses, what it warns of, and what always passes (contract 01 §3.7)."""

from __future__ import annotations

import time
from typing import Any

import orjson
import pytest

from kuberay_op.api.problems import Problem
from kuberay_op.features import Gates
from kuberay_op.hooks import Merge, hookimpl
from kuberay_op.hooks.isolation import Workshop
from kuberay_op.testing import make
from kuberay_op.testing.operator import make_hooks
from kuberay_op.webhook.admission import PATHS, Judge, NotAReview

Json = dict[str, Any]
MADE = {"RayCluster": make.raycluster, "RayJob": make.rayjob, "RayService": make.rayservice}
TWICE = (make.workers(1, "a"), make.workers(1, "a"))


def review(obj: Json | None, old: Json | None = None, operation: str = "CREATE") -> bytes:
    request = {"uid": "u-1", "operation": operation, "object": obj, "oldObject": old, "name": "c"}
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


async def judge(body: bytes, kind: str = "RayCluster", plugins: Json | None = None) -> Json:
    hooks = make_hooks(plugins or {}, workshop=Workshop(limit=0.2))
    answer: Json = orjson.loads(await Judge(hooks, Gates.default().enabled).review(kind, body))
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert answer["response"]["uid"] == "u-1"
    found: Json = answer["response"]
    return found


def fields(response: Json) -> list[str]:
    return [cause["field"] for cause in response["status"]["details"]["causes"]]


@pytest.mark.parametrize("view", PATHS.values(), ids=lambda view: str(view.KIND))
async def test_a_good_object_passes(view: Any) -> None:
    response = await judge(review(MADE[view.KIND]("c")), view.KIND)
    assert response["allowed"] is True
    assert "status" not in response


@pytest.mark.parametrize("view", PATHS.values(), ids=lambda view: str(view.KIND))
async def test_a_bad_name_is_refused_with_422(view: Any) -> None:
    response = await judge(review(MADE[view.KIND]("1c")), view.KIND)
    assert response["allowed"] is False
    assert (response["status"]["code"], response["status"]["reason"]) == (422, "Invalid")
    assert response["status"]["message"].startswith(f'{view.KIND}.ray.io "c" is invalid: metadata.name: ')
    assert fields(response) == ["metadata.name"]


async def test_worker_groups_have_names_of_their_own() -> None:
    thrice = await judge(review(make.raycluster("c", *TWICE, make.workers(1, "a"))))
    assert fields(thrice) == ["spec.workerGroupSpecs[1]"]  # the first doubled name only
    response = await judge(review(make.raycluster("c", *TWICE)))
    assert "worker group names must be unique" in response["status"]["message"]
    assert "warnings" not in response  # nothing is said twice


async def test_what_the_controller_would_refuse_is_refused_at_once() -> None:
    bad = make.raycluster("c", make.cluster(networkPolicy={}))
    response = await judge(review(bad))
    assert fields(response) == ["spec.networkPolicy"]
    assert "RayClusterNetworkPolicy, which is off" in response["status"]["message"]


async def test_the_spec_of_what_another_controller_manages_is_not_ours() -> None:
    bad = make.raycluster("c", make.cluster(networkPolicy={}, managedBy="kueue.x-k8s.io/multikueue"))
    assert (await judge(review(bad)))["allowed"] is True


async def test_the_status_is_nobody_s_mistake() -> None:
    both = [make.condition("RayClusterSuspending"), make.condition("RayClusterSuspended")]
    assert (await judge(review(make.raycluster("c", *both))))["allowed"] is True


async def test_warnings_are_passed_on() -> None:
    response = await judge(review(make.raycluster("c", make.workers(20, "a", maxReplicas=2))))
    assert response["allowed"] is True
    assert response["warnings"] == [
        "spec.workerGroupSpecs[0].replicas: is 20, outside of 0 to 2; 2 will be made"
    ]


@pytest.mark.parametrize(
    ("operation", "part"),
    [
        ("DELETE", make.labels()),
        ("CONNECT", make.labels()),
        ("UPDATE", make.deleted("2026-01-01T00:00:00Z", "ray.io/x")),
    ],
)
async def test_what_goes_is_never_held(operation: str, part: make.Part) -> None:
    bad = make.raycluster("c", *TWICE, part)
    assert (await judge(review(bad, bad, operation)))["allowed"] is True


async def test_without_an_object_there_is_nothing_to_refuse() -> None:
    assert (await judge(review(None, None, "DELETE")))["allowed"] is True


async def test_old_mistakes_lock_nobody_out_and_new_ones_are_refused() -> None:
    old = make.raycluster("c", *TWICE)
    response = await judge(review(make.raycluster("c", *TWICE, make.labels(x="y")), old, "UPDATE"))
    assert response["allowed"] is True
    assert "worker group names must be unique" in response["warnings"][0]
    worse = make.raycluster("c", *TWICE, make.cluster(networkPolicy={}))
    response = await judge(review(worse, old, "UPDATE"))
    assert fields(response) == ["spec.networkPolicy"]


async def test_many_mistakes_and_long_warnings_are_cut() -> None:
    groups = [make.workers(9, "g" * 300 + str(number), minReplicas=5, maxReplicas=1) for number in range(30)]
    response = await judge(review(make.raycluster("c", *groups)))
    assert len(response.get("warnings", ())) <= 20
    assert all(len(text) <= 256 for text in response.get("warnings", ()))
    assert len(fields(response)) == 20
    assert "(and " in response["status"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b'{"kind": "AdmissionReview", "request": []}',
        b'{"kind": "AdmissionReview", "request": {"uid": 1}}',
        review({"kind": "Pod", "metadata": {}}),
        review({"kind": "RayCluster", "metadata": None}),
        review({"kind": "RayCluster"}),
    ],
)
async def test_anything_else_is_no_review(body: bytes) -> None:
    with pytest.raises(NotAReview):
        await judge(body)


# --- plugins


class Strict:
    """Wants a team, and warns of a budget."""

    @hookimpl
    def kuberay_default(self, obj: Any) -> Any:
        return Merge({"spec": {"rayVersion": "9"}})

    @hookimpl
    def kuberay_validate(self, obj: Any) -> Any:
        assert obj["spec"]["rayVersion"] == "9"  # defaults come first
        if "team" not in obj["metadata"].get("labels", {}):
            yield Problem(("metadata", "labels"), "a team must be named")
        yield Problem(("spec",), "this is expensive", severity="warning")


async def test_plugins_have_a_say() -> None:
    response = await judge(review(make.raycluster("c")), plugins={"strict": Strict()})
    assert response["allowed"] is False
    assert "metadata.labels: a team must be named (plugin strict)" in response["status"]["message"]
    response = await judge(review(make.raycluster("c", make.labels(team="x"))), plugins={"strict": Strict()})
    assert response["allowed"] is True
    assert response["warnings"] == ["spec: this is expensive (plugin strict)"]


class Broken:
    @hookimpl
    def kuberay_validate(self, obj: Any) -> Any:
        raise RuntimeError("oops")


class Hanging:
    @hookimpl
    def kuberay_validate(self, obj: Any) -> Any:
        time.sleep(2)


@pytest.mark.parametrize(("plugin", "why"), [(Broken(), "oops"), (Hanging(), "no answer within 0.2 s")])
async def test_a_plugin_that_does_not_answer_stops_nobody(plugin: Any, why: str) -> None:
    response = await judge(review(make.raycluster("c")), plugins={"bad": plugin})
    assert response["allowed"] is True
    assert "plugin 'bad'" in response["warnings"][0]
    assert why in response["warnings"][0]
    refused = await judge(review(make.raycluster("1c")), plugins={"bad": plugin})
    assert refused["allowed"] is False  # our own rules hold all the same
