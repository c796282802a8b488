"""Every scheduler's plugin in an operator on a real API server: one story, the same for all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml

from kuberay_op.api import labels
from kuberay_op.clock import SystemClock
from kuberay_op.controllers.leftovers import leftovers
from kuberay_op.controllers.resources import RAY_CLUSTERS, RAY_JOBS
from kuberay_op.declarative.manifest import PluginManifest
from kuberay_op.kube.client import Client
from kuberay_op.kube.discovery import Discovery
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.resource import EVENTS, PODS
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install, install_crds
from kuberay_op.testing.operator import eventually, running_operator
from tests.schedulers.kit import (
    COSCHEDULING,
    CRDS,
    GANG_LABEL,
    GANG_SCHEDULERS,
    KAI,
    SCHEDULERS,
    VOLCANO,
    YUNIKORN,
    Json,
    Scheduler,
    Told,
)

pytestmark = pytest.mark.apiserver


@pytest.fixture
def crds(kwok_cluster: ControlPlane) -> None:
    if not CRDS.is_dir():
        pytest.skip("the schedulers' CRDs are not beside this checkout (shared/crds)")
    install_crds(kwok_cluster, ["RayCluster", "RayJob"])
    files = [CRDS / each.crd for each in SCHEDULERS if each.crd]
    install(kwok_cluster, [yaml.safe_load(file.read_text()) for file in files])


class World:
    """A namespace with an operator that uses one of the schedulers."""

    def __init__(self, client: Client, namespace: str, scheduler: Scheduler) -> None:
        self.client = client
        self.namespace = namespace
        self.scheduler = scheduler

    async def create(self, name: str, *parts: Any) -> None:
        marks = make.labels({GANG_LABEL: "", "kai.scheduler/queue": "a"})
        cluster = make.raycluster(name, make.namespace(self.namespace), marks, *parts)
        await self.client.create(RAY_CLUSTERS, cluster, reason="a test")

    async def change(self, name: str, **spec: Any) -> None:
        await self.client.patch(RAY_CLUSTERS, name, self.namespace, {"spec": spec}, reason="a test")

    async def pods(self, name: str) -> list[Json]:
        listed = await self.client.list(PODS, self.namespace, label_selector=f"{labels.CLUSTER}={name}")
        return [pod for pod in listed.items if "deletionTimestamp" not in pod["metadata"]]

    async def objects(self) -> list[Json]:
        resource = self.scheduler.resource
        if resource is None:
            return []
        items = (await self.client.list(resource, self.namespace)).items
        return [{"kind": resource.kind, **obj} for obj in items]

    async def told(self, name: str) -> Told | None:
        return self.scheduler.read(await self.objects(), await self.pods(name))

    async def comes_to(self, name: str, pods: int, told: Told | None) -> None:
        """Wait until the cluster has so many Pods and the scheduler was told so."""

        async def there() -> bool:
            return len(await self.pods(name)) == pods and await self.told(name) == told

        try:
            await eventually(there)
        except TimeoutError:
            raise AssertionError((len(await self.pods(name)), await self.told(name))) from None

    async def gone(self, name: str) -> None:
        async def missing() -> bool:
            try:
                await self.client.get(RAY_CLUSTERS, name, self.namespace)
            except NotFound:
                return not await self.pods(name) and not await self.objects()
            return False

        await eventually(missing)


@pytest.fixture
async def world(
    request: pytest.FixtureRequest, crds: None, kwok_cluster: ControlPlane, kwok_namespace: str
) -> AsyncIterator[World]:
    scheduler: Scheduler = request.param
    async with running_operator(
        kwok_cluster.kubeconfig,
        namespaces=[kwok_namespace],
        plugins={scheduler.name: scheduler.manifest()},
        scheduler=scheduler.name,
        gates=scheduler.feature_gates(),
    ) as operator:
        yield World(operator.client, kwok_namespace, scheduler)


def told(scheduler: Scheduler, members: int) -> Told | None:
    """Of Pods that all ask for the same."""
    if scheduler not in GANG_SCHEDULERS:
        return None
    return Told(members, {"cpu": str(members), "memory": f"{2 * members}Gi"})


def every(*schedulers: Scheduler) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("world", schedulers, ids=lambda each: each.name, indirect=True)


@every(*SCHEDULERS)
async def test_the_gang_follows_the_cluster_and_goes_with_it(world: World) -> None:
    scheduler = world.scheduler
    group = {"maxReplicas": 8, "rayStartParams": {}, "template": make.pod_template("ray-worker")}
    await world.create("a", make.workers(2))
    await world.comes_to("a", 3, told(scheduler, 3))
    assert {pod["spec"]["schedulerName"] for pod in await world.pods("a")} == {scheduler.pods}

    if scheduler is not YUNIKORN:  # its gang stands on the Pods, and those that are there keep theirs
        await world.change("a", workerGroupSpecs=[{"groupName": "workers", "replicas": 4, **group}])
        await world.comes_to("a", 5, told(scheduler, 5))

    await world.change("a", suspend=True)
    nothing = Told(0, {}) if scheduler is VOLCANO else None
    await world.comes_to("a", 0, nothing)
    wide = {"groupName": "workers", "replicas": 2, "minReplicas": 1, "numOfHosts": 2, **group}
    await world.change("a", suspend=False, workerGroupSpecs=[wide])
    await world.comes_to("a", 5, told(scheduler, 5))

    # Nothing is written any more once all is as it should be.
    before = [obj["metadata"]["resourceVersion"] for obj in await world.objects()]
    await world.client.patch(
        RAY_CLUSTERS, "a", world.namespace, {"metadata": {"labels": {"look": "again"}}}, reason="a test"
    )
    await world.create("b", make.labels({"later": "yes"}))
    await eventually(lambda: world.pods("b"))
    if scheduler.resource:
        mine = [obj for obj in await world.objects() if scheduler.group_name("a") == obj["metadata"]["name"]]
        assert [obj["metadata"]["resourceVersion"] for obj in mine] == before

    for name in ("a", "b"):
        await world.client.delete(RAY_CLUSTERS, name, world.namespace, reason="a test")
    await world.gone("a")


@every(VOLCANO, COSCHEDULING)
async def test_autoscaling_reserves_the_minimum(world: World) -> None:
    await world.create(
        "a", make.autoscaling(), make.workers(3, minReplicas=1), make.head(template=_with_account())
    )
    await eventually(world.objects)
    assert await world.told("a") == told(world.scheduler, 2)


@every(VOLCANO)
async def test_a_pod_group_of_somebody_else_is_left_alone_and_named(world: World) -> None:
    resource = world.scheduler.resource
    assert resource is not None
    theirs = {
        "apiVersion": resource.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "ray-a-pg", "namespace": world.namespace},
        "spec": {"minMember": 7},
    }
    await world.client.create(resource, theirs, reason="a test")
    await world.create("a")

    async def said() -> list[str]:
        events = (await world.client.list(EVENTS, world.namespace)).items
        return [event["note"] for event in events if "ray-a-pg exists and is not ours" in event["note"]]

    await eventually(said)
    assert (await world.client.get(resource, "ray-a-pg", world.namespace))["spec"]["minMember"] == 7
    assert await world.pods("a") == []


@every(COSCHEDULING)
async def test_a_pod_group_that_the_reference_made_is_taken_over(world: World) -> None:
    resource = world.scheduler.resource
    assert resource is not None
    await world.create("a", make.workers(1), make.suspended())
    uid = (await world.client.get(RAY_CLUSTERS, "a", world.namespace))["metadata"]["uid"]
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "a", "uid": uid}
    theirs = {
        "apiVersion": resource.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "a", "namespace": world.namespace, "ownerReferences": [owner]},
        "spec": {"minMember": 7},
    }
    await world.client.create(resource, theirs, reason="a test")
    await world.change("a", suspend=False)
    await world.comes_to("a", 2, told(world.scheduler, 2))
    (group,) = await world.objects()
    assert group["metadata"]["ownerReferences"][0]["controller"] is True


@pytest.mark.parametrize("scheduler", [VOLCANO, COSCHEDULING], ids=lambda each: each.name)
async def test_a_cluster_without_the_scheduler_s_api_is_made_all_the_same(
    control_plane: ControlPlane, namespace: str, scheduler: Scheduler
) -> None:
    install_crds(control_plane, ["RayCluster", "RayJob"])
    async with running_operator(
        control_plane.kubeconfig,
        namespaces=[namespace],
        plugins={scheduler.name: scheduler.manifest()},
        scheduler=scheduler.name,
    ) as operator:
        world = World(operator.client, namespace, scheduler)
        await world.create("a", make.workers(1))

        async def said() -> str:
            status = (await world.client.get(RAY_CLUSTERS, "a", namespace)).get("status", {})
            messages = [
                each["message"] for each in status.get("conditions", ()) if each["reason"] == "ApiMissing"
            ]
            return messages[0] if messages else ""

        assert "does not serve PodGroup of " in await eventually(said)
        await eventually(lambda: world.pods("a"))
        await world.client.delete(RAY_CLUSTERS, "a", namespace, reason="a test")


def _with_account() -> Json:
    return make.pod_template("ray-head", serviceAccountName="default")


@every(VOLCANO, COSCHEDULING)
async def test_a_job_holds_room_while_it_may_run(world: World) -> None:
    """Volcano's group is the job's; that of scheduler-plugins is its cluster's."""
    parts = (make.labels({GANG_LABEL: ""}), make.workers(2), make.spec(submissionMode="HTTPMode"))
    job = make.rayjob("train", make.namespace(world.namespace), *parts)
    await world.client.create(RAY_JOBS, job, reason="a test")

    async def says(wanted: Told | None) -> bool:
        return world.scheduler.read(await world.objects(), []) == wanted

    async def suspend(value: bool) -> None:
        body = {"spec": {"suspend": value}}
        await world.client.patch(RAY_JOBS, "train", world.namespace, body, reason="a test")

    await eventually(lambda: says(told(world.scheduler, 3)))
    (group,) = await world.objects()
    kind = "RayJob" if world.scheduler is VOLCANO else "RayCluster"
    assert group["metadata"]["ownerReferences"][0]["kind"] == kind
    await suspend(True)
    await eventually(lambda: says(Told(0, {}) if world.scheduler is VOLCANO else None))
    await suspend(False)
    await eventually(lambda: says(told(world.scheduler, 3)))
    await world.client.delete(RAY_JOBS, "train", world.namespace, reason="a test")

    async def gone() -> bool:
        return not await world.objects()

    await eventually(gone)


