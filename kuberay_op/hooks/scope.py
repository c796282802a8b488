"""What a hook gets to see: one pass over one object, read-only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal

from kuberay_op.config import Config
from kuberay_op.errors import OperatorError
from kuberay_op.hooks.patches import Manifest
from kuberay_op.hooks.verdicts import Ruling
from kuberay_op.quantity import Quantity

_NOTHING: Mapping[str, Sequence[Manifest]] = MappingProxyType({})


async def _no_secrets(name: str) -> Mapping[str, bytes]:
    raise OperatorError(f"Secret {name}: only a running operator can read Secrets")


@dataclass(frozen=True, slots=True)
class Scope:
    """One pass over one object.

    Everything in it is read-only: objects are as the API server gave them, and changing them raises.
    """

    #: The custom resource this pass is about.
    owner: Manifest
    #: When the pass began, in UTC. Use this rather than the clock: a plan must come out the same twice.
    now: datetime
    #: Whether a feature gate is on.
    gate: Callable[[str], bool]
    #: Existing child objects by kind, e.g. ``scope.children["Pod"]``. Of a Pod's spec only ``nodeName``,
    #: ``restartPolicy`` and the names of its containers are there.
    children: Mapping[str, Sequence[Manifest]] = field(default_factory=lambda: _NOTHING)
    #: What the awaited hooks of this pass answered so far.
    rulings: tuple[Ruling, ...] = ()
    #: What Ray itself has said about the owner, where the operator asks it; its form depends on the kind.
    ray: Any = None
    #: The Pods that should start together, where a batch scheduler is on; else there are none in it.
    gang: Gang = field(default_factory=lambda: Gang("", ()))
    #: The operator's configuration.
    config: Config = field(default_factory=Config)
    #: Reads a Secret of the owner's namespace: ``await scope.secret(name)`` gives its keys and bytes. For
    #: awaited hooks, and for tasks that go on after them. What it holds must never be logged or shown.
    secret: Callable[[str], Awaitable[Mapping[str, bytes]]] = _no_secrets

    @property
    def kind(self) -> str:
        """Kind of the owner: RayCluster, RayJob, RayService or RayCronJob."""
        return str(self.owner.get("kind", ""))

    @property
    def name(self) -> str:
        """Name of the owner."""
        return str(self.owner.get("metadata", {}).get("name", ""))

    @property
    def namespace(self) -> str:
        """Namespace of the owner."""
        return str(self.owner.get("metadata", {}).get("namespace", ""))

    @property
    def uid(self) -> str:
        """UID of the owner; empty in an offline plan."""
        return str(self.owner.get("metadata", {}).get("uid", ""))


@dataclass(frozen=True, slots=True)
class Group:
    """The group a Pod belongs to."""

    #: ``headgroup``, the worker group's name, or ``submittergroup``; empty for a whole cluster.
    name: str
    role: Literal["head", "worker", "submitter", "cluster"]
    #: The group's part of the owner's spec (``headGroupSpec`` or one of ``workerGroupSpecs``).
    spec: Manifest = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GangMember:
    """So many equal Pods of a gang."""

    group: Group
    #: Pods that must start together; the minimum when the group scales by itself, and so perhaps none.
    count: int
    #: Resource requests of one Pod, as quantities.
    requests: Mapping[str, str]

    @property
    def total(self) -> dict[str, str]:
        """Resource requests of all these Pods together."""
        return {name: str(Quantity.parse(amount) * self.count) for name, amount in self.requests.items()}


@dataclass(frozen=True, slots=True)
class Gang:
    """The Pods of one owner that should be scheduled all together or not at all."""

    #: Name that the gang's objects should have.
    name: str
    members: tuple[GangMember, ...]

    @property
    def count(self) -> int:
        """Pods that must start together. The submitter is not among them: it waits for the others."""
        return sum(member.count for member in self.members if member.group.role != "submitter")

    @property
    def requests(self) -> dict[str, str]:
        """Resource requests of all its Pods together, the submitter's too."""
        totals: dict[str, Quantity] = {}
        for member in self.members:
            for name, amount in member.requests.items():
                totals[name] = totals.get(name, Quantity()) + Quantity.parse(amount) * member.count
        return {name: str(total) for name, total in totals.items()}


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One RBAC rule that a plugin needs the operator to have."""

    api_groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    resource_names: tuple[str, ...] = ()

    def manifest(self) -> dict[str, Any]:
        """The rule as it stands in a ClusterRole."""
        rule: dict[str, Any] = {
            "apiGroups": list(self.api_groups),
            "resources": list(self.resources),
            "verbs": list(self.verbs),
        }
        if self.resource_names:
            rule["resourceNames"] = list(self.resource_names)
        return rule


@dataclass(frozen=True, slots=True)
class Watch:
    """A kind of child object that a plugin makes: changes to it wake its owner."""

    api_version: str
    kind: str
    plural: str
    #: Whether the plugin can do without it; a required API that is missing is reported once.
    optional: bool = False
