"""What stands between a cluster and being ready: the cause comes first, in words that do not move."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.controllers.raycluster.why import Obstacle, Situation, obstacles, summary
from kuberay_op.plan.podview import views
from kuberay_op.testing import make, pods

Json = dict[str, Any]
REFUSED = Obstacle("QuotaExceeded", "a worker Pod of group workers cannot be made: exceeded quota")


def why(owner: Json, *existing: Json, failures: tuple[Obstacle, ...] = ()) -> list[Obstacle]:
    return obstacles(Situation(RayCluster(owner), views(existing), failures))


def reasons(owner: Json, *existing: Json, failures: tuple[Obstacle, ...] = ()) -> list[str]:
    return [found.reason for found in why(owner, *existing, failures=failures)]


def cluster(*parts: make.Part) -> Json:
    return make.raycluster("a", make.stored(), make.workers(2), *parts)


def workers(owner: Json, count: int, **fields: Any) -> list[Json]:
    return [pods.worker(owner, f"w{number}", **fields) for number in range(count)]


def test_nothing_stands_in_the_way_of_a_cluster_that_is_up() -> None:
    owner = cluster()
    assert why(owner, pods.head(owner), *workers(owner, 2)) == []
    assert summary([]) == Obstacle("AllPodsReady", "", serious=False)


def test_a_new_cluster_needs_time_only() -> None:
    owner = cluster()
    found = why(owner)
    assert [each.text for each in found] == ["there is no head Pod", "group workers has 0 of 2 workers"]
    assert not any(each.serious for each in found)


def test_what_was_refused_explains_what_is_missing() -> None:
    owner = cluster()
    found = why(owner, pods.head(owner), failures=(REFUSED,))
    assert found[0] == REFUSED
    assert summary(found).text == f"{REFUSED.text} (and 1 more)"


def test_a_serious_trouble_of_a_worker_comes_before_a_head_that_needs_time() -> None:
    owner = cluster()
    stuck = pods.worker(owner, "w0", phase="Pending", status=pods.waiting("ImagePullBackOff"))
    found = why(owner, pods.head(owner, phase="Pending"), stuck, *workers(owner, 2)[1:])
    assert [each.reason for each in found] == ["ImagePullFailed", "PodStarting"]
    assert found[0].text.startswith("worker Pod of group workers, w0 cannot get the image")
    assert found[0].look == "kubectl describe pod w0 -n default"


def test_the_head_comes_before_workers_in_the_same_trouble() -> None:
    owner = cluster()
    crash: Json = {"phase": "Pending", "status": pods.waiting("CrashLoopBackOff")}
    found = why(owner, pods.head(owner, **crash), *workers(owner, 2, **crash))
    assert found[0].text == "head Pod head has container ray, which ends again and again"
    assert found[1].text.startswith("2 of 2 workers of group workers, such as w0: has container ray")


def test_many_pods_in_one_trouble_are_one_obstacle() -> None:
    owner = make.raycluster("a", make.stored(), make.workers(50))
    starting = [pods.worker(owner, f"w{number}", phase="Pending") for number in range(50)]
    found = why(owner, pods.head(owner), *starting)
    assert [each.text for each in found] == ["50 of 50 workers of group workers are not ready: PodStarting"]


def test_two_heads_are_for_a_person_to_mend() -> None:
    owner = make.raycluster("a", make.stored())
    found = why(owner, pods.head(owner, "h1", age=2), pods.head(owner, "h2", age=1))
    assert found[0].text == "there are 2 head Pods: h1, h2; delete all but one"
    assert found[0].look == "kubectl delete pod h2 -n default"


def test_a_head_on_its_way_out_is_named() -> None:
    owner = make.raycluster("a", make.stored())
    assert reasons(owner, pods.head(owner, terminating=True)) == ["PodTerminating"]
    assert reasons(owner, pods.head(owner, "old", terminating=True), pods.head(owner)) == []


def test_pods_of_a_group_that_was_taken_out_are_named() -> None:
    owner = make.raycluster("a", make.stored())
    found = why(owner, pods.head(owner), *workers(owner, 2))
    assert (
        found[0].text == "2 Pods of group workers, which is not in the spec any more, still run; delete them"
    )
    assert found[0].look == "kubectl delete pods -n default -l ray.io/cluster=a,ray.io/group=workers"


def test_the_autoscaler_is_waited_for() -> None:
    owner = make.raycluster("a", make.stored(), make.workers(1), make.autoscaling())
    text = "group workers has 2 workers and wants 1; the autoscaler chooses which go"
    assert [each.text for each in why(owner, pods.head(owner), *workers(owner, 2))] == [text]


def test_groups_of_one_name_are_named() -> None:
    owner = make.raycluster("a", make.stored(), make.workers(1), make.workers(1))
    assert reasons(owner, pods.head(owner), *workers(owner, 1)) == ["DoubledGroup"]


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([make.suspended()], "it is about to be suspended"),
        ([make.suspended(), make.condition("RayClusterSuspending")], "its Pods are being deleted"),
        ([make.suspended(), make.condition("RayClusterSuspended")], "set spec.suspend to false to resume"),
        ([make.condition("RayClusterSuspended")], "set spec.suspend to false to resume"),
    ],
)
def test_a_suspended_cluster_says_only_that(parts: list[make.Part], text: str) -> None:
    found = why(cluster(*parts))
    assert len(found) == 1
    assert found[0].reason == "Suspended"
    assert text in found[0].text


def test_a_resuming_cluster_says_what_is_missing() -> None:
    owner = cluster(make.condition("RayClusterSuspended"), make.spec(suspend=False))
    assert reasons(owner) == ["HeadMissing", "WorkersMissing"]


def test_what_keeps_pods_from_being_deleted_is_told_while_suspending() -> None:
    owner = cluster(make.suspended(), make.condition("RayClusterSuspending"))
    assert reasons(owner, pods.head(owner), failures=(REFUSED,)) == ["QuotaExceeded", "Suspended"]


def test_a_deleted_cluster_says_what_holds_it() -> None:
    owner = cluster(make.deleted("2026-01-01T01:00:00Z", "ray.io/x"))
    found = why(owner, pods.head(owner))
    assert [each.text for each in found] == ["it is being deleted; finalizers hold it: ray.io/x"]
    assert found[0].serious
    waits = Obstacle("PluginWaits", "plugin redis: the Job runs")
    assert why(owner, failures=(waits,))[0] == waits


def test_somebody_elses_cluster_is_not_looked_at() -> None:
    owner = cluster(make.spec(managedBy="kueue.x-k8s.io/multikueue"))
    assert [each.text for each in why(owner)] == ["spec.managedBy leaves it to kueue.x-k8s.io/multikueue"]


def test_the_last_warning_explains_a_pod_that_only_seems_to_need_time() -> None:
    owner = make.raycluster("a", make.stored())
    starting = pods.head(owner, phase="Pending")
    for reason, serious in (("FailedMount", True), ("Unhealthy", False)):
        warnings = {"uid-head": (reason, "something\nis wrong")}
        (found,) = obstacles(Situation(RayCluster(owner), views([starting]), warnings=warnings))
        assert found.text == (
            f"head Pod head is starting; the last warning about it is {reason}: something is wrong"
        )
        assert (found.reason, found.serious) == (reason if serious else "PodStarting", serious)


def test_a_warning_does_not_hide_what_the_pod_itself_says() -> None:
    owner = make.raycluster("a", make.stored())
    broken = pods.head(owner, phase="Pending", status=pods.waiting("ImagePullBackOff"))
    warnings = {"uid-head": ("BackOff", "Back-off pulling image")}
    (found,) = obstacles(Situation(RayCluster(owner), views([broken]), warnings=warnings))
    assert found.reason == "ImagePullFailed"


def test_a_claim_comes_before_the_pods_that_wait_for_it() -> None:
    owner = make.raycluster("a", make.stored())
    head = pods.head(owner, phase="Pending")
    head["spec"]["volumes"] = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("x", "y", "z")
    ] + [{"name": "shm", "emptyDir": {}}]
    bound, waits = (
        {"metadata": {"uid": phase}, "status": {"phase": phase}} for phase in ("Bound", "Pending")
    )
    claims = {"x": bound, "y": None, "z": waits, "unused": None}
    warnings = {"Pending": ("ProvisioningFailed", "no such class")}
    found = obstacles(Situation(RayCluster(owner), views([head]), warnings=warnings, claims=claims))
    assert [each.reason for each in found] == ["VolumeClaimMissing", "VolumeClaimUnbound", "PodStarting"]
    assert found[0].text == "volume claim y, which Pod head mounts, does not exist; create it"
    assert found[1].text.endswith("has no volume yet: ProvisioningFailed: no such class")


def test_a_log_is_looked_at_where_it_says_more() -> None:
    owner = make.raycluster("a", make.stored())
    crash = pods.head(owner, status=pods.waiting("CrashLoopBackOff"), ready=False)
    assert why(owner, crash)[0].look == "kubectl logs head -n default -c ray --previous"
    running = {"name": "wait-gcs-ready", "state": {"running": {}}}
    waits = pods.head(owner, phase="Pending", status={"initContainerStatuses": [running]})
    (found,) = why(owner, waits)
    assert found.text == "head Pod head has not got past its init container wait-gcs-ready"
    assert found.look == "kubectl logs head -n default -c wait-gcs-ready"
    assert not found.serious


def test_a_deletion_in_the_foreground_waits_for_pods() -> None:
    owner = cluster(make.deleted("2026-01-01T01:00:00Z", "foregroundDeletion"))
    held = pods.worker(owner, terminating=True)
    held["metadata"]["finalizers"] = ["example.com/x"]
    found = why(owner, held)
    assert "finalizers hold it: example.com/x" in found[0].text
    assert found[-1].text == "it is being deleted; finalizers hold it: foregroundDeletion"