@every(VOLCANO)
async def test_a_job_that_has_ended_holds_nothing(world: World) -> None:
    over = make.spec(submissionMode="HTTPMode", activeDeadlineSeconds=1)
    job = make.rayjob("train", make.namespace(world.namespace), make.workers(1), over)
    await world.client.create(RAY_JOBS, job, reason="a test")

    async def said() -> list[str]:
        events = (await world.client.list(EVENTS, world.namespace)).items
        return [event["note"] for event in events if event["reason"] == "BatchSchedulerCleanedUp"]

    async def nothing() -> bool:
        return world.scheduler.read(await world.objects(), []) == Told(0, {})

    await eventually(nothing)
    assert await eventually(said) == ["the batch scheduler volcano has let go of train"]


@pytest.mark.parametrize(
    ("options", "groups"),
    [
        ({"podGroups": "perGroup"}, {"ray-a-headgroup-pg": 1, "ray-a-workers-pg": 2, "ray-a-wide-pg": 2}),
        ({"subGroups": True, "subGroupTopology": {"highestTierAllowed": 1}}, {"ray-a-pg": 5}),
    ],
    ids=["one for each group", "sub-groups"],
)
async def test_volcano_s_api_takes_what_its_options_make(
    crds: None, kwok_cluster: ControlPlane, kwok_namespace: str, options: Any, groups: dict[str, int]
) -> None:
    async with running_operator(
        kwok_cluster.kubeconfig,
        namespaces=[kwok_namespace],
        plugins={"volcano": VOLCANO.manifest()},
        options={"volcano": options},
        scheduler="volcano",
    ) as operator:
        world = World(operator.client, kwok_namespace, VOLCANO)
        await world.create("a", make.workers(2), make.workers(1, group="wide", numOfHosts=2))

        async def all_there() -> bool:
            sizes = {each["metadata"]["name"]: each["spec"]["minMember"] for each in await world.objects()}
            return sizes == groups and len(await world.pods("a")) == 5

        await eventually(all_there)
        before = {each["metadata"]["resourceVersion"] for each in await world.objects()}
        await world.change("a", headServiceAnnotations={"look": "again"})

        async def seen() -> bool:
            cluster = await world.client.get(RAY_CLUSTERS, "a", kwok_namespace)
            return bool(cluster["status"].get("observedGeneration") == cluster["metadata"]["generation"])

        await eventually(seen)
        after = {each["metadata"]["resourceVersion"] for each in await world.objects()}
        assert after == before, "what the server fills in is not taken for a change"


