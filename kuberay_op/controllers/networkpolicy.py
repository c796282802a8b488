"""The NetworkPolicy controller: one policy for the head and one for each worker group, as the spec asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kuberay_op.api import reasons
from kuberay_op.api.predicates import GateQuery
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.validation import warnings
from kuberay_op.build.networkpolicy import network_policies
from kuberay_op.controllers.companion import Companion, first_error
from kuberay_op.controllers.notes import Note
from kuberay_op.features import Gates
from kuberay_op.frozen import thaw
from kuberay_op.kube.apply import NotOurs
from kuberay_op.kube.resource import NETWORK_POLICIES, Key, Resource
from kuberay_op.plan.actions import Action, Create, Delete, Desired, Manifest, Outcome, Update
from kuberay_op.plan.diff import diff
from kuberay_op.runtime.manager import Manager
from kuberay_op.runtime.result import Result

NAME: Final = "networkpolicy"
LOGGER: Final = "NetworkPolicy"

#: The rule about policies that keep Pods from asking for addresses.
NO_DNS: Final = "warning.no-dns"

_DONE: Final[Mapping[type[Action], tuple[str, str, str]]] = {
    Create: (reasons.CREATED_NETWORK_POLICY, reasons.ACTION_CREATE, "Created"),
    Update: (reasons.UPDATED_NETWORK_POLICY, reasons.ACTION_UPDATE, "Updated"),
    Delete: (reasons.DELETED_NETWORK_POLICY, reasons.ACTION_DELETE, "Deleted"),
}
_FAILED: Final[Mapping[type[Action], tuple[str, str, str]]] = {
    Create: (reasons.FAILED_TO_CREATE_NETWORK_POLICY, reasons.ACTION_CREATE, "create"),
    Update: (reasons.FAILED_TO_UPDATE_NETWORK_POLICY, reasons.ACTION_UPDATE, "update"),
    Delete: (reasons.FAILED_TO_DELETE_NETWORK_POLICY, reasons.ACTION_DELETE, "delete"),
}


class NetworkPolicyController(Companion):
    """Keeps the NetworkPolicies of RayClusters."""

    def __init__(self, manager: Manager, *, gates: Gates, shared: Sequence[Resource] = ()) -> None:
        super().__init__(
            manager, name=NAME, logger=LOGGER, resources=(NETWORK_POLICIES,), gates=gates, shared=shared
        )

    async def work(self, key: Key, cluster: RayCluster, children: Sequence[Manifest]) -> Result:
        """Make, change and remove policies."""
        outcomes = await self.actor.act(key, plan_policies(cluster, children))
        for note in notes(cluster, outcomes, self._gates.enabled):
            self.recorder.event(cluster.raw, note.type, note.reason, note.action, note.text)
        error = first_error(outcomes)
        if error is not None:
            raise error
        return Result.done().saying(policies=len(outcomes)) if outcomes else Result.done()

    def forget(self, key: Key) -> None:
        """Nothing is remembered between passes."""


def plan_policies(cluster: RayCluster, observed: Sequence[Manifest]) -> list[Action]:
    """What must be done; ``observed`` are the policies that the cluster controls. Pure."""
    there = {str(policy["metadata"]["name"]): policy for policy in observed}
    wanted = {str(policy["metadata"]["name"]): policy for policy in network_policies(cluster)}
    desired = [
        Desired(_whole(policy, there.get(name)), "the spec asks for it") for name, policy in wanted.items()
    ]
    leftovers = [
        Delete(policy, "the spec does not ask for it any more")
        for name, policy in there.items()
        if name not in wanted and not policy["metadata"].get("deletionTimestamp")
    ]
    return [*diff(desired, observed), *leftovers]


def _whole(policy: Manifest, observed: Manifest | None) -> Manifest:
    """The policy with a null for each field of its spec that must go: all of the spec is ours."""
    if observed is None:
        return policy
    return {**policy, "spec": _padded(policy["spec"], observed.get("spec") or {})}


def _padded(wanted: Manifest, there: Manifest) -> dict[str, Any]:
    result: dict[str, Any] = dict.fromkeys(there) | dict(wanted)
    for name, value in wanted.items():
        if isinstance(value, Mapping) and isinstance(there.get(name), Mapping):
            result[name] = _padded(value, there[name])
    return result


def notes(cluster: RayCluster, outcomes: Sequence[Outcome], gates: GateQuery) -> Iterator[Note]:
    """What to tell users of a pass. Pure."""
    for outcome in outcomes:
        yield from _note(cluster, outcome)
    made = any(outcome.changed and not isinstance(outcome.action, Delete) for outcome in outcomes)
    if made:  # once per edit, when the policies take effect
        for problem in warnings(thaw(cluster.raw), gates):
            if problem.rule == NO_DNS:
                text = str(problem)
                yield Note("Warning", reasons.NETWORK_POLICY_WITHOUT_DNS, reasons.ACTION_VALIDATE, text)


def _note(cluster: RayCluster, outcome: Outcome) -> Iterator[Note]:
    action = outcome.action
    name = f"{cluster.metadata.namespace}/{action.obj['metadata']['name']}"
    if isinstance(outcome.error, NotOurs):
        reason = reasons.NETWORK_POLICY_NAME_COLLISION
        yield Note("Warning", reason, reasons.ACTION_VALIDATE, str(outcome.error))
    elif outcome.error is not None:
        reason, doing, verb = _FAILED[type(action)]
        yield Note("Warning", reason, doing, f"Failed to {verb} NetworkPolicy {name}: {outcome.error}")
    elif outcome.changed:
        reason, doing, done = _DONE[type(action)]
        yield Note("Normal", reason, doing, f"{done} NetworkPolicy {name}")
