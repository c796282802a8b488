"""What the reference makes of a RayJob and what ours does: RayCluster, submitter, Service, field by field.

Nobody answers as Ray here, and none is needed: all three are made before anybody asks it.
"""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane, namespace_name
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.go_modules import ModuleUnavailableError
from kuberay_op.testing.reference import BUILD_SECONDS, our_command, reference_program, running, samples
from tests.conformance.differences import Difference, compare, load, stable, unexplained

Json = dict[str, Any]

HERE: Final = Path(__file__).parent
ALLOWED: Final = HERE / "allowed-differences-rayjob.yaml"
RAY_JOBS: Final = "/apis/ray.io/v1/namespaces/{}/rayjobs"
CHILDREN: Final = (
    "/apis/ray.io/v1/namespaces/{}/rayclusters",
    "/apis/batch/v1/namespaces/{}/jobs",
    "/api/v1/namespaces/{}/services",
)
PATIENCE: Final = 150.0

#: What the Job controller of Kubernetes adds.
_COUNTED: Final = re.compile(r"(batch\.kubernetes\.io/)?(controller-uid|job-name)")

RUNTIME_ENV: Final = """\
pip: [a==1, 'b']
env_vars: {D: 2026-01-31, T: 12:30, Y: 'yes', Q: "a\\"b\\\\c", W: <&>, N: 1.0, E: ""}
"""

TEMPLATE: Final[Json] = {
    "metadata": {"labels": {"team": "x"}, "annotations": {"a": "b"}},
    "spec": {"restartPolicy": "OnFailure", "containers": [{"name": "mine", "image": "mine:1"}]},
}


def rayjobs() -> Iterator[Json]:
    """RayJobs with all that decides what is made of them."""
    yield make.rayjob("plain", make.workers(1))
    yield make.rayjob(
        "options",
        make.labels(team="x"),
        make.annotations(note="y"),
        make.spec(
            entrypoint="  python -c \"print('$HOME')\" && echo 'x'  ",
            runtimeEnvYAML=RUNTIME_ENV,
            metadata={"z": "1", "a": "é"},
            entrypointNumCpus=1,
            entrypointNumGpus=0.25,
            entrypointResources='{"x": 1}',
            jobId="mine",
            submitterConfig={"backoffLimit": 5},
        ),
    )
    yield make.rayjob("template", make.spec(submitterPodTemplate=TEMPLATE))
    own = copy.deepcopy(TEMPLATE)
    own["spec"]["containers"][0] |= {"command": ["sh", "-c"], "args": ["echo $RAY_DASHBOARD_ADDRESS"]}
    own["spec"]["containers"].append(
        {"name": "second", "image": "second:1", "env": [{"name": "A", "value": "b"}]}
    )
    yield make.rayjob("own-command", make.spec(submitterPodTemplate=own))
    yield make.rayjob("http", make.spec(submissionMode="HTTPMode"))
    yield make.rayjob("interactive", make.spec(submissionMode="InteractiveMode"))
    yield make.rayjob("sidecar", make.spec(submissionMode="SidecarMode", metadata={"a": "b"}))
    ports = make.pod_template("ray-head")
    ports["spec"]["containers"][0]["ports"] = [
        {"name": "dashboard", "containerPort": 9000},
        {"name": "gcs-server", "containerPort": 6379},
    ]
    yield make.rayjob("ports", make.head(template=ports))
    yield make.rayjob("ports-sidecar", make.head(template=ports), make.spec(submissionMode="SidecarMode"))
    yield make.rayjob("token", make.cluster(authOptions={"mode": "token"}))
    yield make.rayjob(
        "service", make.head(serviceType="NodePort"), make.cluster(headServiceAnnotations={"a": "b"})
    )
    yield make.rayjob("a" * 47)


