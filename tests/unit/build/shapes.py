"""Short ways to the parts of built objects that the tables look at."""

from __future__ import annotations

import copy
from typing import Any

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.view import Json
from kuberay_op.build.pod import head_pod, worker_pod
from kuberay_op.config import Config
from kuberay_op.features import Gates
from kuberay_op.testing import make

UID = "4b1a3a2c-0000-4000-8000-00000000c0de"
HOST = "c-head-svc.ns.svc.cluster.local"


def cluster(*parts: make.Part, name: str = "c") -> RayCluster:
    """A stored RayCluster in the namespace ``ns``."""
    return RayCluster(make.raycluster(name, make.namespace("ns"), make.stored(uid=UID), *parts))


def gated(*names: str, **settings: Any) -> Config:
    """A configuration with these gates on."""
    gates = Gates.default().with_overrides(",".join(f"{name}=true" for name in names))
    return Config(gates=gates, **settings)


def head(*parts: make.Part, config: Config | None = None) -> Json:
    """The head Pod of such a cluster."""
    return head_pod(cluster(*parts), config or Config())


def worker(*parts: make.Part, config: Config | None = None, group: Json | None = None, **place: Any) -> Json:
    """A worker Pod of such a cluster; ``group`` are fields of its group."""
    found = cluster(*parts, make.workers(1, "w", **(group or {})))
    return worker_pod(found, found.spec.worker_group_specs[0], config or Config(), **place)


def head_container(**fields: Any) -> make.Part:
    """Set fields of the head's Ray container."""
    return lambda obj: obj["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0].update(
        copy.deepcopy(fields)
    )


def head_template(**metadata: Any) -> make.Part:
    """Set the metadata of the head's template."""
    return lambda obj: obj["spec"]["headGroupSpec"]["template"].update(metadata=copy.deepcopy(metadata))


def head_pod_spec(**fields: Any) -> make.Part:
    """Set fields of the head's Pod spec."""
    return lambda obj: obj["spec"]["headGroupSpec"]["template"]["spec"].update(copy.deepcopy(fields))


def worker_template(container: Json | None = None, metadata: Json | None = None, **pod: Any) -> Json:
    """A worker group's template with these fields of its Ray container, metadata and Pod spec."""
    template = make.pod_template("ray-worker", **pod)
    template["spec"]["containers"][0].update(container or {})
    if metadata:
        template["metadata"] = metadata
    return template


def ray(pod: Json) -> Json:
    """The Ray container."""
    found: Json = pod["spec"]["containers"][0]
    return found


def container(pod: Json, name: str) -> Json:
    """The container of that name."""
    [found] = [c for c in pod["spec"]["containers"] if c["name"] == name]
    result: Json = found
    return result


def init_names(pod: Json) -> list[str]:
    """Names of the init containers, in order."""
    return [c["name"] for c in pod["spec"].get("initContainers", ())]


def variables(container_: Json) -> list[tuple[str, Any]]:
    """Names and values of a container's variables, in order; a reference to a field is its path."""
    found = []
    for entry in container_.get("env", ()):
        source = entry.get("valueFrom", {})
        value = entry.get("value", source.get("fieldRef", {}).get("fieldPath", source))
        found.append((entry["name"], value))
    return found


def flags(pod: Json) -> dict[str, str | bool]:
    """The flags of the generated ``ray start``."""
    text = dict(variables(ray(pod)))["KUBERAY_GEN_RAY_START_CMD"]
    words = text.split("  ") if "  " in text else [text]
    found: dict[str, str | bool] = {}
    for word in words[1:]:
        key, equals, value = word.strip().removeprefix("--").partition("=")
        if key:
            found[key] = value if equals else True
    return found


def start_command(pod: Json) -> str:
    """The generated ``ray start``."""
    return str(dict(variables(ray(pod)))["KUBERAY_GEN_RAY_START_CMD"])
