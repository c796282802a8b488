"""A Pod on its way: what the steps of its assembly share and change.

A draft begins as a copy of the user's template (:meth:`Draft.of`). The steps in this package each change one
aspect of it; :mod:`kuberay_op.build.pod` puts them in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kuberay_op.api import labels, names
from kuberay_op.api.raycluster import HeadGroupSpec, RayCluster, WorkerGroupSpec
from kuberay_op.api.view import Json
from kuberay_op.build import metadata
from kuberay_op.config import Config
from kuberay_op.frozen import thaw


@dataclass(slots=True)
class Draft:
    """One Pod being built. Only :attr:`pod` and :attr:`params` change."""

    cluster: RayCluster
    config: Config
    group: HeadGroupSpec | WorkerGroupSpec
    #: The Pod as it is so far.
    pod: Json
    #: Flags of ``ray start``; a step sees what earlier steps put there.
    params: dict[str, str]

    @classmethod
    def of(cls, cluster: RayCluster, group: HeadGroupSpec | WorkerGroupSpec, config: Config) -> Draft:
        """The template of a group as a Pod, with nothing added yet."""
        template: Json = thaw(group.template)
        pod: Json = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**(template.get("metadata") or {}), "namespace": cluster.namespace},
            "spec": template["spec"],
        }
        return cls(cluster, config, group, pod, dict(group.ray_start_params))

    @property
    def is_head(self) -> bool:
        """Whether this is the head rather than a worker."""
        return isinstance(self.group, HeadGroupSpec)

    @property
    def node_type(self) -> str:
        """``head`` or ``worker``."""
        return labels.HEAD if self.is_head else labels.WORKER

    @property
    def metadata(self) -> Json:
        """Metadata of the Pod."""
        found: Json = self.pod["metadata"]
        return found

    @property
    def spec(self) -> Json:
        """Spec of the Pod."""
        found: Json = self.pod["spec"]
        return found

    @property
    def ray(self) -> Json:
        """The Ray container: the first one, whatever its name."""
        found: Json = self.spec["containers"][names.RAY_CONTAINER]
        return found

    @property
    def head_host(self) -> str:
        """Full DNS name of the head Service."""
        return metadata.head_host(self.cluster, self.config)

    @property
    def head_port(self) -> str:
        """Port of the control store, as text: whatever the user wrote."""
        return self.cluster.spec.head_group_spec.ray_start_params.get("port", "6379")

    @property
    def made_for(self) -> names.OriginKind:
        """The kind of object the cluster was made for."""
        return metadata.made_for(self.cluster)

    def gate(self, name: str) -> bool:
        """Whether a feature gate is on."""
        return self.config.gates.enabled(name)

    def annotation(self, key: str) -> str:
        """An annotation of the Pod; empty when it is not there."""
        return str((self.metadata.get("annotations") or {}).get(key, ""))

    def annotate(self, key: str, value: str) -> None:
        """Set an annotation of the Pod."""
        entries(self.metadata, "annotations")[key] = value

    def container(self, name: str) -> Json | None:
        """The container of that name."""
        return next((c for c in self.spec["containers"] if c.get("name") == name), None)

    def init_container(self, name: str) -> Json | None:
        """The init container of that name."""
        return next((c for c in self.spec.get("initContainers") or () if c.get("name") == name), None)


#: One step of the assembly.
Step = Callable[[Draft], None]


def shell(config: Config) -> list[str]:
    """The command that runs a script: bash, as a login shell if the operator is told so."""
    return ["/bin/bash", "-cl" if config.enable_login_shell else "-c", "--"]


def items(obj: Json, key: str) -> list[Any]:
    """The list under a key, made if it is not there, to append to."""
    if not isinstance(obj.get(key), list):
        obj[key] = []
    found: list[Any] = obj[key]
    return found


def entries(obj: Json, key: str) -> dict[str, Any]:
    """The dict under a key, made if it is not there, to add to."""
    if not isinstance(obj.get(key), dict):
        obj[key] = {}
    found: dict[str, Any] = obj[key]
    return found


def named(objects: Iterable[Mapping[str, Any]] | None, name: str) -> bool:
    """Whether one of these has that name."""
    return any(obj.get("name") == name for obj in objects or ())


def same_resources(cpu: str, memory: str) -> Json:
    """Limits and requests that are the same."""
    return {"limits": {"cpu": cpu, "memory": memory}, "requests": {"cpu": cpu, "memory": memory}}
