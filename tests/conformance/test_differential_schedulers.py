"""The reference and ours with the same batch scheduler, on the same objects: PodGroups and Pods are the same.

No scheduler runs, so nothing gets a node: what is compared is what a scheduler would get to see.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.replicas import desired_pods
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane, namespace_name
from kuberay_op.testing.crds import install, install_crds
from kuberay_op.testing.go_modules import ModuleUnavailableError
from kuberay_op.testing.reference import BUILD_SECONDS, our_command, reference_program, running
from tests.conformance.differences import Json, compare, key_of, load, stable, unexplained
from tests.schedulers.kit import CRDS, GANG_LABEL

HERE: Final = Path(__file__).parent
#: What is meant to differ in Pods with any scheduler, and with these.
PODS_ALLOWED: Final = HERE / "allowed-differences.yaml"
ALLOWED: Final = HERE / "allowed-differences-schedulers.yaml"

PATIENCE: Final = 150.0

#: Where the PodGroups of a scheduler are, and their CRD.
GROUPS: Final = {
    "volcano": ("/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups", "volcano-podgroups.yaml"),
    "scheduler-plugins": (
        "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{}/podgroups",
        "scheduler-plugins-podgroups.yaml",
    ),
}
PODS: Final = "/api/v1/namespaces/{}/pods"
CLUSTERS: Final = "/apis/ray.io/v1/namespaces/{}/rayclusters"
OWNERS: Final = {"RayCluster": CLUSTERS, "RayJob": "/apis/ray.io/v1/namespaces/{}/rayjobs"}

TASK_GROUPS: Final = "yunikorn.apache.org/task-groups"


def objects(scheduler: str) -> Iterator[Json]:
    """What each scheduler is compared on."""
    gang = make.labels({GANG_LABEL: "true"})
    even: dict[str, Any] = {"minReplicas": 2, "maxReplicas": 4}
    yield make.raycluster("plain", make.workers(2, **even))
    yield make.raycluster("gang", gang, make.workers(2, **even))
    yield make.raycluster("hosts", gang, make.workers(2, numOfHosts=2, **even))
    yield make.raycluster("scales", gang, make.autoscaling(), make.workers(2, minReplicas=1))
    paused = make.workers(1, group="paused", suspend=True, minReplicas=1)
    yield make.raycluster(
        "two", gang, make.workers(2, **even), make.workers(1, group="b", minReplicas=1), paused
    )
    template = make.pod_template("ray-worker", schedulerName="mine", nodeSelector={"pool": "a"})
    template["metadata"] = {"labels": {"queue": "mine"}, "annotations": {"gpu-fraction": "0.5"}}
    yield make.raycluster("template", gang, make.workers(1, minReplicas=1, template=template))
    match scheduler:
        case "volcano":
            marks = {
                "volcano.sh/queue-name": "team-a",
                "ray.io/priority-class-name": "high",
                "volcano.sh/network-topology-mode": "soft",
                "volcano.sh/network-topology-highest-tier-allowed": "3",
            }
            yield make.raycluster("marked", make.labels(marks), make.annotations(note="mine"))
            for mode in ("K8sJobMode", "HTTPMode", "SidecarMode"):
                name = mode.removesuffix("Mode").lower()
                mine = make.spec(submissionMode=mode, jobId="mine")  # else chance chooses it
                yield make.rayjob(name, make.labels(marks), make.workers(1), mine)
        case "yunikorn":
            marks = {"yunikorn.apache.org/app-id": "app", "yunikorn.apache.org/queue": "root.a"}
            yield make.raycluster("marked", gang, make.labels(marks))
            own = make.annotations({TASK_GROUPS: '[{"name":"mine"}]'})
            yield make.raycluster("own", gang, own, make.workers(1, minReplicas=1))
            for mode in ("K8sJobMode", "HTTPMode"):
                name = mode.removesuffix("Mode").lower()
                worker = make.workers(1, minReplicas=1)
                yield make.rayjob(name, gang, make.labels(marks), worker, make.spec(submissionMode=mode))
        case "kai-scheduler":
            queue = make.labels({"kai.scheduler/queue": "a"})
            yield make.raycluster("marked", queue, make.workers(1))
            yield make.rayjob("http", queue, make.workers(1), make.spec(submissionMode="HTTPMode"))


@pytest.mark.apiserver
@pytest.mark.timeout(BUILD_SECONDS + 600)
@pytest.mark.parametrize("scheduler", ["volcano", "yunikorn", "kai-scheduler", "scheduler-plugins"])
def test_what_schedulers_see_is_the_same(kwok_cluster: ControlPlane, tmp_path: Path, scheduler: str) -> None:
    try:
        reference = reference_program()
    except ModuleUnavailableError as error:
        pytest.skip(f"the reference operator cannot be had here: {error}")
    if not CRDS.is_dir():
        pytest.skip("the schedulers' CRDs are not beside this checkout (shared/crds)")
    install_crds(kwok_cluster)
    install(kwok_cluster, [yaml.safe_load((CRDS / file).read_text()) for _, file in GROUPS.values()])
    wanted = list(objects(scheduler))
    base = namespace_name("differential")
    results = []
    with ExitStack() as stack:
        sides = {f"{base}-a": [str(reference)], f"{base}-b": our_command()}
        for namespace, command in sides.items():
            kwok_cluster.create_namespace(namespace)
            stack.callback(_release, kwok_cluster, namespace)
            arguments = (
                f"--watch-namespace={namespace}",
                f"--batch-scheduler={scheduler}",
                "--enable-leader-election=false",
                "--metrics-addr=0",
                "--health-probe-bind-address=0",
                "--reconcile-concurrency=4",
            )
            environment = {"KUBECONFIG": str(kwok_cluster.kubeconfig)}
            log = tmp_path / f"{namespace}.log"
            stack.enter_context(running([*command, *arguments], environment, log))
            for obj in wanted:
                body = {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}
                kwok_cluster.api("POST", OWNERS[obj["kind"]].format(namespace), body)
        for namespace in sides:
            _wait(kwok_cluster, namespace, wanted, tmp_path / f"{namespace}.log")
        results = [_seen(kwok_cluster, namespace, scheduler) for namespace in sides]
    theirs, ours = results
    assert {name.split()[0] for found in theirs.values() for name in found} >= {"Pod"}
    differences = [
        each
        for obj in wanted
        for each in compare(f"{scheduler}/{obj['metadata']['name']}", *_both(theirs, ours, obj))
    ]
    allowed = load(ALLOWED)
    left = unexplained(unexplained(differences, load(PODS_ALLOWED)), allowed)
    assert not left, f"{len(left)} differences are not in {ALLOWED.name}:\n" + "\n".join(map(str, left))
    mine = [entry for entry in allowed if entry.manifests.startswith(scheduler)]
    assert [f"{entry.obj}: {entry.path}" for entry in mine if not entry.used] == []


def _both(theirs: dict[str, Json], ours: dict[str, Json], obj: Json) -> Sequence[Json]:
    name = obj["metadata"]["name"]
    return theirs.get(name, {}), ours.get(name, {})


def _pods(obj: Json) -> int:
    spec = obj["spec"] if obj["kind"] == "RayCluster" else obj["spec"]["rayClusterSpec"]
    return 1 + desired_pods(RayCluster({"spec": spec}).spec)


def _wait(plane: ControlPlane, namespace: str, wanted: Sequence[Json], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    expected = sum(map(_pods, wanted))
    while (count := len(plane.api("GET", PODS.format(namespace))["items"])) < expected:
        if time.monotonic() > deadline:
            lines = [line for line in log.read_text(errors="replace").splitlines() if '"error"' in line]
            last = "\n".join(lines[-10:])
            raise AssertionError(f"after {PATIENCE:.0f} s there are {count} of {expected} Pods:\n{last}")
        time.sleep(0.5)


def _seen(plane: ControlPlane, namespace: str, scheduler: str) -> dict[str, Json]:
    """Pods, PodGroups and the RayClusters of jobs by the object that they were made for, without chance."""
    clusters = plane.api("GET", CLUSTERS.format(namespace))["items"]
    jobs = {
        each["metadata"]["name"]: each["metadata"]["labels"]["ray.io/originated-from-cr-name"]
        for each in clusters
        if "ray.io/originated-from-cr-name" in (each["metadata"].get("labels") or {})
    }
    paths = [PODS, *([GROUPS[scheduler][0]] if scheduler in GROUPS else [])]
    found: dict[str, Json] = {}
    listed: list[Json] = [{"kind": "RayCluster", "metadata": _marks(each)} for each in clusters if _job(each)]
    for path in paths:
        answer = plane.api("GET", path.format(namespace))
        listed += [{"kind": answer["kind"].removesuffix("List"), **each} for each in answer["items"]]
    for obj in listed:
        owners = obj["metadata"].get("ownerReferences") or ()
        name = next((each["name"] for each in owners if each["kind"] in OWNERS), None)
        if name is None:
            continue
        uid = next(each["uid"] for each in owners if each["name"] == name)
        text = json.dumps(obj)
        for cluster, job in jobs.items():
            text = text.replace(cluster, f"{job}-RANDOM")
        plain = stable(json.loads(text), namespace=namespace, uid=uid)
        notes = plain["metadata"].get("annotations") or {}
        if TASK_GROUPS in notes:
            notes[TASK_GROUPS] = json.loads(notes[TASK_GROUPS])  # compared as what it says
        found.setdefault(jobs.get(name, name), {})[key_of(json.loads(text))] = plain
    return found


def _job(cluster: Json) -> bool:
    return "ray.io/originated-from-cr-name" in (cluster["metadata"].get("labels") or {})


def _marks(obj: Json) -> Json:
    kept: tuple[str, ...] = ("name", "labels", "annotations", "ownerReferences")
    marks: dict[str, Any] = {key: obj["metadata"][key] for key in kept if key in obj["metadata"]}
    return marks


def _release(plane: ControlPlane, namespace: str) -> None:
    for path in OWNERS.values():
        for obj in plane.api("GET", path.format(namespace))["items"]:
            if obj["metadata"].pop("finalizers", None):
                plane.api("PUT", f"{path.format(namespace)}/{obj['metadata']['name']}", obj)
    plane.delete_namespace(namespace)
