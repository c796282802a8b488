"""Clusters of the reference are taken over by ours and handed back, and no Pod notices.

The reference makes clusters of many shapes and ends; ours begins where it stopped, and later the other way
round. Whoever is in charge looks at every cluster and changes none of its Pods; then it proves that it is in
charge by scaling one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kuberay_op.api import annotations as notes
from kuberay_op.api import labels
from kuberay_op.build.metadata import OPERATOR_VERSION
from kuberay_op.kube.client import Client
from kuberay_op.kube.resource import PODS
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane, namespace_name
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.go_modules import ModuleUnavailableError
from kuberay_op.testing.reference import BUILD_SECONDS, VERSION, our_command, reference_program, running
from tests.conformance.stage import CHILDREN, CLUSTERS, Manifest, Side, own_manifests

pytestmark = pytest.mark.apiserver

PATIENCE: Final = 120.0
RECREATE: Final = {"upgradeStrategy": {"type": "Recreate"}}

Json = dict[str, Any]

#: One of each shape that makes a difference to who takes care of Pods.
SHAPES: Final[dict[str, list[make.Part]]] = {
    "plain": [make.workers(2)],
    "head-only": [],
    "groups": [make.workers(1), make.workers(2, group="gpu"), make.workers(0, group="none")],
    "group-suspended": [make.workers(1), make.workers(2, group="off", suspend=True)],
    "autoscaling": [make.workers(2), make.autoscaling()],
    "autoscaling-v2": [make.workers(1), make.autoscaling("v2")],
    "surplus": [make.workers(2, minReplicas=0), make.autoscaling()],
    "hosts": [make.workers(2, numOfHosts=2)],
    "redis": [make.workers(1), make.redis()],
    "redis-by-annotation": [make.workers(1), make.annotations({"ray.io/ft-enabled": "true"})],
    "suspended": [make.workers(2), make.suspended()],
    "recreate": [make.workers(1), make.spec(**RECREATE)],
    "recreate-hosts": [make.workers(1, numOfHosts=2), make.spec(**RECREATE)],
    "token": [make.workers(1), make.spec(rayVersion="2.55.0", authOptions={"mode": "token"})],
    "ingress": [make.head(enableIngress=True)],
    "serve": [make.workers(1), make.annotations({"ray.io/enable-serve-service": "true"})],
    "never": [make.workers(1, template=make.pod_template("ray-worker", restartPolicy="Never"))],
}


@pytest.fixture(scope="module")
def reference() -> Path:
    """The reference operator."""
    try:
        return reference_program()
    except ModuleUnavailableError as error:
        pytest.skip(f"the reference operator cannot be had here: {error}")


@pytest.fixture
def side(kwok_cluster: ControlPlane) -> Iterator[Side]:
    """A namespace for whoever is in charge."""
    install_crds(kwok_cluster)
    here = Side(kwok_cluster, namespace_name("adoption"))
    kwok_cluster.create_namespace(here.namespace)
    yield here
    here.release()


def manifests_of_shapes(namespace: str) -> list[Manifest]:
    parts = SHAPES.items()
    return [
        Manifest(name, make.raycluster(name, make.namespace(namespace), *changes)) for name, changes in parts
    ]


@pytest.mark.timeout(BUILD_SECONDS + 600)
def test_clusters_change_hands_and_no_pod_notices(side: Side, reference: Path, tmp_path: Path) -> None:
    change_hands(side, reference, tmp_path, manifests_of_shapes(side.namespace), "plain")


@pytest.mark.slow
@pytest.mark.timeout(BUILD_SECONDS + 600)
def test_all_other_clusters_change_hands_too(side: Side, reference: Path, tmp_path: Path) -> None:
    manifests = own_manifests(Path(__file__).parent / "manifests")
    change_hands(side, reference, tmp_path, manifests, "ft-by-options")


def change_hands(side: Side, reference: Path, folder: Path, manifests: list[Manifest], scaled: str) -> None:
    """From the reference to ours, and back; each time the one called ``scaled`` grows by a worker."""
    configuration = {
        "apiVersion": "config.ray.io/v1alpha1",
        "kind": "Configuration",
        "metricsAddr": "0",
        "probeAddr": "0",
        "enableLeaderElection": False,
        "reconcileConcurrency": 4,
        "watchNamespace": side.namespace,
    }
    file = folder / "configuration.yaml"
    file.write_text(yaml.safe_dump(configuration))
    environment = {"KUBECONFIG": str(side.plane.kubeconfig)}

    def in_charge(who: list[str], log: str) -> AbstractContextManager[None]:
        return running([*who, f"--config={file}"], environment, folder / log)

    with in_charge([str(reference)], "reference.log"):
        side.create(manifests)
        until(lambda: incomplete(side, manifests))
        autoscaler_asks_for_less(side)
    before = pods(side)
    version = side.plane.api("GET", CHILDREN[0].format(side.namespace))["metadata"]["resourceVersion"]

    with in_charge(our_command(), "ours.log"):
        until(lambda: [name for name, cluster in side.clusters().items() if not ours_has_seen(cluster)])
        until(lambda: stamped_by_others(side, OPERATOR_VERSION))
        assert pods(side) == before
        assert made_or_gone(side, version) == []
        before |= grow(side, scaled, before)
    version = side.plane.api("GET", CHILDREN[0].format(side.namespace))["metadata"]["resourceVersion"]

    with in_charge([str(reference)], "reference-again.log"):
        until(lambda: stamped_by_others(side, VERSION))
        newcomer(side)  # its turn comes after that of the others
        until(lambda: [] if side.pods().get("newcomer") == 1 else ["newcomer"])
        left = {name: uid for name, uid in pods(side).items() if not name.startswith("newcomer")}
        assert left == before
        changed = [name for name in made_or_gone(side, version) if not name.startswith("newcomer")]
        assert changed == []
        grow(side, scaled, before)


# --- doing


def autoscaler_asks_for_less(side: Side) -> None:
    """One cluster has more workers than it wants, as happens before the autoscaler has named who goes."""
    if "surplus" in side.clusters():
        patch(side, "surplus", [{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 1}])


def newcomer(side: Side) -> None:
    made = make.raycluster("newcomer", make.namespace(side.namespace))
    side.plane.api("POST", CLUSTERS.format(side.namespace), made)


def grow(side: Side, name: str, before: dict[str, str]) -> dict[str, str]:
    """Give a cluster one more worker; gives the new Pod, which is the only one."""
    group = side.clusters()[name]["spec"]["workerGroupSpecs"][0]
    more = {"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": group["replicas"] + 1}
    patch(side, name, [more])

    def new() -> dict[str, str]:
        found = {pod: uid for pod, uid in pods(side).items() if pod not in before}
        return {pod: uid for pod, uid in found.items() if not pod.startswith("newcomer")}

    until(lambda: [] if new() else [name])
    (only,) = new()
    assert only.startswith(f"{name}-")
    assert before.items() <= pods(side).items()
    return new()


def patch(side: Side, name: str, operations: list[Json]) -> None:
    body = yaml.safe_dump(operations, default_flow_style=True)
    side.plane.kubectl("patch", "raycluster", name, "-n", side.namespace, "--type=json", "-p", body)


# --- looking


def until(still_missing: Callable[[], list[str]]) -> None:
    """Wait until nothing is missing any more."""
    deadline = time.monotonic() + PATIENCE
    while missing := still_missing():
        assert time.monotonic() < deadline, f"after {PATIENCE:.0f} s still not as it should be: {missing}"
        time.sleep(0.3)


def incomplete(side: Side, manifests: list[Manifest]) -> list[str]:
    """The clusters that lack Pods and are not suspended."""
    counts, clusters = side.pods(), side.clusters()
    return [
        each.name
        for each in manifests
        if counts.get(each.name, 0) < each.pods
        and clusters[each.name].get("status", {}).get("state") != "suspended"
    ]


def ours_has_seen(cluster: Json) -> bool:
    """Whether ours has written about the cluster as it is now: only ours has the condition Ready."""
    status = cluster.get("status", {})
    return any(each["type"] == "Ready" for each in status.get("conditions", ())) and (
        status.get("observedGeneration") == cluster["metadata"]["generation"]
    )


def stamped_by_others(side: Side, version: str) -> list[str]:
    """Heads of clusters that are recreated on change, if their hash is not from this version."""
    clusters = side.clusters()
    found = []
    for pod in side.plane.api("GET", CHILDREN[0].format(side.namespace))["items"]:
        marks = pod["metadata"]["labels"]
        strategy = clusters[marks[labels.CLUSTER]]["spec"].get("upgradeStrategy", {}).get("type")
        if strategy == "Recreate" and marks[labels.NODE_TYPE] == labels.HEAD:
            written = pod["metadata"]["annotations"][notes.KUBERAY_VERSION]
            if written.lstrip("v") != version.lstrip("v"):
                found.append(pod["metadata"]["name"])
    return found


def pods(side: Side) -> dict[str, str]:
    """The UIDs of all Pods by name."""
    found = side.plane.api("GET", CHILDREN[0].format(side.namespace))["items"]
    going = [pod["metadata"]["name"] for pod in found if "deletionTimestamp" in pod["metadata"]]
    assert going == [], "nothing is on its way out"
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in found}


def made_or_gone(side: Side, version: str) -> list[str]:
    """The Pods that came or went since a version, even if nothing is to be seen of that now."""

    async def replay() -> list[str]:
        found = []
        async with await Client.connect(side.plane.kubeconfig) as client:
            events = client.watch(PODS, side.namespace, resource_version=version, server_timeout=1)
            async for event in events:
                if event.type in ("ADDED", "DELETED"):
                    found.append(event.object["metadata"]["name"])
        return found

    return asyncio.run(replay())
