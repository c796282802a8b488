"""What to report about a cluster. Pure.

Fields of which there is nothing to say are None here, which takes them out of the status. Whatever is known
is reported, even if something else could not be done: a status that stops moving helps nobody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kuberay_op.api import conditions as words
from kuberay_op.api import labels, replicas
from kuberay_op.api.predicates import head_pod_readiness
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.resources import desired_resources, totals
from kuberay_op.controllers.raycluster.conditions import Conditions, timestamp
from kuberay_op.controllers.raycluster.failures import Failure
from kuberay_op.controllers.raycluster.why import INVALID, Obstacle, Situation, obstacles, summary
from kuberay_op.plan.actions import Manifest
from kuberay_op.plan.podview import PodView, heads, views
from kuberay_op.plan.suspend import Suspend, next_step, step_of


@dataclass(frozen=True, slots=True)
class Standing:
    """A cluster at the end of a pass."""

    cluster: RayCluster
    pods: Sequence[Manifest]
    services: Sequence[Manifest]
    #: What failed, in the order of the plan.
    failures: Sequence[Failure] = ()
    #: What plugins or the planner object to.
    objections: Sequence[Obstacle] = ()
    #: What only a person can mend, and the Pods themselves show.
    problem: str = ""

    @property
    def clean(self) -> bool:
        """Whether the pass did all it wanted to."""
        return not (self.failures or self.objections or self.problem)


def status_of(standing: Standing, now: datetime, *, in_conditions: bool = True) -> dict[str, Any]:
    """The fields of the status as they should be now."""
    cluster, pods = standing.cluster, views(standing.pods)
    before = cluster.status
    state = _state(standing, pods)
    status: dict[str, Any] = {
        "observedGeneration": cluster.metadata.generation,
        "lastUpdateTime": timestamp(now),
        "state": state or None,
        "reason": None if state == words.STATE_READY else before.reason or None,
        **_counts(cluster, pods),
        **_resources(cluster),
        "endpoints": _endpoints(cluster, standing.services),
        "head": _head(pods, standing.services),
    }
    if state and state != before.state:
        status["stateTransitionTimes"] = {state: timestamp(now)}
    if in_conditions:
        status["conditions"] = _conditions(standing, pods, now)
    return status


def invalid_status(cluster: RayCluster, message: str, now: datetime) -> dict[str, Any]:
    """What is reported about a cluster that breaks a rule: that, and nothing that was true before."""
    conditions = Conditions(cluster.status.raw.get("conditions") or (), now)
    conditions.set(words.SERVICE_READY, False, INVALID, message)
    return {"conditions": conditions.listed()}


def find_head(pods: Sequence[PodView]) -> PodView | None:
    """The head: one that stays, if there is one."""
    found = heads(pods)
    return next((pod for pod in found if not pod.terminating), found[0] if found else None)


def head_service_of(services: Sequence[Manifest]) -> Manifest:
    """The head Service, known by its labels since users may name it; empty when there is none."""
    for service in services:
        marks = service["metadata"].get("labels") or {}
        if marks.get(labels.NODE_TYPE) == labels.HEAD and labels.CLUSTER in marks:
            return service
    return {}


# --- fields


def _counts(cluster: RayCluster, pods: Sequence[PodView]) -> dict[str, int | None]:
    workers = [pod for pod in pods if pod.role == labels.WORKER]
    counts = {
        "readyWorkerReplicas": sum(pod.ready for pod in workers),
        "availableWorkerReplicas": sum(pod.running for pod in workers),
        "desiredWorkerReplicas": replicas.desired_pods(cluster.spec),
        "minWorkerReplicas": replicas.min_pods(cluster.spec),
        "maxWorkerReplicas": replicas.max_pods(cluster.spec),
    }
    return {name: count or None for name, count in counts.items()}


def _resources(cluster: RayCluster) -> dict[str, str]:
    sums = totals(desired_resources(cluster.spec))
    return {
        "desiredCPU": sums.cpu,
        "desiredMemory": sums.memory,
        "desiredGPU": sums.gpu,
        "desiredTPU": sums.tpu,
    }


def _endpoints(cluster: RayCluster, services: Sequence[Manifest]) -> dict[str, str | None] | None:
    """The ports of the head Service; those that it no longer has are taken out."""
    known = cluster.status.endpoints
    service = head_service_of(services)
    if not service:
        return dict(known) or None
    ports: dict[str, str | None] = dict.fromkeys(known)
    for port in (service.get("spec") or {}).get("ports") or ():
        target = port.get("nodePort") or port.get("targetPort") or port.get("port")
        if port.get("name"):
            ports[port["name"]] = str(target)
    return ports or None


def _head(pods: Sequence[PodView], services: Sequence[Manifest]) -> dict[str, str | None]:
    head = find_head(pods)
    address = ((head.pod.get("status") or {}).get("podIP") if head else None) or None
    service = head_service_of(services)
    own_address = (service.get("spec") or {}).get("clusterIP")
    return {
        "podName": head.name if head else None,
        "podIP": address,
        "serviceName": service["metadata"]["name"] if service else None,
        "serviceIP": address if service and own_address == "None" else own_address or None,
    }


def _state(standing: Standing, pods: Sequence[PodView]) -> str:
    """``ready`` is not left because of failures: that is what conditions are for."""
    cluster = standing.cluster
    if cluster.spec.suspend and not pods:
        return words.STATE_SUSPENDED
    expected = replicas.desired_pods(cluster.spec) + 1
    if standing.clean and len(pods) == expected and _all_up(pods):
        return words.STATE_READY
    return cluster.status.state


def _all_up(pods: Sequence[PodView]) -> bool:
    """Whether there are Pods, and all of them run and do not say that they are not ready."""
    return bool(pods) and all(pod.up for pod in pods)


# --- conditions


def _conditions(standing: Standing, pods: Sequence[PodView], now: datetime) -> list[Mapping[str, Any]]:
    conditions = Conditions(standing.cluster.status.raw.get("conditions") or (), now)
    _say_failure(conditions, standing)
    _say_head(conditions, pods)
    _say_provisioned(conditions, standing.cluster, pods)
    _say_suspended(conditions, standing.cluster, pods)
    _say_ready(conditions, standing, pods)
    return conditions.listed()


def _say_failure(conditions: Conditions, standing: Standing) -> None:
    marked = next((failure for failure in standing.failures if failure.mark), None)
    if marked is not None:
        conditions.set(words.REPLICA_FAILURE, True, marked.mark, marked.message)
    elif standing.clean:
        conditions.remove(words.REPLICA_FAILURE)


def _say_head(conditions: Conditions, pods: Sequence[PodView]) -> None:
    head = find_head(pods)
    if head is None:
        conditions.set(words.HEAD_POD_READY, False, words.HEAD_POD_NOT_FOUND, "Head Pod not found")
        return
    readiness = head_pod_readiness(head.pod)
    conditions.set(words.HEAD_POD_READY, readiness.status, readiness.reason, readiness.message)


def _say_provisioned(conditions: Conditions, cluster: RayCluster, pods: Sequence[PodView]) -> None:
    if conditions.holds(words.RAYCLUSTER_PROVISIONED) or step_of(cluster) is Suspend.SUSPENDED:
        return
    if _all_up(pods):
        text = "All Ray Pods are ready for the first time"
        conditions.set(words.RAYCLUSTER_PROVISIONED, True, words.ALL_PODS_READY_FIRST_TIME, text)
    else:
        text = "RayCluster Pods are being provisioned for first time"
        conditions.set(words.RAYCLUSTER_PROVISIONED, False, words.PODS_PROVISIONING, text)


def _say_suspended(conditions: Conditions, cluster: RayCluster, pods: Sequence[PodView]) -> None:
    step = next_step(cluster, pods_left=bool(pods))
    if step is Suspend.SUSPENDED and step_of(cluster) is Suspend.SUSPENDING:
        text = "RayCluster has been suspended"
        conditions.set(words.RAYCLUSTER_PROVISIONED, False, words.PODS_PROVISIONING, text)
    for type_ in (words.RAYCLUSTER_SUSPENDED, words.RAYCLUSTER_SUSPENDING):
        conditions.set(type_, step.value == type_, type_)


def _say_ready(conditions: Conditions, standing: Standing, pods: Sequence[PodView]) -> None:
    refused = (failure.obstacle(standing.cluster) for failure in standing.failures)
    in_the_way = [*standing.objections, *refused]
    found = obstacles(Situation(standing.cluster, pods, in_the_way))
    first = summary(found)
    conditions.set(words.SERVICE_READY, not found, first.reason, first.text)
