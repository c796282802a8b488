"""Makers: valid objects of the four kinds in one line, changed part by part.

::

    make.raycluster("a", make.workers(2), make.autoscaling())
    make.rayjob("j", make.spec(entrypoint="python x.py"), make.workers(1), make.labels(team="x"))

A maker gives a plain dict, new every time. What follows the name are parts: functions that change the object,
applied in order. Parts that speak of the cluster (:func:`workers`, :func:`autoscaling`, :func:`head` …) find
it in every kind. Any function that takes the object is a part, so tests can bring their own.
"""

import copy
from collections.abc import Callable
from typing import Any, Final

from kuberay_op.api.view import Json

Part = Callable[[Json], None]

RAY_VERSION: Final = "2.52.0"
IMAGE: Final = f"rayproject/ray:{RAY_VERSION}"

#: Where each kind keeps the spec of its cluster.
_CLUSTER_AT: Final = {
    "RayCluster": ("spec",),
    "RayJob": ("spec", "rayClusterSpec"),
    "RayService": ("spec", "rayClusterConfig"),
    "RayCronJob": ("spec", "jobTemplate", "rayClusterSpec"),
}


def raycluster(name: str = "cluster", *parts: Part) -> Json:
    """A RayCluster with a head and, until parts add some, no workers."""
    return _object("RayCluster", name, cluster_spec_of(), parts)


def rayjob(name: str = "job", *parts: Part) -> Json:
    """A RayJob that runs on a cluster of its own."""
    return _object("RayJob", name, _job_spec(), parts)


def rayservice(name: str = "service", *parts: Part) -> Json:
    """A RayService with one application."""
    applications = "applications: [{name: app, import_path: 'main:app'}]"
    spec_ = {"serveConfigV2": applications, "rayClusterConfig": cluster_spec_of()}
    return _object("RayService", name, spec_, parts)


def raycronjob(name: str = "cron", *parts: Part) -> Json:
    """A RayCronJob that fires every hour."""
    return _object("RayCronJob", name, {"schedule": "0 * * * *", "jobTemplate": _job_spec()}, parts)


def cluster_spec_of(*parts: Part) -> Json:
    """The spec of a RayCluster alone."""
    obj: Json = {
        "kind": "RayCluster",
        "spec": {
            "rayVersion": RAY_VERSION,
            "headGroupSpec": {"rayStartParams": {}, "template": pod_template("ray-head")},
        },
    }
    for part in parts:
        part(obj)
    found: Json = obj["spec"]
    return found


def pod_template(container: str, *, cpu: str = "1", memory: str = "2Gi", **pod: Any) -> Json:
    """A Pod template with one Ray container; other arguments are fields of the Pod spec."""
    resources = {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}}
    return {"spec": {"containers": [{"name": container, "image": IMAGE, "resources": resources}], **pod}}


# --- parts for every kind


def namespace(name: str) -> Part:
    """Put the object into a namespace."""
    return _metadata(namespace=name)


def labels(values: dict[str, str] | None = None, /, **more: str) -> Part:
    """Add labels."""
    return lambda obj: obj["metadata"].setdefault("labels", {}).update({**(values or {}), **more})


def annotations(values: dict[str, str] | None = None, /, **more: str) -> Part:
    """Add annotations."""
    return lambda obj: obj["metadata"].setdefault("annotations", {}).update({**(values or {}), **more})


def stored(*, uid: str = "uid-1", generation: int = 1, resource_version: str = "1") -> Part:
    """Add what the API server gives an object when it stores it."""
    return _metadata(
        uid=uid,
        generation=generation,
        resourceVersion=resource_version,
        creationTimestamp="2026-01-01T00:00:00Z",
    )


def deleted(at: str = "2026-01-01T01:00:00Z", *finalizers: str) -> Part:
    """Mark the object as being deleted, held by finalizers."""
    return _metadata(deletionTimestamp=at, finalizers=list(finalizers))


