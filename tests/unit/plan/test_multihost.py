"""Replicas of several hosts come and go as a whole."""

from __future__ import annotations

from random import Random
from typing import Any

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.plan.pods import PodPlan, PodSettings, plan_pods
from kuberay_op.testing import make, pods
from kuberay_op.testing.changes import changed

Pod = dict[str, Any]


def slices(replicas: int = 2, hosts: int = 2, **fields: Any) -> Pod:
    return make.raycluster("a", make.workers(replicas, numOfHosts=hosts, **fields))


def replica(cluster: Pod, index: int, hosts: int = 2, **fields: Any) -> list[Pod]:
    return [
        pods.worker(
            cluster,
            f"r{index}-{host}",
            replica=index,
            host=host,
            replica_name=f"r{index}",
            age=100 - index,
            **fields,
        )
        for host in range(hosts)
    ]


def plan(cluster: Pod, *existing: Pod, begun: str = "", **settings: Any) -> PodPlan:
    chosen = PodSettings(**{"version": "test", **settings})
    names = frozenset(filter(None, [begun]))
    rng = Random(1)  # noqa: S311 (for names)
    return plan_pods(RayCluster(cluster), [pods.head(cluster), *existing], chosen, rng, names)


def removed(result: PodPlan) -> list[str]:
    return sorted(item.pod.name for item in result.remove)


def test_every_replica_has_a_name_an_index_and_all_its_hosts() -> None:
    result = plan(slices())
    assert [(item.replica, item.host) for item in result.add] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    names = [item.replica_name for item in result.add]
    assert names[0] == names[1] != names[2] == names[3]
    assert all(name.startswith("workers-") and len(name) == len("workers-") + 5 for name in names)


def test_complete_replicas_are_left_alone() -> None:
    cluster = slices()
    assert plan(cluster, *replica(cluster, 0), *replica(cluster, 1)) == PodPlan()


def test_all_incomplete_replicas_go_in_one_pass() -> None:
    cluster = slices(3)
    existing = [replica(cluster, 0)[0], replica(cluster, 1)[1], *replica(cluster, 2)]
    result = plan(cluster, *existing)
    assert removed(result) == ["r0-0", "r1-1"]
    assert result.remove[0].reason == "its replica has 1 of 2 hosts"
    assert result.add == (), "they keep their places until they are gone"


def test_a_host_that_ended_takes_its_replica_with_it() -> None:
    cluster = slices()
    broken = replica(cluster, 0)
    broken[1] = pods.worker(cluster, "r0-1", replica=0, host=1, replica_name="r0", age=100, phase="Failed")
    result = plan(cluster, *broken, *replica(cluster, 1))
    assert removed(result) == ["r0-0", "r0-1"]
    assert result.add == ()
    assert "host r0-1 of its replica has to be replaced: phase Failed" in result.remove[0].reason


def test_a_host_on_its_way_out_takes_its_replica_with_it_and_keeps_the_index() -> None:
    cluster = slices(3)
    going = replica(cluster, 0)
    going[0]["metadata"]["deletionTimestamp"] = pods.moment(0)
    result = plan(cluster, *going, *replica(cluster, 1))
    assert removed(result) == ["r0-1"]
    assert {item.replica for item in result.add} == {2}, "index 0 is still taken"


def test_a_named_host_takes_its_replica_with_it() -> None:
    cluster = slices(1, scaleStrategy={"workersToDelete": ["r1-0", "elsewhere"]})
    result = plan(cluster, *replica(cluster, 0), *replica(cluster, 1))
    assert removed(result) == ["r1-0", "r1-1"]


def test_other_numbers_of_hosts_mean_other_replicas() -> None:
    cluster = slices(hosts=4)
    four = [*replica(cluster, 0, 4), *replica(cluster, 1, 4)]
    assert plan(cluster, *four) == PodPlan()
    fewer = changed(cluster, {"spec.workerGroupSpecs.0.numOfHosts": 2})
    assert len(plan(fewer, *four).remove) == 8
    more = changed(cluster, {"spec.workerGroupSpecs.0.numOfHosts": 5})
    assert len(plan(more, *four).remove) == 8


def test_surplus_replicas_go_whole_the_worst_and_newest_first() -> None:
    cluster = slices(1)
    unready = replica(cluster, 1)
    unready[0]["status"]["conditions"][0]["status"] = "False"
    existing = [*replica(cluster, 0), *unready, *replica(cluster, 2)]
    assert removed(plan(cluster, *existing)) == ["r1-0", "r1-1", "r2-0", "r2-1"]
    asked = changed(cluster, {"spec.enableInTreeAutoscaling": True})
    assert plan(asked, *existing) == PodPlan()
    assert len(plan(asked, *existing, random_delete=True).remove) == 4


def test_pods_from_before_indexing_are_kept_and_counted() -> None:
    cluster = slices(2)
    nameless = [pods.worker(cluster, f"old{number}", age=100 - number) for number in range(4)]
    assert plan(cluster, *nameless) == PodPlan()
    result = plan(cluster, *nameless[:3])
    assert removed(result) == ["old2"], "the one without a partner"
    assert result.add == ()
    assert {item.replica for item in plan(cluster, *nameless[:2]).add} == {0}


def test_without_indexing_hosts_are_only_counted() -> None:
    cluster = slices()
    result = plan(cluster, indexing=False)
    assert [(item.replica, item.host, item.replica_name) for item in result.add] == [(None, None, "")] * 4
    assert plan(cluster, *replica(cluster, 0), *replica(cluster, 1), indexing=False) == PodPlan()


def test_a_replica_that_was_never_whole_gets_its_missing_hosts() -> None:
    cluster = slices(2, hosts=3)
    half = [*replica(cluster, 0, 3), replica(cluster, 1, 3)[1]]
    result = plan(cluster, *half, begun="r1")
    assert result.remove == ()
    assert [(item.replica_name, item.replica, item.host) for item in result.add] == [
        ("r1", 1, 0),
        ("r1", 1, 2),
    ]
    assert result.add[0].reason == "its replica has 1 of 3 hosts and was never whole"


def test_a_replica_that_was_never_whole_goes_as_others_do() -> None:
    cluster = slices(2)
    whole, (host, _) = replica(cluster, 0), replica(cluster, 1)
    fewer = changed(cluster, {"spec.workerGroupSpecs.0.replicas": 1})
    result = plan(fewer, *whole, host, begun="r1")
    assert (removed(result), result.add) == (["r1-0"], ()), "nobody wants it any more"
    broken = replica(cluster, 1, phase="Failed")[0]
    assert removed(plan(cluster, *whole, broken, begun="r1")) == ["r1-0"]
    single = changed(cluster, {"spec.workerGroupSpecs.0.scaleStrategy": {"workersToDelete": ["r1-0"]}})
    result = plan(single, *whole, host, begun="r1")
    assert (removed(result), result.add) == (["r1-0"], ())
