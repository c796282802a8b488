"""Our CRDs on a real API server: what KubeRay's users send is accepted, stored and read back unchanged."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import httpx
import pytest
import yaml

from kuberay_op.api.crds import VERSIONS, file_name, view_of
from kuberay_op.api.defaults import with_defaults
from kuberay_op.api.schema import schema_problems
from kuberay_op.api.view import Json
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.go_modules import ModuleUnavailableError, module_dir

pytestmark = pytest.mark.apiserver

MODULE: Final = "github.com/ray-project/kuberay/ray-operator"
VERSION: Final = "v1.6.2"


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """The control plane with our CRDs on it."""
    install_crds(control_plane)
    return control_plane


def collection(obj: Json, namespace: str) -> str:
    """The path to create an object at."""
    view = view_of(obj["apiVersion"], obj["kind"])
    assert view is not None
    return f"/apis/{obj['apiVersion']}/namespaces/{namespace}/{view.PLURAL}"


def create(plane: ControlPlane, obj: Json, namespace: str, query: str = "fieldValidation=Strict") -> Json:
    """Create an object, by default with strict field validation."""
    obj = copy.deepcopy(obj)
    obj["metadata"].pop("namespace", None)
    return plane.api("POST", f"{collection(obj, namespace)}?{query}", obj)


def refusal(plane: ControlPlane, obj: Json, namespace: str) -> str:
    """What the server has against creating an object; empty if nothing. Nothing is stored."""
    try:
        create(plane, obj, namespace, "fieldValidation=Strict&dryRun=All")
    except httpx.HTTPStatusError as error:
        return str(error.response.json()["message"])
    return ""


def samples() -> Iterator[tuple[str, Json]]:
    """Every object of our kinds in KubeRay's samples, with the file it is in."""
    folder = module_dir(MODULE, VERSION) / "config" / "samples"
    for path in sorted(folder.rglob("*.y*ml")):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if isinstance(document, dict) and document.get("kind") in VERSIONS:
                yield str(path.relative_to(folder)), document


@pytest.fixture(scope="module")
def found_samples() -> list[tuple[str, Json]]:
    """The samples, unless they cannot be had."""
    try:
        return list(samples())
    except ModuleUnavailableError as error:
        pytest.skip(f"the Go module of KubeRay cannot be had here: {error}")


def test_every_sample_is_accepted_and_reads_back(
    plane: ControlPlane, namespace: str, found_samples: list[tuple[str, Json]]
) -> None:
    assert len(found_samples) > 70
    for file, sample in found_samples:
        assert [str(problem) for problem in schema_problems(sample)] == [], file
        assert refusal(plane, sample, namespace) == "", file
        name = create(plane, sample, namespace)["metadata"]["name"]
        assert name.startswith(sample["metadata"].get("name") or sample["metadata"]["generateName"])
        address = f"{collection(sample, namespace)}/{name}"
        stored = plane.api("GET", address)
        wanted = with_defaults(sample)
        assert stored["spec"] == wanted["spec"], file
        for key in ("labels", "annotations"):
            assert stored["metadata"].get(key) == wanted["metadata"].get(key), file
        plane.api("DELETE", address)


def job(**fields: Any) -> Json:
    """A RayJob with fields of its spec."""
    return make.rayjob("a", make.spec(**fields))


def group(**fields: Any) -> Json:
    """A RayCluster with fields of its worker group."""
    return make.raycluster("a", make.workers(1, "g", **fields))


