"""The whole plan: head, groups, suspension, upgrades."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.plan.pods import PodPlan, PodSettings, plan_pods
from kuberay_op.plan.upgrade import stamps
from kuberay_op.testing import make, pods
from kuberay_op.testing.changes import changed


def plan(cluster: dict[str, Any], *existing: dict[str, Any], **settings: Any) -> PodPlan:
    chosen = PodSettings(**{"version": "test", **settings})
    return plan_pods(RayCluster(cluster), existing, chosen, Random(1))  # noqa: S311 (for names)


def added(result: PodPlan) -> list[tuple[str, int | None]]:
    return [(item.group, item.replica) for item in result.add]


def removed(result: PodPlan) -> list[str]:
    return [item.pod.name for item in result.remove]


def workers(cluster: dict[str, Any], count: int, **fields: Any) -> list[dict[str, Any]]:
    return [
        pods.worker(cluster, f"w{number}", replica=number, age=100 - number, **fields)
        for number in range(count)
    ]


# --- head


def test_a_new_cluster_gets_a_head_and_its_workers() -> None:
    cluster = make.raycluster("a", make.workers(2), make.workers(1, group="gpu"))
    result = plan(cluster)
    assert added(result) == [("headgroup", None), ("workers", 0), ("workers", 1), ("gpu", 0)]
    assert result.remove == ()
    assert [item.reason for item in result.add][:2] == ["the cluster has no head", "0 of 2 workers exist"]


def test_nothing_is_to_be_done_when_all_is_there() -> None:
    cluster = make.raycluster("a", make.workers(2))
    assert plan(cluster, pods.head(cluster), *workers(cluster, 2)) == PodPlan()


def test_a_head_that_ended_is_deleted_and_replaced_when_it_is_gone() -> None:
    cluster = make.raycluster("a", make.workers(1))
    dead = pods.head(cluster, phase="Failed")
    result = plan(cluster, dead)
    assert removed(result) == ["head"]
    assert added(result) == [("workers", 0)]
    going = pods.head(cluster, phase="Failed", terminating=True)
    assert added(plan(cluster, going)) == [("workers", 0)], "two heads would fight"
    assert removed(plan(cluster, going)) == [], "nothing is deleted twice"


def test_two_heads_are_a_problem_for_a_person() -> None:
    cluster = make.raycluster("a", make.workers(1))
    result = plan(cluster, pods.head(cluster, "h1", age=2), pods.head(cluster, "h2", age=1))
    assert result == PodPlan(problem="there are 2 head Pods (h1, h2); delete all but one")


def test_of_two_heads_one_that_ended_or_goes_is_no_problem() -> None:
    cluster = make.raycluster("a")
    assert removed(plan(cluster, pods.head(cluster, "h1"), pods.head(cluster, "h2", phase="Failed"))) == [
        "h2"
    ]
    assert plan(cluster, pods.head(cluster, "h1"), pods.head(cluster, "h2", terminating=True)) == PodPlan()


def test_a_head_lost_for_good_is_not_replaced_where_that_was_asked_for() -> None:
    note = make.annotations({"ray.io/disable-provisioned-head-restart": "true"})
    cluster = make.raycluster("a", make.workers(1), note)
    assert added(plan(cluster)) == [("headgroup", None), ("workers", 0)], "it has never been up"
    up = make.raycluster("a", make.workers(1), note, make.condition("RayClusterProvisioned"))
    assert plan(up) == PodPlan()
    exact = make.raycluster(
        "a",
        make.annotations({"ray.io/disable-provisioned-head-restart": "True"}),
        make.condition("RayClusterProvisioned"),
    )
    assert added(plan(exact)) == [("headgroup", None)], "only the exact word counts"


# --- worker groups


def test_a_group_grows_into_its_free_indexes() -> None:
    cluster = make.raycluster("a", make.workers(4))
    there = [pods.worker(cluster, "w1", replica=1), pods.worker(cluster, "w3", replica=3)]
    assert added(plan(cluster, pods.head(cluster), *there)) == [("workers", 0), ("workers", 2)]


def test_without_indexing_pods_are_not_numbered() -> None:
    cluster = make.raycluster("a", make.workers(2))
    assert added(plan(cluster, pods.head(cluster), indexing=False)) == [("workers", None)] * 2


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"replicas": 3, "minReplicas": 0, "maxReplicas": 2}, 2),
        ({"replicas": 1, "minReplicas": 2, "maxReplicas": 5}, 2),
        ({"replicas": None, "minReplicas": 2, "maxReplicas": 5}, 2),
        ({"replicas": None, "minReplicas": None, "maxReplicas": None}, 0),
        ({"replicas": 3, "maxReplicas": None}, 3),
        ({"replicas": 2, "numOfHosts": 0}, 2),
    ],
)
def test_how_many_workers_a_group_wants(fields: dict[str, Any], wanted: int) -> None:
    cluster = make.raycluster("a", make.workers(0, **fields))
    assert len(plan(cluster, pods.head(cluster)).add) == wanted


def test_a_group_shrinks_by_the_worst_and_newest() -> None:
    cluster = make.raycluster("a", make.workers(1))
    unready = pods.worker(cluster, "unready", age=1000, ready=False)
    result = plan(cluster, pods.head(cluster), unready, *workers(cluster, 3))
    assert removed(result) == ["unready", "w2", "w1"]
    assert {item.reason for item in result.remove} == {"4 workers are too many; the group wants 1"}


def test_the_autoscaler_alone_decides_who_goes() -> None:
    cluster = make.raycluster("a", make.workers(1), make.autoscaling())
    existing = [pods.head(cluster), *workers(cluster, 3)]
    assert plan(cluster, *existing) == PodPlan()
    assert removed(plan(cluster, *existing, random_delete=True)) == ["w2", "w1"]
    named = changed(
        cluster, {"spec.workerGroupSpecs.0.scaleStrategy": {"workersToDelete": ["w0", "w1", "x"]}}
    )
    result = plan(named, *existing)
    assert removed(result) == ["w0", "w1"]
    assert {item.reason for item in result.remove} == {"named in scaleStrategy.workersToDelete"}
    assert result.add == ()


def test_only_workers_of_the_group_can_be_named_for_deletion() -> None:
    strategy = {"workersToDelete": ["head", "other", "w0"]}
    cluster = make.raycluster("a", make.workers(1, scaleStrategy=strategy), make.workers(1, group="others"))
    existing = [
        pods.head(cluster),
        pods.worker(cluster, "w0", replica=0),
        pods.worker(cluster, "other", "others", replica=0),
    ]
    assert removed(plan(cluster, *existing)) == ["w0"]


def test_named_workers_are_replaced_when_they_are_gone() -> None:
    cluster = make.raycluster("a", make.workers(2, scaleStrategy={"workersToDelete": ["w0"]}))
    head = pods.head(cluster)
    assert added(plan(cluster, head, *workers(cluster, 2))) == []
    going = [pods.worker(cluster, "w0", replica=0, terminating=True), pods.worker(cluster, "w1", replica=1)]
    assert plan(cluster, head, *going) == PodPlan()
    assert added(plan(cluster, head, going[1])) == [("workers", 0)]


def test_a_worker_that_ended_is_deleted_and_holds_nobody_up() -> None:
    cluster = make.raycluster("a", make.workers(2), make.workers(1, group="others"))
    existing = [
        pods.head(cluster),
        pods.worker(cluster, "w0", replica=0, phase="Failed"),
        pods.worker(cluster, "w1", replica=1),
    ]
    result = plan(cluster, *existing)
    assert removed(result) == ["w0"]
    assert result.remove[0].reason == "phase Failed, restart policy Always"
    assert added(result) == [("others", 0)], "the other group goes on, this one waits until w0 is gone"


def test_a_worker_stuck_on_its_way_out_holds_its_own_place_only() -> None:
    cluster = make.raycluster("a", make.workers(3))
    head = pods.head(cluster)
    stuck = pods.worker(cluster, "stuck", replica=0, terminating=True)
    assert plan(cluster, head, stuck, *workers(cluster, 3)[1:]) == PodPlan()
    more = changed(cluster, {"spec.workerGroupSpecs.0.replicas": 5})
    assert added(plan(more, head, stuck, *workers(cluster, 3)[1:])) == [("workers", 3), ("workers", 4)]
    fewer = changed(cluster, {"spec.workerGroupSpecs.0.replicas": 1})
    assert removed(plan(fewer, head, stuck, *workers(cluster, 3)[1:])) == ["w2"]


def test_a_suspended_group_loses_its_pods_even_with_the_autoscaler() -> None:
    cluster = make.raycluster("a", make.workers(2, suspend=True), make.autoscaling())
    result = plan(cluster, pods.head(cluster), *workers(cluster, 2))
    assert removed(result) == ["w0", "w1"]
    assert added(result) == []


def test_pods_of_a_group_that_is_no_longer_there_are_kept() -> None:
    cluster = make.raycluster("a")
    assert plan(cluster, pods.head(cluster), *workers(cluster, 2)) == PodPlan()


def test_the_first_of_two_groups_of_one_name_counts() -> None:
    cluster = make.raycluster("a", make.workers(1), make.workers(3))
    assert added(plan(cluster, pods.head(cluster))) == [("workers", 0)]
    assert plan(cluster, pods.head(cluster), *workers(cluster, 1)) == PodPlan()


def test_a_group_called_like_the_heads_is_a_group_like_any_other() -> None:
    cluster = make.raycluster("a", make.workers(0, group="headgroup"))
    assert plan(cluster, pods.head(cluster)) == PodPlan()


# --- suspension


def test_pods_go_only_once_suspending_is_written() -> None:
    asked = make.raycluster("a", make.workers(1), make.suspended())
    existing = [pods.head(asked), *workers(asked, 1)]
    assert plan(asked, *existing) == PodPlan(), "first the status has to say so"
    written = make.raycluster("a", make.workers(1), make.suspended(), make.condition("RayClusterSuspending"))
    result = plan(written, *existing)
    assert removed(result) == ["w0", "head"]
    assert result.all_go
    regretted = changed(written, {"spec.suspend": False})
    assert removed(plan(regretted, *existing)) == ["w0", "head"], "once begun it is finished"
    assert plan(written, pods.head(asked, terminating=True)) == PodPlan(all_go=True)


@pytest.mark.parametrize("suspend", [True, False, None])
def test_a_suspended_cluster_stays_empty_until_the_status_says_otherwise(suspend: bool | None) -> None:
    cluster = make.raycluster("a", make.condition("RayClusterSuspended"), make.spec(suspend=suspend))
    assert plan(cluster) == PodPlan()


def test_without_conditions_the_wish_alone_counts() -> None:
    cluster = make.raycluster("a", make.suspended())
    assert removed(plan(cluster, pods.head(cluster), conditions=False)) == ["head"]
    resumed = make.raycluster("a", make.condition("RayClusterSuspended"))
    assert added(plan(resumed, conditions=False)) == [("headgroup", None)]


# --- upgrades


def recreating(*parts: make.Part) -> dict[str, Any]:
    return make.raycluster("a", make.workers(1), make.spec(upgradeStrategy={"type": "Recreate"}), *parts)


def test_recreate_replaces_everything_once_the_spec_differs() -> None:
    before = recreating()
    marks = stamps(RayCluster(before), "test")
    existing = [pods.head(before, notes=marks), *workers(before, 1)]
    assert plan(before, *existing) == PodPlan()
    after = recreating(make.spec(rayVersion="2.53.0"))
    result = plan(after, *existing)
    assert removed(result) == ["w0", "head"]
    assert result.all_go
    assert added(result) == []
    going = [pods.head(before, notes=marks, terminating=True)]
    assert plan(after, *going) == PodPlan(all_go=True), "new Pods wait until the old head is gone"
    assert added(plan(after)) == [("headgroup", None), ("workers", 0)]


def test_recreate_leaves_scaling_alone() -> None:
    before = recreating()
    scaled = changed(
        before, {"spec.workerGroupSpecs.0.replicas": 2, "spec.workerGroupSpecs.0.maxReplicas": 50}
    )
    existing = [pods.head(before, notes=stamps(RayCluster(before), "test")), *workers(before, 1)]
    assert added(plan(scaled, *existing)) == [("workers", 1)]


def test_a_hash_of_another_version_is_written_anew() -> None:
    before = recreating()
    head = pods.head(before, notes=stamps(RayCluster(before), "v1.6.2"))
    after = recreating(make.spec(rayVersion="2.53.0"))
    result = plan(after, head, *workers(before, 1))
    assert result.stamp is not None
    assert result.stamp.name == "head"
    assert result.remove == ()


@pytest.mark.parametrize("notes", [{}, {"ray.io/kuberay-version": "test"}])
def test_a_head_without_a_hash_is_left_alone(notes: dict[str, str]) -> None:
    cluster = recreating()
    assert plan(cluster, pods.head(cluster, notes=notes), *workers(cluster, 1)) == PodPlan()


@pytest.mark.parametrize("strategy", [None, {}, {"type": "None"}])
def test_without_a_strategy_running_pods_are_left_alone(strategy: Any) -> None:
    before = make.raycluster("a", make.workers(1))
    head = pods.head(before, notes=stamps(RayCluster(before), "test"))
    after = changed(before, {"spec.rayVersion": "2.53.0", "spec.upgradeStrategy": strategy or {}})
    assert plan(after, head, *workers(before, 1)) == PodPlan()


def test_suspension_comes_before_an_upgrade() -> None:
    before = recreating()
    head = pods.head(before, notes=stamps(RayCluster(before), "test"))
    after = recreating(
        make.spec(rayVersion="2.53.0"), make.suspended(), make.condition("RayClusterSuspending")
    )
    assert {item.reason for item in plan(after, head).remove} == {"the cluster is being suspended"}
