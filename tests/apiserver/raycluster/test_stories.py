"""What happens to clusters, and that they end as the spec says, whenever the operator was killed."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from kuberay_op.api import labels
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.features import Gates
from kuberay_op.kube.resource import PODS, SERVICE_ACCOUNTS, SERVICES, Resource
from kuberay_op.testing import make
from kuberay_op.testing.operator import eventually

pytestmark = pytest.mark.apiserver

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")


async def test_scaling_up_and_down(begin: Any, seed: int) -> None:
    async with begin(seed=seed) as story:
        await story.step(lambda: story.create("a", make.workers(2)), lambda: story.ready("a", 2))
        before = await story.names(labels.WORKER)
        await story.step(lambda: story.scale("a", 5), lambda: story.ready("a", 5))
        assert set(before) < set(await story.names(labels.WORKER)), "nobody was replaced"
        indexes = {pod["metadata"]["labels"][labels.REPLICA_INDEX] for pod in await story.pods(labels.WORKER)}
        assert indexes == set("01234")
        ages = [pod["metadata"]["creationTimestamp"] for pod in await story.pods(labels.WORKER)]
        await story.step(lambda: story.scale("a", 1), lambda: story.ready("a", 1))
        (left,) = await story.pods(labels.WORKER)
        assert left["metadata"]["creationTimestamp"] == min(ages), "the newest went"
        await story.step(lambda: story.scale("a", 0), lambda: story.ready("a", 0))
        assert story.most["workers"] == 5


async def test_the_autoscaler_names_who_goes(begin: Any, seed: int) -> None:
    async with begin(seed=seed) as story:
        account = {"metadata": {"name": "a", "namespace": story.namespace}}
        await story.client.create(SERVICE_ACCOUNTS, account, reason="what the autoscaler runs as")
        parts = (make.workers(3), make.autoscaling("v2"))
        await story.step(lambda: story.create("a", *parts), lambda: story.ready("a", 3))
        chosen = (await story.names(labels.WORKER))[1]
        strategy = {"workersToDelete": [chosen, "no-such-pod"]}
        await story.step(lambda: story.scale("a", 2, scaleStrategy=strategy), lambda: story.ready("a", 2))
        assert chosen not in await story.names()
        await story.step(lambda: story.scale("a", 1, scaleStrategy=None), lambda: too_many(story))
        assert len(await story.names(labels.WORKER)) == 2, "nobody goes who was not named"


async def too_many(story: Any) -> bool:
    cluster = await story.cluster("a")
    return bool(story.says(cluster, "Ready", "False", "WorkersSurplus"))


async def test_suspending_and_resuming(begin: Any, seed: int) -> None:
    async with begin(seed=seed) as story:

        async def suspended() -> bool:
            cluster = await story.cluster("a")
            return (
                not await story.pods()
                and cluster["status"]["state"] == "suspended"
                and story.says(cluster, "RayClusterSuspended", "True")
                and story.says(cluster, "RayClusterSuspending", "False")
                and story.says(cluster, "RayClusterProvisioned", "False")
                and story.says(cluster, "Ready", "False", "Suspended")
            )

        await story.step(lambda: story.create("a", make.workers(2)), lambda: story.ready("a", 2))
        await story.step(lambda: story.edit("a", {"spec": {"suspend": True}}), suspended)
        await story.step(lambda: story.edit("a", {"spec": {"suspend": None}}), suspended)
        await story.step(lambda: story.edit("a", {"spec": {"suspend": False}}), lambda: story.ready("a", 2))
        assert len(await story.said("DeletedPod")) <= 2, "told once, or once per attempt"


async def test_a_suspension_once_begun_is_finished(begin: Any, seed: int) -> None:
    async with begin(seed=seed) as story:
        await story.step(lambda: story.create("a", make.workers(1)), lambda: story.ready("a", 1))
        before = await story.names()
        worker = (await story.names(labels.WORKER))[0]
        await story.hold(worker, "example.com/hold")

        async def suspending() -> bool:
            going = [pod for pod in await story.pods() if "deletionTimestamp" in pod["metadata"]]
            cluster = await story.cluster("a")
            begun = story.says(cluster, "RayClusterSuspending", "True")
            return bool(begun and len(await story.pods()) == len(going) == 1)

        await story.step(lambda: story.edit("a", {"spec": {"suspend": True}}), suspending)
        await story.step(lambda: story.edit("a", {"spec": {"suspend": False}}), suspending)
        await story.step(lambda: story.hold(worker), lambda: story.ready("a", 1))
        assert set(before).isdisjoint(await story.names()), "all Pods are new"


async def test_kueue_admits_evicts_and_admits_again(begin: Any, seed: int) -> None:
    """Kueue makes clusters wait by ``suspend``, and writes where they may run into the templates."""
    async with begin(seed=seed) as story:

        async def waits() -> bool:
            status = (await story.cluster("a")).get("status", {})
            return not await story.pods() and status.get("state") == "suspended"

        def admission(flavor: str | None) -> dict[str, Any]:
            spec = make.raycluster("a", make.workers(1))["spec"]
            for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
                group["template"]["metadata"] = {"labels": {"flavor": flavor} if flavor else {}}
            parts = {part: spec[part] for part in ("headGroupSpec", "workerGroupSpecs")}
            return {"spec": {"suspend": flavor is None, **parts}}

        async def runs(flavor: str) -> bool:
            flavors = {pod["metadata"]["labels"].get("flavor") for pod in await story.pods()}
            return flavors == {flavor} and await story.ready("a", 1)

        await story.step(lambda: story.create("a", make.workers(1), make.suspended()), waits)
        await story.step(lambda: story.edit("a", admission("spot")), lambda: runs("spot"))
        await story.step(lambda: story.edit("a", admission(None)), waits)
        await story.step(lambda: story.edit("a", admission("reserved")), lambda: runs("reserved"))


async def test_suspending_without_conditions(begin: Any, seed: int) -> None:
    gates = Gates.default().with_overrides("RayClusterStatusConditions=false")
    async with begin(seed=seed, gates=gates) as story:

        async def up() -> bool:
            status = (await story.cluster("a")).get("status", {})
            assert "conditions" not in status
            return len(await story.pods()) == 2 and status.get("state") == "ready"

        async def down() -> bool:
            return not await story.pods() and (await story.cluster("a"))["status"]["state"] == "suspended"

        await story.step(lambda: story.create("a", make.workers(1)), up)
        await story.step(lambda: story.edit("a", {"spec": {"suspend": True}}), down)
        await story.step(lambda: story.edit("a", {"spec": {"suspend": None}}), up)


async def test_recreate_replaces_everything_when_the_spec_changes(begin: Any, seed: int) -> None:
    async with begin(seed=seed) as story:
        parts = (make.workers(2), make.spec(upgradeStrategy={"type": "Recreate"}))
        await story.step(lambda: story.create("a", *parts), lambda: story.ready("a", 2))
        before = await story.names()
        await story.step(lambda: story.scale("a", 3), lambda: story.ready("a", 3))
        assert set(before) < set(await story.names()), "scaling is no upgrade"

        async def replaced() -> bool:
            return set(before).isdisjoint(await story.names()) and await story.ready("a", 3)

        await story.step(lambda: story.edit("a", {"spec": {"rayVersion": "2.53.0"}}), replaced)


async def test_a_lost_head_is_replaced_and_workers_stay(begin: Any, seed: int) -> None:
    async with begin(seed=seed) as story:
        await story.step(lambda: story.create("a", make.workers(2)), lambda: story.ready("a", 2))
        workers = await story.names(labels.WORKER)

        async def another_than(head: str) -> bool:
            return bool(await story.names(labels.HEAD) != [head] and await story.ready("a", 2))

        (first,) = await story.names(labels.HEAD)
        await story.step(lambda: story.delete(PODS, first, grace=0), lambda: another_than(first))
        (second,) = await story.names(labels.HEAD)
        await story.step(lambda: story.fail(second), lambda: another_than(second))
        assert await story.names(labels.WORKER) == workers
        assert any("phase Failed (Evicted)" in note for note in await story.said("DeletedHeadPod"))


async def test_lost_workers_are_replaced(begin: Any, seed: int) -> None:
    async with begin(seed=seed) as story:
        parts = (make.workers(2), make.workers(1, group="gpu"))
        await story.step(lambda: story.create("a", *parts), lambda: story.ready("a", 3))
        (head,), before = await story.names(labels.HEAD), await story.names(labels.WORKER)

        async def accidents() -> None:
            await story.fail(before[0])
            await story.delete(PODS, before[1])

        async def mended() -> bool:
            names = set(await story.names(labels.WORKER))
            return not names & set(before[:2]) and await story.ready("a", 3)

        await story.step(accidents, mended)
        assert await story.names(labels.HEAD) == [head]
        assert before[2] in await story.names(labels.WORKER)


async def test_a_replica_of_several_hosts_comes_and_goes_as_one(begin: Any, seed: int) -> None:
    async with begin(seed=seed) as story:
        await story.step(
            lambda: story.create("a", make.workers(2, numOfHosts=2)), lambda: story.ready("a", 4)
        )
        before = {
            pod["metadata"]["name"]: pod["metadata"]["labels"] for pod in await story.pods(labels.WORKER)
        }
        assert sorted((mark[labels.REPLICA_INDEX], mark[labels.HOST_INDEX]) for mark in before.values()) == [
            ("0", "0"),
            ("0", "1"),
            ("1", "0"),
            ("1", "1"),
        ]
        lost = next(iter(before))
        name = before[lost][labels.REPLICA_NAME]
        partners = {pod for pod, marks in before.items() if marks[labels.REPLICA_NAME] == name}

        async def whole_again() -> bool:
            return not partners & set(await story.names()) and await story.ready("a", 4)

        await story.step(lambda: story.delete(PODS, lost), whole_again)
        assert set(before) - partners < set(await story.names()), "the other replica was left alone"
        await story.step(lambda: story.scale("a", 1), lambda: story.ready("a", 2))
        assert story.most["workers"] == 4


async def test_a_pod_that_will_not_go_freezes_nothing_else(begin: Any, seed: int) -> None:
    async with begin(seed=seed) as story:
        await story.step(lambda: story.create("a", make.workers(2)), lambda: story.ready("a", 2))
        (head,), (stuck, other) = await story.names(labels.HEAD), await story.names(labels.WORKER)
        for name in (head, stuck):
            await story.hold(name, "example.com/hold")

        async def deleted() -> None:
            await story.delete(PODS, stuck)
            await story.delete(PODS, head)

        async def grown() -> bool:
            cluster = await story.cluster("a")
            staying = [
                pod for pod in await story.pods(labels.WORKER) if "deletionTimestamp" not in pod["metadata"]
            ]
            return len(staying) == 3 and story.says(cluster, "Ready", "False", "PodTerminating")

        await story.step(deleted, lambda: story.exists(PODS, stuck))
        await story.step(lambda: story.scale("a", 4), grown)

        async def counted() -> bool:
            return bool(story.most["workers"] >= 4)  # our own watch may be behind what we read

        await eventually(counted)
        assert story.most["workers"] == 4, "the one that goes still counts"
        await story.step(lambda: story.delete(PODS, other), lambda: replaced_around(story, other))

        async def let_go() -> None:
            await story.hold(stuck)
            await story.hold(head)

        await story.step(let_go, lambda: story.ready("a", 4))
        assert await story.names(labels.HEAD) != [head]


async def replaced_around(story: Any, gone: str) -> bool:
    names = await story.names(labels.WORKER)
    return gone not in names and len(names) == 4


async def test_a_quota_is_named_and_room_is_used_when_there_is_some(begin: Any, seed: int) -> None:
    async with begin(seed=seed) as story:
        quota = {"metadata": {"name": "q", "namespace": story.namespace}, "spec": {"hard": {"pods": "2"}}}
        await story.client.create(QUOTAS, quota, reason="a test")

        async def counted() -> bool:
            found = await story.client.get(QUOTAS, "q", story.namespace)
            return "used" in found.get("status", {})

        async def refused() -> bool:
            cluster = await story.cluster("a")
            return (
                len(await story.names(labels.HEAD)) == len(await story.names(labels.WORKER)) == 1
                and story.says(cluster, "ReplicaFailure", "True", "FailedCreateWorkerPod")
                and story.says(cluster, "Ready", "False", "QuotaExceeded")
                and cluster["status"]["desiredWorkerReplicas"] == 3
            )

        async def nothing() -> None: ...

        await story.step(nothing, counted)
        await story.step(lambda: story.create("a", make.workers(3)), refused)
        notes = await story.said("FailedToCreateWorkerPod")
        assert all("exceeded quota" in note and "a-workers-worker-*" in note for note in notes)
        more = {"spec": {"hard": {"pods": "9"}}}
        await story.step(
            lambda: story.client.patch(QUOTAS, "q", story.namespace, more, reason="a test"),
            lambda: story.ready("a", 3),
        )
        cluster = await story.cluster("a")
        assert not story.says(cluster, "ReplicaFailure", "True")


async def test_half_a_replica_waits_for_the_other_half(begin: Any) -> None:
    """A quota fits a part of a replica: it stays, and nothing is made and removed for ever."""
    async with begin() as story:
        quota = {"metadata": {"name": "q", "namespace": story.namespace}, "spec": {"hard": {"pods": "4"}}}
        await story.client.create(QUOTAS, quota, reason="a test")

        async def counted() -> bool:
            return "used" in (await story.client.get(QUOTAS, "q", story.namespace)).get("status", {})

        async def refused() -> bool:
            cluster = await story.cluster("a")
            return len(await story.pods()) == 4 and story.says(cluster, "Ready", "False", "QuotaExceeded")

        await eventually(counted)
        await story.start()
        await story.create("a", make.workers(2, numOfHosts=2))
        await eventually(refused)
        before = {pod["metadata"]["uid"] for pod in await story.pods()}
        tried = passes(story, "error")
        for _ in range(3):  # each time it is tried anew, and refused
            await story.edit("a", {"metadata": {"annotations": {"tried": str(tried)}}})
            await eventually(partial(more_passes, story, tried, "error"))
            tried = passes(story, "error")
        assert {pod["metadata"]["uid"] for pod in await story.pods()} == before
        more = {"spec": {"hard": {"pods": "9"}}}
        await story.client.patch(QUOTAS, "q", story.namespace, more, reason="a test")
        await eventually(lambda: story.ready("a", 4))
        after = await story.pods()
        assert before < {pod["metadata"]["uid"] for pod in after}, "what was there has been completed"
        names = [pod["metadata"]["labels"].get(labels.REPLICA_NAME) for pod in after]
        assert sorted(names.count(name) for name in set(names) - {None}) == [2, 2]


async def test_a_service_deleted_by_hand_comes_back(begin: Any, seed: int) -> None:
    async with begin(seed=seed) as story:
        await story.step(lambda: story.create("a"), lambda: story.ready("a", 0))
        before = await story.client.get(SERVICES, "a-head-svc", story.namespace)

        async def back() -> bool:
            if not await story.exists(SERVICES, "a-head-svc"):
                return False
            found = await story.client.get(SERVICES, "a-head-svc", story.namespace)
            return bool(found["metadata"]["uid"] != before["metadata"]["uid"])

        await story.step(lambda: story.delete(SERVICES, "a-head-svc"), back)
        assert (await story.cluster("a"))["status"]["head"]["serviceName"] == "a-head-svc"


async def test_an_invalid_cluster_is_left_alone_and_can_be_deleted(begin: Any, seed: int) -> None:
    async with begin(seed=seed) as story:
        await story.step(lambda: story.create("a", make.workers(1)), lambda: story.ready("a", 1))
        before = await story.names()
        wrong = {"spec": {"headGroupSpec": {"rayStartParams": {"num-cpus": "1"}, "resources": {"CPU": "1"}}}}

        async def told() -> bool:
            return bool(story.says(await story.cluster("a"), "Ready", "False", "Invalid"))

        await story.step(lambda: story.edit("a", wrong), told)
        notes = await story.said("InvalidRayClusterSpec")
        assert notes[0].startswith(
            f"The RayCluster spec is invalid {story.namespace}/a: spec.headGroupSpec.resources"
        )
        assert await story.names() == before
        assert (await story.cluster("a"))["status"]["state"] == "ready", "what was known stays"
        finalizers = {"metadata": {"finalizers": ["ray.io/gcs-ft-redis-cleanup-finalizer"]}}
        await story.edit("a", finalizers)

        async def gone() -> bool:
            return not await story.exists(RAY_CLUSTERS, "a") and not await story.pods()

        await story.step(lambda: story.delete(RAY_CLUSTERS, "a"), gone)


async def test_somebody_elses_clusters_and_pods_are_left_alone(begin: Any, seed: int) -> None:
    async with begin(seed=seed) as story:
        mine = make.spec(managedBy="kueue.x-k8s.io/multikueue")
        await story.create("theirs", make.workers(1), mine)
        marks = {labels.CLUSTER: "a", labels.NODE_TYPE: labels.WORKER, labels.GROUP: "workers"}
        foreign = {
            "metadata": {"name": "foreign", "namespace": story.namespace, "labels": marks},
            "spec": {"containers": [{"name": "x", "image": "x"}]},
        }
        await story.client.create(PODS, foreign, reason="somebody else's")

        async def both() -> bool:
            ready = story.says(await story.cluster("a"), "Ready", "True")
            return bool(ready and len(await story.pods(labels.WORKER)) == 2)

        strategy = {"workersToDelete": ["foreign"]}
        await story.step(lambda: story.create("a", make.workers(1, scaleStrategy=strategy)), both)

        async def alone() -> bool:
            return bool(await story.names() == ["foreign"])

        await story.step(lambda: story.edit("a", {"spec": {"suspend": True}}), alone)
        assert "status" not in await story.cluster("theirs")


async def test_at_rest_passes_cost_no_calls(begin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with begin(requeue=0.2) as story:
        await story.start()
        await story.create("a", make.workers(2))
        await story.step(lambda: asyncio.sleep(0), lambda: story.ready("a", 2))
        version = (await story.cluster("a"))["metadata"]["resourceVersion"]
        await story.stop()
        await story.start()
        calls: list[str] = []

        def counted(name: str) -> Any:
            call = getattr(story.operator.client, name)

            def count(*args: Any, **options: Any) -> Any:
                calls.append(f"{name} {args[0]}")
                return call(*args, **options)

            return count

        for name in ("create", "delete", "get", "list", "patch", "request"):
            monkeypatch.setattr(story.operator.client, name, counted(name))
        before = passes(story)
        await eventually(lambda: more_passes(story, before + 3))
        assert calls == []
        assert (await story.cluster("a"))["metadata"]["resourceVersion"] == version


def passes(story: Any, result: str = "") -> float:
    """How many passes there were, all or those that ended in this way."""
    found = story.operator.metrics.registry.collect()
    samples = [sample for family in found for sample in family.samples]
    return float(
        sum(
            sample.value
            for sample in samples
            if sample.name == "controller_runtime_reconcile_total" and result in ("", sample.labels["result"])
        )
    )


async def more_passes(story: Any, than: float, result: str = "") -> bool:
    return passes(story, result) > than
