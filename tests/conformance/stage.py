"""Two namespaces, two operators, the same RayClusters in both: what each makes of them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.replicas import desired_pods
from kuberay_op.testing.controlplane import ControlPlane, namespace_name
from kuberay_op.testing.reference import our_command, running
from tests.conformance.differences import Json, key_of, stable

#: Longest wait for the operators; only a failing test waits this long.
PATIENCE: Final = 150.0

#: Where the children of a RayCluster are found.
CHILDREN: Final = (
    "/api/v1/namespaces/{}/pods",
    "/api/v1/namespaces/{}/services",
    "/api/v1/namespaces/{}/secrets",
    "/api/v1/namespaces/{}/serviceaccounts",
    "/api/v1/namespaces/{}/persistentvolumeclaims",
    "/apis/networking.k8s.io/v1/namespaces/{}/ingresses",
    "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "/apis/batch/v1/namespaces/{}/jobs",
)
CLUSTERS: Final = "/apis/ray.io/v1/namespaces/{}/rayclusters"

#: Children by their keys, and those by the name of their cluster.
Children = dict[str, dict[str, Json]]


@dataclass(frozen=True, slots=True)
class Manifest:
    """A RayCluster to compare, and where it comes from."""

    source: str
    obj: Json

    @property
    def name(self) -> str:
        """Name of the RayCluster."""
        return str(self.obj["metadata"]["name"])

    @property
    def spec(self) -> Json:
        """Spec of the RayCluster."""
        found: Json = self.obj["spec"]
        return found

    @property
    def pods(self) -> int:
        """Pods that it should have."""
        return 1 + desired_pods(RayCluster(self.obj).spec)


def own_manifests(folder: Path) -> list[Manifest]:
    """The RayClusters in the files of a folder."""
    return [
        Manifest(f"{path.stem}/{obj['metadata']['name']}", obj)
        for path in sorted(folder.glob("*.yaml"))
        for obj in _documents(path)
        if isinstance(obj, dict) and obj.get("kind") == "RayCluster"
    ]


def sample_manifests(folder: Path, *, kinds: Sequence[str] = ("RayCluster",)) -> list[Manifest]:
    """The clusters in the reference's samples of these kinds; jobs and services have one inside.

    They are made small: what is compared are Pods of each kind, not their number.
    """
    found: list[Manifest] = []
    for path in sorted(folder.rglob("*.yaml")):
        for obj in _documents(path):
            spec = _cluster_spec(obj) if isinstance(obj, dict) and obj.get("kind") in kinds else None
            if spec:
                words = re.sub(r"[^a-z0-9]+", "-", path.stem)[:40].strip("-")
                name = f"s{len(found)}-{words}"
                found.append(Manifest(f"sample/{path.stem}", _small(obj, name, spec)))
    return found


def _documents(path: Path) -> Iterator[Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C where there is one: samples are long
    return iter(yaml.load_all(path.read_text(encoding="utf-8"), Loader=loader))


def _cluster_spec(obj: Json) -> Json | None:
    spec = obj.get("spec") or {}
    match obj.get("kind"):
        case "RayCluster":
            return dict(spec)
        case "RayJob":
            return spec.get("rayClusterSpec")
        case "RayService":
            return spec.get("rayClusterConfig")
        case "RayCronJob":
            return (spec.get("jobTemplate") or {}).get("rayClusterSpec")
    return None


def _small(obj: Json, name: str, spec: Json) -> Json:
    kind = obj["kind"]
    meta = obj["metadata"]
    made_for = {} if kind == "RayCluster" else {"ray.io/originated-from-crd": kind}
    groups = []
    for group in [spec["headGroupSpec"], *(spec.get("workerGroupSpecs") or ())]:
        pod = group["template"]["spec"]
        if "$" in pod.get("serviceAccountName", ""):
            pod["serviceAccountName"] = "filled-in-by-the-user"
    service = spec["headGroupSpec"].get("headService", {}).get("metadata", {})
    if "name" in service:
        service["name"] += f"-{name.partition('-')[0]}"  # some samples have the same
    for group in spec.get("workerGroupSpecs") or ():
        few = {key: min(group[key], 1) for key in ("replicas", "minReplicas") if key in group}
        groups.append({**group, **few, "numOfHosts": min(group.get("numOfHosts", 1), 2)})
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {
            "name": name,
            "labels": {**(meta.get("labels") or {}), **made_for},
            "annotations": meta.get("annotations") or {},
        },
        "spec": {**spec, "suspend": False, "workerGroupSpecs": groups},
    }


@dataclass(frozen=True, slots=True)
class Side:
    """One operator and its namespace."""

    plane: ControlPlane
    namespace: str

    def create(self, manifests: Sequence[Manifest]) -> None:
        """Make the RayClusters, and the accounts that their Pods name."""
        for account in sorted({name for each in manifests for name in _accounts(each.spec)}):
            self.make_account(account)
        for each in manifests:
            self.plane.api("POST", CLUSTERS.format(self.namespace), each.obj)

    def make_account(self, name: str) -> None:
        """Make a service account."""
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        self.plane.api("POST", f"/api/v1/namespaces/{self.namespace}/serviceaccounts", body)

    def clusters(self) -> dict[str, Json]:
        """The RayClusters by name."""
        items = self.plane.api("GET", CLUSTERS.format(self.namespace))["items"]
        return {obj["metadata"]["name"]: obj for obj in items}

    def pods(self) -> dict[str, int]:
        """How many Pods each cluster has."""
        counts: dict[str, int] = {}
        for pod in self.plane.api("GET", CHILDREN[0].format(self.namespace))["items"]:
            owner = _owner(pod)
            if owner:
                counts[owner] = counts.get(owner, 0) + 1
        return counts

    def children(self) -> Children:
        """What the operator has made for each cluster, without what chance decides."""
        clusters = self.clusters()
        found: Children = {name: {} for name in clusters}
        for path in CHILDREN:
            listed = self.plane.api("GET", path.format(self.namespace))
            kind = {"apiVersion": listed["apiVersion"], "kind": listed["kind"].removesuffix("List")}
            for obj in listed["items"]:
                owner = _owner(obj)
                if owner in found:
                    found[owner][key_of(kind | obj)] = self._stable(kind | obj, clusters[owner])
        return found

    def _stable(self, obj: Json, cluster: Json) -> Json:
        return stable(obj, namespace=self.namespace, uid=cluster["metadata"]["uid"])

    def release(self) -> None:
        """Let everything go: nobody is left who would care for finalizers."""
        for name in self.clusters():
            path = f"{CLUSTERS.format(self.namespace)}/{name}"
            obj = self.plane.api("GET", path)
            if obj["metadata"].pop("finalizers", None):
                self.plane.api("PUT", path, obj)
        self.plane.delete_namespace(self.namespace)


@dataclass(frozen=True, slots=True)
class Stage:
    """The reference on the one side, ours on the other, each with the same configuration."""

    theirs: Side
    ours: Side


@contextmanager
def stage(
    plane: ControlPlane,
    reference: Path,
    folder: Path,
    *,
    configuration: Mapping[str, Any],
    environment: Mapping[str, str],
) -> Iterator[Stage]:
    """Run both operators, each in a namespace of its own, while the block lasts."""
    base = namespace_name("differential")
    theirs, ours = Side(plane, f"{base}-a"), Side(plane, f"{base}-b")
    folder.mkdir()
    with ExitStack() as stack:
        for side, command in ((theirs, [str(reference)]), (ours, our_command())):
            plane.create_namespace(side.namespace)
            stack.callback(side.release)
            file = folder / f"{side.namespace}.yaml"
            settings = {**configuration, "watchNamespace": side.namespace}
            file.write_text(yaml.safe_dump(settings))
            stack.enter_context(
                running(
                    [*command, f"--config={file}"],
                    {**environment, "KUBECONFIG": str(plane.kubeconfig)},
                    folder / f"{side.namespace}.log",
                )
            )
        yield Stage(theirs, ours)


def wait_for(
    side: Side, wanted: Mapping[str, int], log: Path, count: Callable[[], Mapping[str, int]] | None = None
) -> None:
    """Wait until every cluster has at least so many Pods, or of what else is to ``count``."""
    deadline = time.monotonic() + PATIENCE
    while True:
        counts = count() if count else side.pods()
        missing = {name: wish for name, wish in wanted.items() if counts.get(name, 0) < wish}
        if not missing:
            return
        if time.monotonic() > deadline:
            lines = [line for line in log.read_text(errors="replace").splitlines() if '"error"' in line]
            last = "\n".join(lines[-10:])
            raise AssertionError(
                f"after {PATIENCE:.0f} s these clusters have too little: {missing}; the log says:\n{last}"
            )
        time.sleep(0.5)


def _accounts(spec: Json) -> set[str]:
    groups = [spec["headGroupSpec"], *(spec.get("workerGroupSpecs") or ())]
    named = {group["template"]["spec"].get("serviceAccountName") for group in groups}
    return {name for name in named if name and name != "default"}


def _owner(obj: Json) -> str | None:
    """The RayCluster that controls an object."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller") and reference["kind"] == "RayCluster":
            return str(reference["name"])
    return None