def owned_by(owner: Json) -> Part:
    """Make another object the controller of this one."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"].get("uid", "uid-1"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return lambda obj: obj["metadata"].setdefault("ownerReferences", []).append(reference)


def spec(**fields: Any) -> Part:
    """Set fields of the spec, by their names in JSON."""
    return lambda obj: obj["spec"].update(copy.deepcopy(fields))


def status(**fields: Any) -> Part:
    """Set fields of the status, by their names in JSON."""
    return lambda obj: obj.setdefault("status", {}).update(copy.deepcopy(fields))


def condition(type_: str, *, holds: bool = True, reason: str = "Test", message: str = "") -> Part:
    """Add a condition to the status."""
    entry = {
        "type": type_,
        "status": str(holds),
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    return lambda obj: obj.setdefault("status", {}).setdefault("conditions", []).append(entry)


# --- parts for the cluster inside


def cluster(**fields: Any) -> Part:
    """Set fields of the cluster's spec, by their names in JSON."""
    return lambda obj: cluster_in(obj).update(copy.deepcopy(fields))


def head(**fields: Any) -> Part:
    """Set fields of the head group, by their names in JSON."""
    return lambda obj: cluster_in(obj)["headGroupSpec"].update(copy.deepcopy(fields))


def head_env(**variables: str) -> Part:
    """Add variables to the Ray container of the head."""
    entries = [{"name": name, "value": value} for name, value in variables.items()]

    def part(obj: Json) -> None:
        container = cluster_in(obj)["headGroupSpec"]["template"]["spec"]["containers"][0]
        container.setdefault("env", []).extend(copy.deepcopy(entries))

    return part


def workers(replicas: int = 1, /, group: str = "workers", **fields: Any) -> Part:
    """Add a worker group; other arguments are its fields by their names in JSON."""

    def part(obj: Json) -> None:
        entry = {
            "groupName": group,
            "replicas": replicas,
            "minReplicas": 0,
            "maxReplicas": max(10, replicas),
            "rayStartParams": {},
            "template": pod_template("ray-worker"),
            **copy.deepcopy(fields),
        }
        cluster_in(obj).setdefault("workerGroupSpecs", []).append(entry)

    return part


def autoscaling(version: str | None = None, **options: Any) -> Part:
    """Turn the Ray autoscaler on; other arguments are fields of its options."""
    chosen = {**({"version": version} if version else {}), **options}

    def part(obj: Json) -> None:
        inside = cluster_in(obj)
        inside["enableInTreeAutoscaling"] = True
        if chosen:
            inside.setdefault("autoscalerOptions", {}).update(copy.deepcopy(chosen))

    return part


def redis(address: str = "redis:6379", **options: Any) -> Part:
    """Keep the state of the control store in Redis; other arguments are fields of its options."""
    return cluster(gcsFaultToleranceOptions={"redisAddress": address, **options})


def suspended() -> Part:
    """Suspend the object."""
    return spec(suspend=True)


def cluster_in(obj: Json) -> Json:
    """The spec of the cluster inside an object of any of the four kinds."""
    for step in _CLUSTER_AT[obj["kind"]]:
        obj = obj.setdefault(step, {})
    return obj


def _object(kind: str, name: str, spec_: Json, parts: tuple[Part, ...]) -> Json:
    metadata = {"name": name, "namespace": "default"}
    obj: Json = {"apiVersion": "ray.io/v1", "kind": kind, "metadata": metadata, "spec": spec_}
    for part in parts:
        part(obj)
    return obj


def _job_spec() -> Json:
    return {
        "entrypoint": "python main.py",
        "shutdownAfterJobFinishes": True,
        "rayClusterSpec": cluster_spec_of(),
    }


def _metadata(**fields: Any) -> Part:
    return lambda obj: obj["metadata"].update(copy.deepcopy(fields))