@every(KAI)
async def test_kai_refuses_a_job_that_would_never_start(world: World) -> None:
    parts = (make.workers(1), make.spec(submissionMode="K8sJobMode"))
    job = make.rayjob("train", make.namespace(world.namespace), *parts)
    await world.client.create(RAY_JOBS, job, reason="a test")

    async def said() -> list[str]:
        events = (await world.client.list(EVENTS, world.namespace)).items
        return [event["note"] for event in events if event["reason"] == "PluginRefuses"]

    (note, *_) = await eventually(said)
    assert "use HTTPMode, SidecarMode or InteractiveMode" in note
    assert (await world.client.list(RAY_CLUSTERS, world.namespace)).items == []


async def test_another_scheduler_takes_over_and_the_old_one_s_objects_go_with_their_owner(
    crds: None, kwok_cluster: ControlPlane, kwok_namespace: str
) -> None:
    def operator(scheduler: Scheduler) -> Any:
        return running_operator(
            kwok_cluster.kubeconfig,
            namespaces=[kwok_namespace],
            plugins={scheduler.name: scheduler.manifest()},
            scheduler=scheduler.name,
        )

    async with operator(VOLCANO) as first:
        before = World(first.client, kwok_namespace, VOLCANO)
        await before.create("a", make.workers(1))
        await before.comes_to("a", 2, told(VOLCANO, 2))
    async with operator(YUNIKORN) as second:
        after = World(second.client, kwok_namespace, YUNIKORN)
        group = {"groupName": "workers", "replicas": 2, "maxReplicas": 3, "rayStartParams": {}}
        wider = {**group, "template": make.pod_template("ray-worker")}
        await after.change("a", workerGroupSpecs=[wider])

        async def three() -> bool:
            return len(await after.pods("a")) == 3

        await eventually(three)
        names = sorted(pod["spec"]["schedulerName"] for pod in await after.pods("a"))
        assert names == ["volcano", "volcano", "yunikorn"], "Pods that run stay where they are"

        discovery = Discovery(second.client, SystemClock())
        manifests = {"volcano": PluginManifest(VOLCANO.manifest())}
        (said,) = await leftovers(second.client, discovery, manifests, [kwok_namespace])
        assert said == (
            "plugin volcano is off and has left 1 PodGroup; they go with their owners, or with: "
            "kubectl delete podgroups.scheduling.volcano.sh -A -l kuberay-op/plugin=volcano"
        )
        await second.client.delete(RAY_CLUSTERS, "a", kwok_namespace, reason="a test")
        await World(second.client, kwok_namespace, VOLCANO).gone("a")
