"""What each scheduler is told about a gang, as its plugin is installed: the same numbers by every plugin."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.testing import make
from tests.schedulers.kit import (
    ALL,
    COSCHEDULING,
    GANG_LABEL,
    GANG_SCHEDULERS,
    KAI,
    VOLCANO,
    WAS,
    YUNIKORN,
    Json,
    Scheduler,
    Told,
    offline,
    task_groups,
)

SMALL = {"cpu": "256m", "memory": "256Mi"}


def pod(**limits: Any) -> Json:
    resources = {"requests": SMALL, **({"limits": limits} if limits else {})}
    return {"spec": {"containers": [{"name": "ray", "image": "ray", "resources": resources}]}}


GPU_POD = pod(**{"nvidia.com/gpu": "1"})


def fixture(*parts: make.Part, worker: Json = GPU_POD, **group: Any) -> Json:
    """Head and two of one to four workers, as in the reference's own tests."""
    sizes = {"minReplicas": 1, "maxReplicas": 4, "template": worker, **group}
    parts = (make.labels({GANG_LABEL: "true"}), make.head(template=pod()), make.workers(2, **sizes), *parts)
    return make.raycluster("demo", make.stored(), *parts)


def job(mode: str, *parts: make.Part) -> Json:
    parts = (
        make.labels({GANG_LABEL: ""}),
        make.head(template=pod()),
        make.workers(2, minReplicas=1, maxReplicas=4, template=pod()),
        make.spec(submissionMode=mode),
        *parts,
    )
    return make.rayjob("demo", make.stored(), *parts)


def numbers(members: int, amount: int, gpu: int | None = None) -> Told:
    gpus = {} if gpu is None else {"nvidia.com/gpu": str(gpu)}
    memory = f"{amount}Mi" if amount % 1024 else f"{amount // 1024}Gi"
    return Told(members, {"cpu": f"{amount}m", "memory": memory, **gpus})


GANGS: list[tuple[str, Json, Told]] = [
    ("plain", fixture(), numbers(3, 768, 2)),
    ("hosts", fixture(numOfHosts=2), numbers(5, 1280, 4)),
    ("autoscaling", fixture(make.autoscaling()), numbers(2, 512, 1)),
    ("below the minimum", fixture(make.cluster(), minReplicas=3), numbers(4, 1024, 3)),
    ("above the maximum", fixture(maxReplicas=1), numbers(2, 512, 1)),
    ("a suspended group", fixture(suspend=True), numbers(1, 256)),
    ("two groups", fixture(make.workers(1, group="more", template=pod())), numbers(4, 1024, 2)),
    ("minimum of hosts", fixture(make.autoscaling(), numOfHosts=3, minReplicas=2), numbers(7, 1792, 6)),
]


@pytest.mark.parametrize("scheduler", GANG_SCHEDULERS, ids=lambda each: each.name)
@pytest.mark.parametrize(("owner", "told"), [case[1:] for case in GANGS], ids=[case[0] for case in GANGS])
def test_gangs_are_counted_alike(scheduler: Scheduler, owner: Json, told: Told) -> None:
    assert offline(scheduler, owner).told(scheduler) == told


@pytest.mark.parametrize(("owner", "told"), [case[1:] for case in GANGS], ids=[case[0] for case in GANGS])
def test_kubernetes_itself_is_told_how_many_unless_that_may_change(owner: Json, told: Told) -> None:
    scales = owner["spec"].get("enableInTreeAutoscaling")
    assert offline(WAS, owner).told(WAS) == (None if scales else Told(told.members, {}))


@pytest.mark.parametrize("value", ["", "false", "yes"])
def test_kubernetes_itself_wants_the_label_to_say_true(value: str) -> None:
    found = offline(WAS, fixture(make.labels({GANG_LABEL: value})))
    assert found.told(WAS) is None
    assert "schedulingGroup" not in found.pods["headgroup"]["spec"]


def test_kubernetes_itself_keeps_a_gang_whose_groups_change_names() -> None:
    def objects(owner: Json) -> list[Json]:
        return offline(WAS, owner).objects

    renamed = fixture(lambda obj: obj["spec"]["workerGroupSpecs"][0].update(groupName="others"))
    assert objects(renamed) == objects(fixture())


@pytest.mark.parametrize("scheduler", ALL, ids=lambda each: each.name)
def test_every_pod_is_handed_over_whatever_its_template_says(scheduler: Scheduler) -> None:
    template = {"spec": {**pod()["spec"], "schedulerName": "the-user-s"}}
    found = offline(scheduler, fixture(make.head(template=template)))
    assert {each["spec"]["schedulerName"] for each in found.pods.values()} == {scheduler.pods}
    assert set(found.pods) == {"headgroup", "workers"}


@pytest.mark.parametrize("value", ["", "false", "true"])
@pytest.mark.parametrize("scheduler", [YUNIKORN, COSCHEDULING], ids=lambda each: each.name)
def test_the_label_asks_for_a_gang_whatever_its_value(scheduler: Scheduler, value: str) -> None:
    assert offline(scheduler, fixture(make.labels({GANG_LABEL: value}))).told(scheduler) is not None


@pytest.mark.parametrize("scheduler", [YUNIKORN, COSCHEDULING], ids=lambda each: each.name)
def test_without_the_label_pods_are_scheduled_one_by_one(scheduler: Scheduler) -> None:
    found = offline(scheduler, fixture(lambda obj: obj["metadata"].pop("labels")))
    assert found.told(scheduler) is None
    assert found.objects == []
    marks = [each["metadata"].get("labels", {}) for each in found.pods.values()]
    assert not any("scheduling.x-k8s.io/pod-group" in each for each in marks)


