"""Whether an operator is at work, as far as its Lease tells: for every kind alike."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from kuberay_op.commands.run import LEASE
from kuberay_op.commands.why.look import Look
from kuberay_op.controllers.raycluster.why import Obstacle
from kuberay_op.kube.errors import ApiError
from kuberay_op.kube.resource import LEASES, PODS, Resource
from kuberay_op.runtime.lease import record_of

#: No operator has looked at the object as it is now.
NOT_SEEN: Final = "NotReconciled"
#: The operator's Lease has run out.
OPERATOR_GONE: Final = "OperatorGone"
#: The operator lacks a right without which it sees nothing.
OPERATOR_BLIND: Final = "OperatorForbidden"

#: The clocks of this machine and of the operator's may differ by so much.
SKEW: Final = timedelta(seconds=60)

#: What an operator must be allowed in order to see an object and to say something about it.
NEEDS: Final = (("list", ""), ("watch", ""), ("patch", "status"))

HINT: Final = "name the operator's namespace with --operator-namespace"


@dataclass(frozen=True, slots=True)
class Operator:
    """What is known about the operator."""

    #: Whether its Lease could be looked for.
    known: bool = False
    #: Whether it holds its Lease now.
    alive: bool = False
    holder: str = ""
    namespace: str = ""
    renewed: str = ""

    @property
    def pod(self) -> str:
        """The Pod that holds the Lease: its identity begins with the name of its host."""
        return self.holder.rpartition("_")[0]

    def gone(self) -> Obstacle | None:
        """That nothing will happen any more, if that is certain."""
        if self.alive or not self.holder:
            return None
        text = (
            f"no operator is at work: Lease {self.namespace}/{LEASE} of {self.holder} was renewed last at "
            f"{self.renewed}"
        )
        return Obstacle(OPERATOR_GONE, text, f"kubectl get pods -n {self.namespace}")

    def has_not_seen(self, what: str) -> Obstacle:
        """That it has not looked at an object as it is now."""
        if gone := self.gone():
            return gone
        if self.alive:
            text = (
                f"the operator {self.holder} has not looked at {what}: it may not watch this namespace, or "
                "lack a right"
            )
            return Obstacle(NOT_SEEN, text, f"kubectl logs {self.pod} -n {self.namespace}")
        none = f", and there is no Lease {LEASE} of one" if self.known else ""
        look = "kubectl get pods -A -l app.kubernetes.io/name=kuberay-operator"
        return Obstacle(NOT_SEEN, f"no operator has looked at {what}{none}", look)


async def find_operator(look: Look) -> Operator:
    """Look for the operator's Lease; of several, for one that is held."""
    where = look.operator_namespace or ""
    leases = await look.all(LEASES, where, hint=HINT, field_selector=f"metadata.name={LEASE}")
    if leases is None:
        return Operator()
    found = [_operator(lease, look.now()) for lease in leases]
    return max(found, key=lambda each: (each.alive, each.renewed), default=Operator(known=True))


async def missing_rights(look: Look, operator: Operator, resource: Resource) -> list[Obstacle]:
    """What the operator may not do, found through its Pod's service account; nothing if that is not known."""
    if not operator.alive or not operator.pod:
        return []
    try:
        pod = await look.find(PODS, operator.pod, operator.namespace)
    except ApiError:
        return []
    account = ((pod or {}).get("spec") or {}).get("serviceAccountName")
    if not account:
        return []
    user = f"system:serviceaccount:{operator.namespace}:{account}"
    for verb, subresource in NEEDS:
        if await look.allowed(user, verb, resource, subresource) is False:
            what = f"{resource}/{subresource}" if subresource else str(resource)
            text = f"the operator may not {verb} {what} in namespace {look.namespace}; it runs as {user}"
            option = f" --subresource={subresource}" if subresource else ""
            command = f"kubectl auth can-i {verb} {resource}{option} -n {look.namespace} --as={user}"
            return [Obstacle(OPERATOR_BLIND, text, command)]
    return []


def _operator(lease: dict[str, Any], now: datetime) -> Operator:
    record = record_of(lease)
    alive = False
    if record.holder and record.renewed:
        until = datetime.fromisoformat(record.renewed) + timedelta(seconds=record.duration)
        alive = now <= until + SKEW
    return Operator(
        known=True,
        alive=alive,
        holder=record.holder,
        namespace=lease["metadata"]["namespace"],
        renewed=record.renewed,
    )