def sample_jobs() -> Iterator[Json]:
    """The reference's own samples, made small."""
    for path in sorted(samples().glob("ray-job*.yaml")):
        for obj in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if isinstance(obj, dict) and obj.get("kind") == "RayJob" and "rayClusterSpec" in obj["spec"]:
                words = re.sub(r"[^a-z0-9]+", "-", path.stem)[:40].strip("-")
                spec = {**obj["spec"], "suspend": False}
                spec.pop("deletionStrategy", None)
                make_small(spec["rayClusterSpec"])
                meta = {
                    key: obj["metadata"][key] for key in ("labels", "annotations") if key in obj["metadata"]
                }
                yield {**obj, "apiVersion": "ray.io/v1", "metadata": {**meta, "name": words}, "spec": spec}


def make_small(cluster: Json) -> None:
    """Let a cluster run on any node, with few workers."""
    workers = cluster.get("workerGroupSpecs") or []
    for group in workers:
        group |= {key: min(group[key], 1) for key in ("replicas", "minReplicas") if key in group}
        group["numOfHosts"] = min(group.get("numOfHosts", 1), 2)
    for group in [cluster["headGroupSpec"], *workers]:
        pod = group["template"]["spec"]
        for field in ("serviceAccountName", "nodeSelector", "volumes"):
            pod.pop(field, None)
        for container in [*pod["containers"], *(pod.get("initContainers") or ())]:
            container.pop("resources", None)
            container.pop("volumeMounts", None)


@pytest.mark.apiserver
@pytest.mark.timeout(BUILD_SECONDS + 600)
@pytest.mark.parametrize("which", ["own", pytest.param("samples", marks=pytest.mark.slow)])
def test_children_are_the_same(kwok_cluster: ControlPlane, tmp_path: Path, which: str) -> None:
    try:
        reference = reference_program()
    except ModuleUnavailableError as error:
        pytest.skip(f"the reference operator cannot be had here: {error}")
    install_crds(kwok_cluster)
    jobs = list(rayjobs() if which == "own" else sample_jobs())
    base = namespace_name("differential")
    sides = {f"{base}-a": [str(reference)], f"{base}-b": our_command()}
    results = []
    with ExitStack() as stack:
        for namespace, command in sides.items():
            kwok_cluster.create_namespace(namespace)
            stack.callback(release, kwok_cluster, namespace)
            arguments = (
                f"--watch-namespace={namespace}",
                "--enable-leader-election=false",
                "--metrics-addr=0",
                "--health-probe-bind-address=0",
                "--reconcile-concurrency=4",
            )
            environment = {"KUBECONFIG": str(kwok_cluster.kubeconfig)}
            stack.enter_context(running([*command, *arguments], environment, tmp_path / f"{namespace}.log"))
            for job in jobs:
                spec = {**job["spec"], "shutdownAfterJobFinishes": False, "ttlSecondsAfterFinished": 0}
                meta = {key: value for key, value in job["metadata"].items() if key != "namespace"}
                kwok_cluster.api("POST", RAY_JOBS.format(namespace), {**job, "metadata": meta, "spec": spec})
        for namespace in sides:
            results.append(children(kwok_cluster, namespace, jobs))
    theirs, ours = results
    differences = [each for name in theirs for each in compare(name, theirs[name], ours[name])]
    explain(differences, complete=which == "own")


def explain(differences: list[Difference], *, complete: bool) -> None:
    """Fail unless each difference is meant; and, if all were looked for, each that is meant is there."""
    allowed = load(ALLOWED)
    left = unexplained(differences, allowed)
    assert not left, f"{len(left)} differences are not in {ALLOWED.name}:\n" + "\n".join(map(str, left))
    unused = [f"{entry.obj}: {entry.path}" for entry in allowed if not entry.used]
    assert not complete or unused == [], f"these entries of {ALLOWED.name} are not true any more"


