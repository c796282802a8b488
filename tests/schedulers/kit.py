"""What the tests of batch schedulers share: each scheduler as installed, and what it says about a gang.

Nothing here knows where the packages come from: the same tests run on this checkout and on wheels.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml

from kuberay_op.api import labels
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.rayjob import RayJob
from kuberay_op.config import Config
from kuberay_op.controllers.raycluster.desired import RayClusterKind
from kuberay_op.features import Gates
from kuberay_op.frozen import freeze
from kuberay_op.hooks import Scope
from kuberay_op.hooks.gangs import cluster_gang, job_gang
from kuberay_op.hooks.scope import Group
from kuberay_op.hooks.typed import Hooks
from kuberay_op.kube.resource import Resource
from kuberay_op.loader.choose import Wanted
from kuberay_op.loader.discover import discover
from kuberay_op.loader.gates import known_gates
from kuberay_op.loader.load import load_plugins
from kuberay_op.quantity import Quantity

Json = dict[str, Any]

GANG_LABEL: Final = "ray.io/gang-scheduling-enabled"

#: The schedulers' published CRDs lie beside the checkout; they are not part of it.
CRDS: Final = Path(os.environ.get("KUBERAY_OP_SCHEDULER_CRDS", Path(__file__).parents[3] / "shared" / "crds"))


@dataclass(frozen=True, slots=True)
class Told:
    """What a scheduler is told about a gang."""

    #: Pods that must start together.
    members: int
    #: Requests of all of them.
    resources: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Scheduler:
    """One of the schedulers, and how to read what its plugin says."""

    name: str
    #: ``schedulerName`` of Pods.
    pods: str
    #: Where its gangs stand: objects, or annotations of Pods; None when it is told nothing.
    read: Callable[[Sequence[Json], Sequence[Json]], Told | None]
    #: The kind of object that the plugin makes, and the file of its CRD.
    resource: Resource | None = None
    crd: str = ""
    #: Whether gangs must be asked for by a label.
    label: bool = False
    #: The gate that chooses it, where it is not chosen by name.
    gates: str = ""
    #: Name of the PodGroup of a cluster.
    group_name: Callable[[str], str] = field(default=lambda name: name)

    @property
    def wanted(self) -> Wanted:
        """The configuration that chooses it."""
        return Wanted(batch_scheduler="" if self.gates else self.name)

    def hooks(self, options: Mapping[str, Any] | None = None) -> Hooks:
        """The hooks of the installed plugin, and of no other."""
        wanted = replace(
            self.wanted,
            enabled=self._only(),
            options={self.name: options} if options else {},
        )
        return load_plugins(wanted, self.feature_gates()).hooks

    def feature_gates(self) -> Gates:
        """The gates that it needs."""
        return known_gates().with_overrides(self.gates)

    def manifest(self) -> Json:
        """Its manifest as installed."""
        raw: Json = yaml.safe_load(discover()[self.name].manifest_path.read_text())
        return raw

    def _only(self) -> dict[str, bool]:
        # What is not installed cannot be switched off either.
        here = discover()
        return {name: False for name in ("autoscaler-rbac", "gcs-ft-redis") if name in here}


def _pod_group(objects: Sequence[Json], _: Sequence[Json]) -> Told | None:
    groups = [obj for obj in objects if obj["kind"] == "PodGroup"]
    if not groups:
        return None
    (group,) = groups
    return Told(group["spec"]["minMember"], group["spec"]["minResources"])


def _workload(objects: Sequence[Json], _: Sequence[Json]) -> Told | None:
    if not objects:
        return None
    workload, group = objects
    (template,) = workload["spec"]["podGroupTemplates"]
    assert template["schedulingPolicy"] == group["spec"]["schedulingPolicy"]
    return Told(group["spec"]["schedulingPolicy"]["gang"]["minCount"], {})


def task_groups(pod: Json) -> list[Json]:
    """YuniKorn's task groups on a Pod."""
    text = (pod["metadata"].get("annotations") or {}).get("yunikorn.apache.org/task-groups")
    found: list[Json] = json.loads(text) if text else []
    return found


def _task_groups(_: Sequence[Json], pods: Sequence[Json]) -> Told | None:
    listed = [task_groups(pod) for pod in pods]
    assert all(each == listed[0] for each in listed), "all Pods of a gang must carry the same list"
    groups = listed[0] if listed else []
    if not groups:
        return None
    totals: dict[str, Quantity] = {}
    for group in groups:
        for name, amount in group["minResource"].items():
            totals[name] = totals.get(name, Quantity()) + Quantity.parse(amount) * group["minMember"]
    members = sum(group["minMember"] for group in groups if group["name"] != labels.SUBMITTER_GROUP)
    return Told(members, {name: str(total) for name, total in totals.items()})


VOLCANO: Final = Scheduler(
    "volcano",
    "volcano",
    _pod_group,
    Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup"),
    "volcano-podgroups.yaml",
    group_name=lambda name: f"ray-{name}-pg",
)
YUNIKORN: Final = Scheduler("yunikorn", "yunikorn", _task_groups, label=True)
KAI: Final = Scheduler("kai-scheduler", "kai-scheduler", lambda *_: None)
COSCHEDULING: Final = Scheduler(
    "scheduler-plugins",
    "scheduler-plugins-scheduler",
    _pod_group,
    Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"),
    "scheduler-plugins-podgroups.yaml",
    label=True,
)

#: Kubernetes itself; it is told how many, not how much, and nothing about clusters that scale.
WAS: Final = Scheduler(
    "kubernetes-was",
    "default-scheduler",
    _workload,
    Resource("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup"),
    label=True,
    gates="KubernetesWAS=true",
)

#: Those that every Kubernetes can have.
SCHEDULERS: Final = (VOLCANO, YUNIKORN, KAI, COSCHEDULING)
ALL: Final = (*SCHEDULERS, WAS)

#: Those that are told about gangs.
GANG_SCHEDULERS: Final = (VOLCANO, YUNIKORN, COSCHEDULING)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a plugin makes of an owner: the scheduler's objects and one Pod of each group."""

    objects: list[Json]
    pods: dict[str, Json]

    def told(self, scheduler: Scheduler) -> Told | None:
        """What the scheduler learns from it."""
        return scheduler.read(self.objects, list(self.pods.values()))


def offline(scheduler: Scheduler, owner: Json, options: Mapping[str, Any] | None = None) -> Outcome:
    """What the installed plugin makes of an owner, without a server."""
    frozen = freeze(owner)
    hooks = scheduler.hooks(options)
    if owner["kind"] == "RayJob":
        gang = job_gang(RayJob(dict(frozen)), None)
    else:
        gang = cluster_gang(RayCluster(dict(frozen)))
    scope = Scope(
        owner=frozen,
        now=datetime(2026, 1, 1, tzinfo=UTC),
        gate=scheduler.feature_gates().enabled,
        gang=gang,
    )
    objects = [dict(extra.obj) for extra in hooks.gang_objects(scope, gang)]
    pods: dict[str, Json] = {}
    if owner["kind"] == "RayJob":
        template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {}, "spec": {"containers": []}}
        group = Group(labels.SUBMITTER_GROUP, "submitter")
        pods[group.name] = dict(hooks.patch_pod(scope, group, template).obj)
    else:
        kind = RayClusterKind(Config(), rng=Random(0))  # noqa: S311 (the same names every time)
        for action in kind.wanted(scope, hooks).actions:
            pods.setdefault(action.obj["metadata"]["labels"][labels.GROUP], dict(action.obj))
    return Outcome(objects, pods)