def ports(*entries: Json) -> Json:
    """A RayCluster with ports on its head container."""
    obj = make.raycluster("a")
    obj["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["ports"] = list(entries)
    return obj


def rules(*entries: Json) -> Json:
    """A RayJob with deletion rules."""
    return job(shutdownAfterJobFinishes=False, deletionStrategy={"deletionRules": list(entries)})


SELF: Final = {"policy": "DeleteSelf", "condition": {"jobStatus": "FAILED"}}

VERDICTS: Final[list[tuple[Json, bool]]] = [
    (make.raycluster("a", make.workers(2), make.autoscaling("v2")), True),
    (make.rayjob("a"), True),
    (make.rayservice("a"), True),
    (make.raycronjob("a"), True),
    (make.raycluster("a", make.cluster(unknown=1)), False),
    (make.raycluster("a", make.cluster(headGroupSpec=None)), False),
    (make.raycluster("a", make.cluster(managedBy="me")), False),
    (make.raycluster("a", make.cluster(managedBy="kueue.x-k8s.io/multikueue")), True),
    (make.raycluster("a", make.cluster(gcsFaultToleranceOptions={"storage": {"size": 0.5}})), False),
    (make.raycluster("a", make.cluster(gcsFaultToleranceOptions={"storage": {"size": "0.5"}})), True),
    (make.raycluster("a", make.cluster(upgradeStrategy={"type": "NewCluster"})), False),
    (make.rayservice("a", make.spec(upgradeStrategy={"type": "Anything"})), True),
    (make.raycluster("a", make.status(state=5)), True),
    (make.raycluster("a", make.status(unknown=5)), False),
    (make.raycluster("a", make.labels({"a b": "c"})), False),
    (make.raycluster("A"), False),
    (group(minReplicas=None, rayStartParams=None), True),
    (group(groupName=None), False),
    (group(replicas=3.0), True),
    (group(replicas=3.5), False),
    (group(replicas=2**31), False),
    (group(replicas="3"), False),
    (group(labels={"a": None}), True),
    (group(scaleStrategy={"workersToDelete": [None]}), False),
    (ports({"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}), True),
    (ports({"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}), False),
    (job(submissionMode="Anything"), True),
    (job(preRunningDeadlineSeconds=0), False),
    (job(deletionStrategy={}), False),
    (job(deletionStrategy={"onSuccess": {}, "onFailure": {}}), True),
    (job(deletionStrategy={"onSuccess": {}, "onFailure": None}), False),
    (rules(SELF), True),
    (rules(), False),
    (rules({"policy": "DeleteSelf", "condition": {}}), False),
    (rules({**SELF, "condition": {"jobStatus": "FAILED", "jobDeploymentStatus": "Failed"}}), False),
    (rules({**SELF, "condition": {"jobStatus": "FAILED", "ttlSeconds": -1}}), False),
    (make.raycronjob("a", make.spec(timeZone="")), False),
    (make.raycronjob("a", make.cluster(managedBy="me")), False),
]


@pytest.mark.parametrize(("obj", "good"), VERDICTS)
def test_our_schema_layer_and_the_servers_agree(
    plane: ControlPlane, namespace: str, obj: Json, good: bool
) -> None:
    answer = refusal(plane, obj, namespace)
    assert (answer == "") is good, answer
    assert (schema_problems(obj) == []) is good


def test_values_that_may_not_change(plane: ControlPlane, namespace: str) -> None:
    ours, theirs = "ray.io/kuberay-operator", "kueue.x-k8s.io/multikueue"

    def change(obj: Json, **fields: Any) -> str:
        """What the server has against a change of the cluster's spec; empty if nothing."""
        address = f"{collection(obj, namespace)}/{obj['metadata']['name']}"
        current = plane.api("GET", address)
        make.cluster(**fields)(current)
        try:
            plane.api("PUT", address, current)
        except httpx.HTTPStatusError as error:
            return str(error.response.json()["message"])
        return ""

    for maker in (make.raycluster, make.rayjob, make.rayservice, make.raycronjob):
        obj = maker("a", make.redis())
        create(plane, obj, namespace)
        assert change(obj, managedBy=ours) == ""  # adding is not blocked
        assert "cannot be changed once it is set" in change(obj, managedBy=theirs)
        assert change(obj, managedBy=None) == ""  # nor is removing
        assert change(obj, managedBy=theirs) == ""
        assert change(obj, gcsFaultToleranceOptions={"backend": "redis"}) == ""
        assert "cannot be changed once it is set" in change(
            obj, gcsFaultToleranceOptions={"backend": "rocksdb"}
        )


def test_the_deprecated_version_is_served_and_drops_newer_fields(plane: ControlPlane, namespace: str) -> None:
    obj = make.raycluster("old", make.workers(1, "g", numOfHosts=4))
    obj["apiVersion"] = "ray.io/v1alpha1"
    assert "numOfHosts" in refusal(plane, obj, namespace)
    create(plane, obj, namespace, "fieldValidation=Ignore")
    new = make.raycluster("old")
    stored = plane.api("GET", f"{collection(new, namespace)}/old")
    assert stored["spec"]["workerGroupSpecs"][0]["numOfHosts"] == 1  # the default of v1, at reading


def test_status_is_a_subresource(plane: ControlPlane, namespace: str) -> None:
    obj = make.raycluster("a", make.status(state="ready"))
    assert "status" not in create(plane, obj, namespace)
    condition = {
        "type": "HeadPodReady",
        "status": "True",
        "reason": "X",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"state": "ready", "desiredCPU": "1", "head": {}, "conditions": [condition]}
    address = f"{collection(obj, namespace)}/a"
    current = plane.api("GET", address)
    written = plane.api("PUT", f"{address}/status", {**current, "status": status, "spec": {}})
    assert written["status"] == status
    assert written["spec"] == with_defaults(obj)["spec"]
    listing = plane.kubectl("get", "rayclusters", "--namespace", namespace).splitlines()
    assert listing[0].split("  ")[0] == "NAME"
    for column in ("DESIRED WORKERS", "AVAILABLE WORKERS", "CPUS", "MEMORY", "GPUS", "STATUS", "AGE"):
        assert column in listing[0]


def test_kubectl_explain_teaches(plane: ControlPlane) -> None:
    text = plane.kubectl("explain", "raycluster.spec.workerGroupSpecs.scaleStrategy")
    assert "Which workers to remove first." in text
    assert "workersToDelete" in text


def test_objects_stored_under_kuberays_crds_live_on_under_ours(
    own_cluster: Callable[..., ControlPlane], found_samples: list[tuple[str, Json]]
) -> None:
    plane = own_cluster(only=("etcd", "kube-apiserver"))
    kinds = ("RayCluster", "RayCronJob")
    folder = module_dir(MODULE, VERSION) / "config" / "crd" / "bases"
    plane.kubectl("create", *(f"--filename={folder / file_name(kind)}" for kind in kinds))
    names = [f"crd/{VERSIONS[kind][0].PLURAL}.ray.io" for kind in kinds]
    # Before the server has looked at a CRD it has no status, and `kubectl wait` gives up on that.
    plane.kubectl("wait", "--for=jsonpath={.status.conditions}", "--timeout=60s", *names)
    plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
    chosen = {kind: next(s for _, s in found_samples if s["kind"] == kind) for kind in kinds}
    before = {kind: create(plane, sample, "default") for kind, sample in chosen.items()}
    install_crds(plane, kinds)
    for kind, sample in chosen.items():
        address = f"{collection(sample, 'default')}/{sample['metadata']['name']}"
        wanted = with_defaults(before[kind])["spec"]
        deadline = time.monotonic() + 60
        # The server goes on serving the old schema for a moment.
        while (after := plane.api("GET", address))["spec"] != wanted and time.monotonic() < deadline:
            time.sleep(0.1)
        assert after["spec"] == wanted, kind
        after["metadata"]["annotations"] = {"changed": "true"}
        assert plane.api("PUT", f"{address}?fieldValidation=Strict", after)["spec"] == wanted
