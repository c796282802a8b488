"""Pods as the API server would show them, and a small world in which planners can be tried out.

::

    pods.worker(cluster, "a", ready=False)
    world = pods.World(cluster)
    world.carry_out(plan_pods(...))
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kuberay_op.api import labels
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.view import Json
from kuberay_op.plan.groups import Add
from kuberay_op.plan.pods import PodPlan
from kuberay_op.plan.upgrade import stamps

START: Final = datetime(2026, 1, 1, tzinfo=UTC)


def head(cluster: Json, name: str = "head", **fields: Any) -> Json:
    """A head Pod that runs and is ready, unless the fields say otherwise; see :func:`pod`."""
    return pod(cluster, name, labels.HEAD, labels.HEAD_GROUP, **fields)


def worker(cluster: Json, name: str = "worker", group: str = "workers", **fields: Any) -> Json:
    """A worker Pod that runs and is ready, unless the fields say otherwise; see :func:`pod`."""
    return pod(cluster, name, labels.WORKER, group, **fields)


def pod(
    cluster: Json,
    name: str,
    role: str,
    group: str,
    *,
    age: int = 0,
    phase: str = "Running",
    ready: bool = True,
    terminating: bool = False,
    restart_policy: str = "Always",
    replica: int | None = None,
    host: int | None = None,
    replica_name: str = "",
    marks: dict[str, str] | None = None,
    notes: dict[str, str] | None = None,
    status: Json | None = None,
) -> Json:
    """A Pod of a cluster. It was made ``age`` seconds ago; ``status`` is merged into its own."""
    metadata: Json = {
        "name": name,
        "namespace": cluster["metadata"].get("namespace", "default"),
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "creationTimestamp": moment(-age),
        "labels": {
            labels.CLUSTER: cluster["metadata"]["name"],
            labels.NODE_TYPE: role,
            labels.GROUP: group,
            **({labels.REPLICA_INDEX: str(replica)} if replica is not None else {}),
            **({labels.REPLICA_NAME: replica_name} if replica_name else {}),
            **({labels.HOST_INDEX: str(host)} if host is not None else {}),
            **(marks or {}),
        },
        "ownerReferences": [
            {
                "apiVersion": "ray.io/v1",
                "kind": "RayCluster",
                "name": cluster["metadata"]["name"],
                "uid": cluster["metadata"].get("uid", "uid-1"),
                "controller": True,
            }
        ],
    }
    if notes:
        metadata["annotations"] = dict(notes)
    if terminating:
        metadata["deletionTimestamp"] = moment(0)
    said: Json = {"phase": phase}
    if phase == "Running":
        said["podIP"] = "10.0.0.1"
        said["conditions"] = [{"type": "Ready", "status": str(ready)}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"restartPolicy": restart_policy, "containers": [{"name": "ray", "image": "ray"}]},
        "status": said | (status or {}),
    }


def terminated(*, reason: str = "Error", exit_code: int = 1, container: str = "ray") -> Json:
    """A status in which a container has ended."""
    ended = {"reason": reason, "exitCode": exit_code}
    return {"containerStatuses": [{"name": container, "state": {"terminated": ended}}]}


def waiting(reason: str, message: str = "", *, container: str = "ray", restarts: int = 0) -> Json:
    """A status in which a container waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {"containerStatuses": [{"name": container, "state": state, "restartCount": restarts}]}


def moment(seconds: float) -> str:
    """A time near :data:`START`, as the API writes it."""
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


class World:
    """The Pods of one cluster, and what an API server and kubelets would make of plans and accidents."""

    def __init__(self, cluster: Json, pods: Iterable[Json] = (), *, version: str = "test") -> None:
        self.cluster = cluster
        self.version = version
        self.made = 0
        self.pods: dict[str, Json] = {each["metadata"]["name"]: each for each in pods}

    def carry_out(self, plan: PodPlan) -> None:
        """Do what the plan says: new Pods are pending, deleted ones are on their way out."""
        for removal in plan.remove:
            self.mark(removal.pod.name)
        for addition in plan.add:
            self._make(addition)
        if plan.stamp is not None:
            self._stamp(plan.stamp.name)

    def mark(self, name: str) -> None:
        """Start the deletion of a Pod, as ``kubectl delete --wait=false`` does."""
        self._metadata(name)["deletionTimestamp"] = moment(self.made)

    def finish(self, name: str) -> None:
        """Let a Pod be gone."""
        del self.pods[name]

    def run(self, name: str, *, ready: bool = True) -> None:
        """Let a Pod run."""
        self.pods[name]["status"] = {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": str(ready)}],
        }

    def fail(self, name: str) -> None:
        """Let a Pod end badly."""
        self.pods[name]["status"] = {"phase": "Failed", "reason": "Evicted"}

    def seen(self) -> list[Json]:
        """All Pods, as a cache would give them."""
        return [copy.deepcopy(each) for each in self.pods.values()]

    def settle(self) -> None:
        """Let kubelets catch up: what was asked to go is gone, what is pending runs."""
        for name, each in list(self.pods.items()):
            if "deletionTimestamp" in each["metadata"]:
                self.finish(name)
            elif each["status"]["phase"] == "Pending":
                self.run(name)

    def _make(self, addition: Add) -> None:
        self.made += 1
        name = f"{addition.group}-{self.made:04}"
        self.pods[name] = pod(
            self.cluster,
            name,
            addition.role,
            addition.group,
            age=-self.made,
            phase="Pending",
            replica=addition.replica,
            host=addition.host,
            replica_name=addition.replica_name,
        )
        if addition.role == labels.HEAD:
            self._stamp(name)

    def _stamp(self, name: str) -> None:
        marks = stamps(RayCluster(self.cluster), self.version)
        self._metadata(name).setdefault("annotations", {}).update(marks)

    def _metadata(self, name: str) -> Json:
        found: Json = self.pods[name]["metadata"]
        return found
