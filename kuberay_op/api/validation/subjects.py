"""What the rules look at: a spec with all that it takes to judge it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from kuberay_op.api.meta import CustomResource
from kuberay_op.api.podtemplate import Json, environment, ray_container, volume_mounts
from kuberay_op.api.predicates import GateQuery
from kuberay_op.api.problems import Path
from kuberay_op.api.raycluster import HeadGroupSpec, RayClusterSpec, WorkerGroupSpec
from kuberay_op.api.rayjob import RayJobSpec
from kuberay_op.api.rayservice import RayServiceSpec

#: From a Pod template to its Ray container.
RAY_CONTAINER_AT: Final[Path] = ("spec", "containers", 0)
#: From a cluster spec to the Ray container of its head.
HEAD_CONTAINER_AT: Final[Path] = ("headGroupSpec", "template", *RAY_CONTAINER_AT)


@dataclass(frozen=True, slots=True)
class ObjectSubject:
    """A whole object, for the rules about its metadata."""

    obj: CustomResource
    at: Path = ()


@dataclass(frozen=True, slots=True)
class ClusterSubject:
    """A cluster spec, in a RayCluster or inside another kind.

    ``annotations`` are those of the object a user wrote; the ones in a RayCronJob do not count.
    """

    spec: RayClusterSpec
    head: HeadGroupSpec
    groups: Sequence[WorkerGroupSpec]
    annotations: Mapping[str, str]
    gates: GateQuery
    at: Path

    @classmethod
    def of(cls, spec: RayClusterSpec, annotations: Mapping[str, str], gates: GateQuery, at: Path) -> Self:
        """Look at ``spec``, which is found under the path ``at``."""
        return cls(spec, spec.head_group_spec, spec.worker_group_specs, annotations, gates, at)

    @property
    def head_container(self) -> Json:
        """The Ray container of the head."""
        return ray_container(self.head.template)

    def group_subjects(self) -> list[GroupSubject]:
        """Each worker group as a subject of its own."""
        return [
            GroupSubject(self, group, (*self.at, "workerGroupSpecs", index))
            for index, group in enumerate(self.groups)
        ]


@dataclass(frozen=True, slots=True)
class GroupSubject:
    """One worker group of a cluster spec."""

    cluster: ClusterSubject
    group: WorkerGroupSpec
    at: Path


@dataclass(frozen=True, slots=True)
class JobSubject:
    """A job spec, in a RayJob or as the template of a RayCronJob."""

    spec: RayJobSpec
    cluster: ClusterSubject
    gates: GateQuery
    at: Path

    @classmethod
    def of(cls, spec: RayJobSpec, annotations: Mapping[str, str], gates: GateQuery, at: Path) -> Self:
        """Look at ``spec``, which is found under the path ``at``."""
        below = ClusterSubject.of(spec.ray_cluster_spec, annotations, gates, (*at, "rayClusterSpec"))
        return cls(spec, below, gates, at)

    @property
    def selects_cluster(self) -> bool:
        """The job runs on an existing cluster. Present but empty does not count."""
        return bool(self.spec.raw.get("clusterSelector"))


@dataclass(frozen=True, slots=True)
class ServiceSubject:
    """A service spec."""

    spec: RayServiceSpec
    cluster: ClusterSubject
    gates: GateQuery
    at: Path

    @classmethod
    def of(cls, spec: RayServiceSpec, annotations: Mapping[str, str], gates: GateQuery, at: Path) -> Self:
        """Look at ``spec``, which is found under the path ``at``."""
        below = ClusterSubject.of(spec.ray_cluster_config, annotations, gates, (*at, "rayClusterConfig"))
        return cls(spec, below, gates, at)


def env_at(container: Json, name: str, at: Path) -> Path | None:
    """Where the container (itself at ``at``) sets the variable; None when it does not."""
    for index, variable in enumerate(environment(container)):
        if variable.get("name") == name:
            return (*at, "env", index)
    return None


def mount_at(container: Json, *, volume: str, path: str, at: Path) -> Path | None:
    """Where the container (itself at ``at``) mounts that volume or mounts anything at that path."""
    for index, mount in enumerate(volume_mounts(container)):
        if mount.get("name") == volume or mount.get("mountPath") == path:
            return (*at, "volumeMounts", index)
    return None