def children(plane: ControlPlane, namespace: str, jobs: list[Json]) -> dict[str, dict[str, Json]]:
    """What was made for each RayJob, once all is there that should be."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found, missing = look(plane, namespace, jobs)
        if not missing:
            return found
        if time.monotonic() > deadline:
            states = {
                job["metadata"]["name"]: (job.get("status") or {}).get("jobDeploymentStatus")
                for job in plane.api("GET", RAY_JOBS.format(namespace))["items"]
            }
            raise AssertionError(f"{namespace}: not there after {PATIENCE:.0f} s: {missing}; states {states}")
        time.sleep(0.5)


def look(
    plane: ControlPlane, namespace: str, jobs: list[Json]
) -> tuple[dict[str, dict[str, Json]], list[str]]:
    """What there is, and what is missing."""
    owners = {job["metadata"]["name"]: job for job in plane.api("GET", RAY_JOBS.format(namespace))["items"]}
    found: dict[str, dict[str, Json]] = {name: {} for name in owners}
    for path in CHILDREN:
        listed = plane.api("GET", path.format(namespace))
        kind = listed["kind"].removesuffix("List")
        for obj in listed["items"]:
            owner = controller(obj)
            if owner in found:
                found[owner][kind] = timeless({"kind": kind, **obj}, owners[owner], namespace)
    missing = [
        f"{kind} of {job['metadata']['name']}"
        for job in jobs
        for kind in wanted(job)
        if kind not in found.get(job["metadata"]["name"], {})
    ]
    for name, job in owners.items():
        if not (job.get("status") or {}).get("dashboardURL"):
            missing.append(f"the address of {name}")
    return found, missing


def wanted(job: Json) -> list[str]:
    """The kinds of children that a RayJob should have."""
    mode = job["spec"].get("submissionMode", "K8sJobMode")
    return [
        "RayCluster",
        *(["Job"] if mode == "K8sJobMode" else []),
        *(["Service"] if mode != "InteractiveMode" else []),
    ]


def controller(obj: Json) -> str | None:
    """The RayJob that controls an object."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller") and reference["kind"] == "RayJob":
            return str(reference["name"])
    return None


def timeless(obj: Json, job: Json, namespace: str) -> Json:
    """The object without what chance, time, place and the Job controller decide."""
    status, uid = job.get("status") or {}, job["metadata"]["uid"]
    text = json.dumps(stable(obj, namespace=namespace, uid=uid))
    address = str(status.get("dashboardURL") or "").replace(namespace, "NAMESPACE")
    chosen = (
        (address, "ADDRESS"),
        (status.get("jobId"), "JOB-ID"),
        (status.get("rayClusterName"), "CLUSTER"),
    )
    for name, word in chosen:
        text = text.replace(name, word) if name else text
    result: Json = json.loads(text)
    if obj["kind"] == "RayCluster":
        result = without_nothing(result)
        result["dashboard"] = address.replace(status.get("rayClusterName") or "\0", "CLUSTER")
    if obj["kind"] == "Job":
        result["spec"].pop("selector", None)
        labels = result["spec"]["template"]["metadata"]["labels"]
        for place in (labels, result["metadata"].get("labels") or {}):
            for key in [key for key in place if _COUNTED.fullmatch(key)]:
                del place[key]
    return result


def without_nothing(value: Any) -> Any:
    """The value without empty objects, which Go writes where the user wrote nothing."""
    if isinstance(value, dict):
        inside = {key: without_nothing(item) for key, item in value.items()}
        return {key: item for key, item in inside.items() if item != {}}
    return [without_nothing(item) for item in value] if isinstance(value, list) else value


def release(plane: ControlPlane, namespace: str) -> None:
    """Let everything go: nobody is left who would care for finalizers."""
    for path in (RAY_JOBS, CHILDREN[0]):
        for obj in plane.api("GET", path.format(namespace))["items"]:
            if obj["metadata"].pop("finalizers", None):
                plane.api("PUT", f"{path.format(namespace)}/{obj['metadata']['name']}", obj)
    plane.delete_namespace(namespace)