@pytest.mark.parametrize("scheduler", ALL, ids=lambda each: each.name)
def test_a_suspended_cluster_asks_for_nothing(scheduler: Scheduler) -> None:
    told = offline(scheduler, fixture(make.suspended())).told(scheduler)
    assert told in (None, Told(0, {}))


@pytest.mark.parametrize("scheduler", ALL, ids=lambda each: each.name)
def test_a_plugin_asks_for_no_more_rights_than_its_objects_need(scheduler: Scheduler) -> None:
    rules = scheduler.manifest().get("rbac", [])
    if scheduler.resource is None:
        assert rules == []
    else:
        (rule,) = rules
        assert rule["apiGroups"] == [scheduler.resource.group]
        assert set(rule["resources"]) <= {"podgroups", "workloads"}


# --- Volcano


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("HTTPMode", Told(3, {"cpu": "768m", "memory": "768Mi"})),
        ("InteractiveMode", Told(3, {"cpu": "768m", "memory": "768Mi"})),
        ("K8sJobMode", Told(3, {"cpu": "1268m", "memory": "968Mi"})),
        ("SidecarMode", Told(3, {"cpu": "1268m", "memory": "968Mi"})),
    ],
)
def test_volcano_reserves_room_for_the_submitter(mode: str, told: Told) -> None:
    assert offline(VOLCANO, job(mode)).told(VOLCANO) == told


@pytest.mark.parametrize(
    ("marks", "topology"),
    [
        ({"mode": "soft", "highest-tier-allowed": "3"}, {"mode": "soft", "highestTierAllowed": 3}),
        ({"mode": "hard"}, {"mode": "hard"}),
        ({"highest-tier-allowed": "3"}, None),
        ({}, None),
    ],
)
def test_volcano_network_topology(marks: dict[str, str], topology: Json | None) -> None:
    given = {f"volcano.sh/network-topology-{key}": value for key, value in marks.items()}
    (group,) = offline(VOLCANO, fixture(make.labels(given))).objects
    assert group["spec"].get("networkTopology") == topology


def test_volcano_refuses_a_tier_that_is_no_number() -> None:
    marks = {
        "volcano.sh/network-topology-mode": "soft",
        "volcano.sh/network-topology-highest-tier-allowed": "x",
    }
    ((plugin, problem),) = VOLCANO.hooks().validate(fixture(make.labels(marks)))
    assert (plugin, problem.severity) == ("volcano", "error")
    assert problem.message == 'must be a whole number, not "x"'


def test_volcano_leaves_the_cluster_of_a_job_to_the_job() -> None:
    marks = {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "train"}
    found = offline(VOLCANO, fixture(make.labels(marks)))
    assert found.objects == []
    for each in found.pods.values():
        assert each["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "ray-train-pg"


def test_volcano_groups_the_cluster_of_a_service_by_itself() -> None:
    marks = {"ray.io/originated-from-crd": "RayService", "ray.io/originated-from-cr-name": "serve"}
    (group,) = offline(VOLCANO, fixture(make.labels(marks))).objects
    assert group["metadata"]["name"] == "ray-demo-pg"


def test_volcano_per_group_names_agree_between_pods_and_groups() -> None:
    found = offline(VOLCANO, fixture(make.workers(1, group="Big")), {"podGroups": "perGroup"})
    groups = {each["metadata"]["name"]: each["spec"]["minMember"] for each in found.objects}
    assert groups == {"ray-demo-headgroup-pg": 1, "ray-demo-workers-pg": 2, "ray-demo-big-pg": 1}
    names = {each["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for each in found.pods.values()}
    assert names == set(groups)


# --- YuniKorn


def test_yunikorn_lists_the_head_the_workers_and_the_submitter() -> None:
    (template,) = offline(YUNIKORN, job("K8sJobMode")).pods.values()
    listed = {group["name"]: (group["minMember"], group["minResource"]) for group in task_groups(template)}
    assert listed == {
        "headgroup": (1, SMALL),
        "workers": (2, SMALL),
        "submittergroup": (1, {"cpu": "500m", "memory": "200Mi"}),
    }
    assert template["metadata"]["annotations"]["yunikorn.apache.org/task-group-name"] == "submittergroup"


def test_yunikorn_leaves_out_groups_of_none() -> None:
    found = offline(YUNIKORN, fixture(make.autoscaling(), minReplicas=0))
    assert [group["name"] for group in task_groups(found.pods["headgroup"])] == ["headgroup"]


# --- KAI


@pytest.mark.parametrize(
    ("mode", "refused"),
    [("K8sJobMode", 1), ("HTTPMode", 0), ("SidecarMode", 0), ("InteractiveMode", 0)],
)
def test_kai_refuses_jobs_whose_submitter_comes_after_the_gang(mode: str, refused: int) -> None:
    found = KAI.hooks().validate(job(mode, make.labels({"kai.scheduler/queue": "a"})))
    assert [problem.severity for _, problem in found] == ["error"] * refused


def test_kai_copies_the_queue_and_leaves_gpu_sharing_to_the_user() -> None:
    shared = pod()
    shared["metadata"] = {"annotations": {"gpu-fraction": "0.5"}}
    found = offline(KAI, fixture(make.labels({"kai.scheduler/queue": "a"}), worker=shared))
    worker = found.pods["workers"]["metadata"]
    assert worker["labels"]["kai.scheduler/queue"] == "a"
    assert worker["annotations"]["gpu-fraction"] == "0.5"
