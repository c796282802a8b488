"""The status: every field and condition of the contract, and that nothing breaks it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.controllers.raycluster.failures import failures_of
from kuberay_op.controllers.raycluster.status import Standing, invalid_status, status_of
from kuberay_op.controllers.raycluster.why import Obstacle
from kuberay_op.hooks.gangs import cluster_gang
from kuberay_op.kube.errors import Forbidden
from kuberay_op.kube.merge import merge_patch, overlay
from kuberay_op.plan.actions import Create, Delete, Outcome
from kuberay_op.testing import make, pods
from kuberay_op.testing.mutate import mutants

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
THEN = "2026-02-03T04:05:06Z"
EARLIER = "2026-01-01T00:00:00Z"  # what make.condition gives

Json = dict[str, Any]


def status(cluster: Json, *existing: Json, services: Sequence[Json] = (), **more: Any) -> Json:
    standing = Standing(RayCluster(cluster), existing, services, **more)
    return status_of(standing, NOW)


def conditions(found: Json) -> dict[str, tuple[str, str, str]]:
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in found["conditions"]}


def cluster(*parts: make.Part) -> Json:
    return make.raycluster("a", make.stored(generation=3), make.workers(2), *parts)


def up(owner: Json, count: int = 2) -> list[Json]:
    return [pods.head(owner), *(pods.worker(owner, f"w{number}") for number in range(count))]


def service(**spec: Any) -> Json:
    return {
        "kind": "Service",
        "metadata": {"name": "svc", "labels": {"ray.io/cluster": "a", "ray.io/node-type": "head"}},
        "spec": spec,
    }


# --- fields


def test_counts_are_of_worker_pods_and_absent_when_nothing_is_counted() -> None:
    owner = make.raycluster(
        "a",
        make.stored(),
        make.workers(3, minReplicas=1, maxReplicas=5, numOfHosts=2),
        make.workers(4, group="asleep", suspend=True),
    )
    found = status(
        owner,
        pods.head(owner),
        pods.worker(owner, "ready"),
        pods.worker(owner, "unready", ready=False),
        pods.worker(owner, "pending", phase="Pending"),
    )
    assert found["readyWorkerReplicas"] == 1
    assert found["availableWorkerReplicas"] == 2
    assert found["desiredWorkerReplicas"] == 6
    assert found["minWorkerReplicas"] == 2
    assert found["maxWorkerReplicas"] == 10
    none = status(make.raycluster("a", make.stored()))
    assert none["readyWorkerReplicas"] is None
    assert none["desiredWorkerReplicas"] is None


def test_resources_are_summed_over_head_and_workers() -> None:
    found = status(cluster())
    assert found["desiredCPU"] == "3"
    assert found["desiredMemory"] == "6Gi"
    assert (found["desiredGPU"], found["desiredTPU"]) == ("0", "0")


def test_the_head_and_its_service_are_found() -> None:
    owner = cluster()
    headless = service(clusterIP="None")
    found = status(owner, *up(owner), services=[headless])
    assert found["head"] == {
        "podName": "head",
        "podIP": "10.0.0.1",
        "serviceName": "svc",
        "serviceIP": "10.0.0.1",
    }
    own = status(owner, services=[service(clusterIP="10.9.9.9")])
    assert own["head"] == {"podName": None, "podIP": None, "serviceName": "svc", "serviceIP": "10.9.9.9"}
    lost = status(owner, services=[headless])
    assert lost["head"]["serviceIP"] is None
    assert status(owner)["head"] == dict.fromkeys(("podName", "podIP", "serviceName", "serviceIP"))


def test_of_two_heads_the_one_that_stays_is_shown() -> None:
    owner = cluster()
    going = pods.head(owner, "old", age=100, terminating=True)
    assert status(owner, going, pods.head(owner, "new"))["head"]["podName"] == "new"
    assert status(owner, going)["head"]["podName"] == "old"


def test_endpoints_follow_the_service() -> None:
    ports = [
        {"name": "client", "port": 1, "targetPort": 10001},
        {"name": "dashboard", "port": 2, "targetPort": "web", "nodePort": 0},
        {"name": "serve", "port": 3, "targetPort": 8000, "nodePort": 30000},
        {"port": 4, "targetPort": 4},
    ]
    owner = cluster(make.status(endpoints={"gone": "1", "client": "0"}))
    found = status(owner, services=[service(clusterIP="None", ports=ports)])
    assert found["endpoints"] == {"gone": None, "client": "10001", "dashboard": "web", "serve": "30000"}
    assert status(owner)["endpoints"] == {"gone": "1", "client": "0"}, "without a Service nothing is known"


def test_writing_it_twice_changes_nothing() -> None:
    owner = cluster(make.status(endpoints={"gone": "1"}, readyWorkerReplicas=5))
    existing, services = up(owner), [service(clusterIP="None", ports=[{"name": "x", "targetPort": 1}])]
    written = overlay(
        owner["status"], merge_patch(owner["status"], status(owner, *existing, services=services))
    )
    again = {**owner, "status": written}
    patch = merge_patch(written, status(again, *existing, services=services)) or {}
    assert set(patch) <= {"lastUpdateTime"}


# --- state


def test_it_is_ready_when_every_pod_runs_and_none_is_missing_or_too_much() -> None:
    owner = cluster()
    found = status(owner, *up(owner))
    assert found["state"] == "ready"
    assert found["stateTransitionTimes"] == {"ready": THEN}
    for existing in (up(owner, 1), up(owner, 3), [*up(owner, 1), pods.worker(owner, "w9", ready=False)], []):
        fewer = status(owner, *existing)
        assert fewer["state"] is None
        assert "stateTransitionTimes" not in fewer


def test_ready_is_not_left_because_of_failures() -> None:
    owner = cluster(make.status(state="ready", reason="x"))
    found = status(owner, *up(owner, 1))
    assert found["state"] == "ready"
    assert "stateTransitionTimes" not in found
    assert found["reason"] is None


def test_what_went_wrong_keeps_it_from_becoming_ready() -> None:
    owner = cluster()
    for trouble in ({"objections": [Obstacle("PluginWaits", "no")]}, {"problem": "two heads"}):
        assert status(owner, *up(owner), **trouble)["state"] is None


def test_suspended_needs_the_wish_and_no_pods() -> None:
    asked = cluster(make.suspended(), make.status(state="ready"))
    assert status(asked, *up(asked, 0))["state"] == "ready"
    found = status(asked)
    assert found["state"] == "suspended"
    assert found["stateTransitionTimes"] == {"suspended": THEN}


# --- conditions


def test_a_new_cluster_says_that_it_is_being_provisioned() -> None:
    owner = cluster()
    found = conditions(status(owner))
    assert found["HeadPodReady"] == ("False", "HeadPodNotFound", "Head Pod not found")
    assert found["RayClusterProvisioned"] == (
        "False",
        "RayClusterPodsProvisioning",
        "RayCluster Pods are being provisioned for first time",
    )
    assert found["RayClusterSuspended"] == ("False", "RayClusterSuspended", "")
    assert found["RayClusterSuspending"] == ("False", "RayClusterSuspending", "")
    assert "ReplicaFailure" not in found
    assert found["Ready"] == ("False", "HeadMissing", "there is no head Pod (and 1 more)")


def test_a_cluster_that_is_up_says_so() -> None:
    owner = cluster()
    found = conditions(status(owner, *up(owner)))
    assert found["HeadPodReady"] == ("True", "HeadPodRunningAndReady", "")
    assert found["RayClusterProvisioned"] == (
        "True",
        "AllPodRunningAndReadyFirstTime",
        "All Ray Pods are ready for the first time",
    )
    assert found["Ready"] == ("True", "AllPodsReady", "")


def test_provisioned_ignores_how_many_pods_there_should_be_and_stays() -> None:
    owner = cluster()
    assert conditions(status(owner, pods.head(owner)))["RayClusterProvisioned"][0] == "True"
    been = cluster(make.condition("RayClusterProvisioned", reason="AllPodRunningAndReadyFirstTime"))
    assert conditions(status(been))["RayClusterProvisioned"][0] == "True"


def test_times_change_with_the_status_only() -> None:
    owner = cluster(
        make.condition("RayClusterProvisioned", holds=False), make.condition("HeadPodReady", holds=True)
    )
    found = {each["type"]: each["lastTransitionTime"] for each in status(owner)["conditions"]}
    assert found["RayClusterProvisioned"] == EARLIER
    assert found["HeadPodReady"] == THEN
    assert found["Ready"] == THEN


def test_conditions_of_others_stay() -> None:
    owner = cluster(make.condition("example.com/Mine", message="hello"))
    assert conditions(status(owner))["example.com/Mine"] == ("True", "Test", "hello")


def test_the_head_says_why_it_is_not_ready() -> None:
    owner = cluster()
    waiting = pods.waiting("CrashLoopBackOff", "back-off 10s", container="ray-head")
    unready = [
        {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "unready: [x]"}
    ]
    head = pods.head(owner, status={**waiting, "conditions": unready})
    assert conditions(status(owner, head))["HeadPodReady"] == (
        "False",
        "CrashLoopBackOff",
        "unready: [x]; ray-head: back-off 10s",
    )
    mute = pods.head(owner, status={"conditions": []})
    assert conditions(status(owner, mute))["HeadPodReady"] == ("False", "Unknown", "")


@pytest.mark.parametrize("reason", ["", "9 lives", "a-b", "ends_with:"])
def test_a_reason_that_the_server_would_refuse_becomes_unknown(reason: str) -> None:
    owner = cluster()
    head = pods.head(owner, status={"conditions": [{"type": "Ready", "status": "False", "reason": reason}]})
    assert conditions(status(owner, head))["HeadPodReady"] == ("False", "Unknown", "")


def failed(action: Any) -> list[Any]:
    return failures_of(
        [Outcome(action, error=Forbidden("create pods ns/a-: 403 Forbidden: exceeded quota: q"))]
    )


def test_a_failure_is_marked_and_taken_back_when_all_went_well() -> None:
    owner = cluster()
    pod = {"kind": "Pod", "metadata": {"generateName": "a-", "labels": {"ray.io/node-type": "worker"}}}
    found = conditions(status(owner, failures=failed(Create(pod, "x", lane="l"))))
    text = "FailedCreateWorkerPod\nexceeded quota: q"
    assert found["ReplicaFailure"] == ("True", "FailedCreateWorkerPod", text)
    assert found["Ready"][1] == "QuotaExceeded"
    had = cluster(make.condition("ReplicaFailure", reason="FailedCreateWorkerPod"))
    assert "ReplicaFailure" not in conditions(status(had))
    other = failed(Create({"kind": "Service", "metadata": {"name": "s"}}, "x"))
    assert "ReplicaFailure" in conditions(status(had, failures=other)), "an unmarked failure leaves it alone"
    assert "ReplicaFailure" not in conditions(status(owner, failures=other))


def test_deleting_all_pods_has_a_mark_of_its_own() -> None:
    owner = cluster()
    worker = pods.worker(owner)
    assert failed(Delete(worker, "x", lane="deleted Pods"))[0].mark == "FailedDeleteWorkerPod"
    assert failed(Delete(pods.head(owner), "x", lane="deleted Pods"))[0].mark == "FailedDeleteHeadPod"
    assert failed(Delete(worker, "x", lane="all workers"))[0].mark == "FailedDeleteAllPods"


# --- suspending


def suspension(owner: Json, *existing: Json) -> tuple[str, ...]:
    found = conditions(status(owner, *existing))
    names = ("RayClusterSuspending", "RayClusterSuspended", "RayClusterProvisioned")
    return tuple(found[name][0] for name in names)


def test_suspending_step_by_step() -> None:
    been = make.condition("RayClusterProvisioned")
    asked = cluster(been, make.suspended())
    assert suspension(asked, *up(asked)) == ("True", "False", "True")
    going = cluster(been, make.suspended(), make.condition("RayClusterSuspending"))
    assert suspension(going, *up(going)) == ("True", "False", "True")
    assert suspension(going) == ("False", "True", "False")
    assert conditions(status(going))["RayClusterProvisioned"][2] == "RayCluster has been suspended"


@pytest.mark.parametrize(
    ("wish", "after"), [(True, "True"), (None, "True"), (False, "False")], ids=["true", "unset", "false"]
)
def test_only_an_explicit_false_resumes(wish: bool | None, after: str) -> None:
    asleep = cluster(make.condition("RayClusterSuspended"), make.spec(suspend=wish))
    assert conditions(status(asleep))["RayClusterSuspended"][0] == after


def test_a_suspended_cluster_says_nothing_of_provisioning() -> None:
    asleep = cluster(make.suspended(), make.condition("RayClusterSuspended"))
    assert "RayClusterProvisioned" not in conditions(status(asleep))


def test_without_the_gate_there_are_no_conditions() -> None:
    owner = cluster()
    found = status_of(Standing(RayCluster(owner), up(owner), ()), NOW, in_conditions=False)
    assert "conditions" not in found
    assert found["state"] == "ready"


# --- whatever the spec


def test_an_invalid_cluster_says_so_and_nothing_else() -> None:
    owner = cluster(make.condition("HeadPodReady"), make.status(state="ready"))
    found = invalid_status(RayCluster(owner), "The RayCluster spec is invalid: x", NOW)
    assert list(found) == ["conditions"]
    assert conditions(found)["Ready"] == ("False", "Invalid", "The RayCluster spec is invalid: x")
    assert conditions(found)["HeadPodReady"][0] == "True"


def test_a_broken_spec_breaks_nothing_here() -> None:
    owner = cluster(make.autoscaling("v2"), make.redis(), make.workers(2, group="b", numOfHosts=2))
    for broken in mutants([owner], count=300, seed=1):
        whole = {**owner, "spec": broken.get("spec")}
        status(whole, *up(owner))
        cluster_gang(RayCluster(whole))
