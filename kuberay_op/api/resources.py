"""What a cluster asks for in CPUs, memory, GPUs and TPUs: the numbers in a RayCluster's status."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kuberay_op.api.podtemplate import Json, containers
from kuberay_op.api.raycluster import RayClusterSpec
from kuberay_op.api.replicas import hosts, min_replicas
from kuberay_op.quantity import Quantity

#: Amounts by resource name.
Resources = dict[str, Quantity]

_GPU: Final = re.compile(r".*gpu|.*nvidia\.com/mig-\d+g\.\d+gb", re.ASCII | re.DOTALL)
_TPU: Final = "google.com/tpu"


@dataclass(frozen=True, slots=True)
class Totals:
    """The four amounts the status shows, in canonical form."""

    cpu: str
    memory: str
    gpu: str
    tpu: str


def is_gpu(name: str) -> bool:
    """Whether a resource of Kubernetes is a GPU or a slice of one, of whatever make."""
    return _GPU.fullmatch(name) is not None


def pod_resources(template: Json) -> Resources:
    """What one Pod asks for: its containers together. Requests win; limits fill in what has no request.

    Init containers, overhead and sidecars that are added later do not count. A text that is no quantity
    counts as nothing: the API server will not accept the Pod anyway.
    """
    total: Resources = {}
    for container in containers(template):
        wanted = container.get("resources")
        wanted = wanted if isinstance(wanted, Mapping) else {}
        for name, amount in (_amounts(wanted.get("limits")) | _amounts(wanted.get("requests"))).items():
            total[name] = total.get(name, Quantity()) + amount
    return total


def desired_resources(spec: RayClusterSpec) -> Resources:
    """Head and workers together, by ``replicas`` as written: unlike Pod counts, not brought into range."""
    counts = [(group.replicas or 0) * hosts(group) for group in spec.worker_group_specs]
    return _cluster(spec, counts)


def min_resources(spec: RayClusterSpec) -> Resources:
    """Head and workers together, by ``minReplicas``."""
    counts = [min_replicas(group) * hosts(group) for group in spec.worker_group_specs]
    return _cluster(spec, counts)


def totals(resources: Mapping[str, Quantity]) -> Totals:
    """The amounts for the status; GPUs are the sum over all makes and slices."""
    gpu = sum((amount for name, amount in resources.items() if is_gpu(name)), Quantity())
    zero = Quantity()
    return Totals(
        cpu=str(resources.get("cpu", zero)),
        memory=str(resources.get("memory", zero)),
        gpu=str(gpu),
        tpu=str(resources.get(_TPU, zero)),
    )


def _cluster(spec: RayClusterSpec, counts: Iterable[int]) -> Resources:
    total = pod_resources(spec.head_group_spec.template)
    for group, count in zip(spec.worker_group_specs, counts, strict=True):
        if not group.suspend:
            for name, amount in pod_resources(group.template).items():
                total[name] = total.get(name, Quantity()) + amount * count
    return total


def _amounts(listed: Any) -> Resources:
    amounts: Resources = {}
    for name, value in listed.items() if isinstance(listed, Mapping) else ():
        if isinstance(value, str | int) and not isinstance(value, bool):
            try:
                amounts[name] = Quantity.parse(value)
            except ValueError:
                continue
    return amounts
