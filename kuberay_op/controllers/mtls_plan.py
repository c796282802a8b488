"""Mutual TLS: what to do to the objects of cert-manager, and what to make of their state. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kuberay_op.api import labels, names
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.build import mtls
from kuberay_op.config import Config
from kuberay_op.kube.merge import merge_patch
from kuberay_op.plan.actions import Action, Create, Manifest, Update

#: Keys that a Secret of a certificate has once it is issued.
SECRET_KEYS: Final = ("tls.crt", "tls.key", "ca.crt")

#: A certificate that is being issued is left alone for so long: changing it would begin the issue anew. New
#: addresses gather meanwhile, so that many Pods need few certificates.
ISSUE_SECONDS: Final = 30.0

#: A certificate that ends this soon should have been renewed by now.
SOON: Final = timedelta(hours=24)

#: Phases in which a Pod has no use for its address any more.
_ENDED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class PkiPlan:
    """What to do now, and in how many seconds to look again at what must wait."""

    actions: Sequence[Action] = ()
    wait: float | None = None


def plan_pki(
    cluster: RayCluster,
    config: Config,
    pods: Sequence[Manifest],
    children: Sequence[Manifest],
    now: datetime,
) -> PkiPlan:
    """Make what is missing; give the certificates of head and workers the addresses of their Pods."""
    there = {(child["kind"], child["metadata"]["name"]): child for child in children}
    once = (mtls.selfsigned_issuer(cluster), mtls.ca_certificate(cluster), mtls.ca_issuer(cluster))
    leaves = (
        mtls.head_certificate(cluster, config, addresses(pods, labels.HEAD)),
        mtls.worker_certificate(cluster, addresses(pods, labels.WORKER)),
    )
    actions: list[Action] = [
        Create(obj, "mutual TLS needs it")
        for obj in (*once, *leaves)
        if (obj["kind"], obj["metadata"]["name"]) not in there
    ]
    waits = []
    for leaf in leaves:
        observed = there.get((leaf["kind"], leaf["metadata"]["name"]))
        change = None if observed is None else _change(leaf, observed)
        if observed is None or change is None:
            continue
        wait = seconds_to_leave_alone(observed, now)
        if wait > 0:
            waits.append(wait)
        else:
            actions.append(change)
    return PkiPlan(actions, min(waits, default=None))


def _change(leaf: Manifest, observed: Manifest) -> Update | None:
    """The update that a certificate needs. All but labels and addresses is the user's to change."""
    have, want = observed.get("spec") or {}, leaf["spec"]
    names_differ = {
        field: want[field]
        for field in ("dnsNames", "ipAddresses")
        if set(have.get(field) or ()) != set(want[field])
    }
    kept = ("name", "namespace", "labels", "ownerReferences")
    wanted = {
        "apiVersion": leaf["apiVersion"],
        "kind": leaf["kind"],
        "metadata": {field: leaf["metadata"][field] for field in kept},
        # Whole, since it is made from this should somebody delete it at this moment.
        "spec": {**have, **names_differ},
    }
    patch = merge_patch(observed, wanted)
    if patch is None:
        return None
    return Update(
        wanted,
        observed,
        patch,
        "the addresses of its Pods have changed" if names_differ else "it lacks labels of ours",
    )


def seconds_to_leave_alone(certificate: Manifest, now: datetime) -> float:
    """How much longer a certificate that is being issued should not be changed; 0 if it may be now."""
    condition = ready_condition(certificate)
    if condition is None:
        since = certificate["metadata"].get("creationTimestamp")
    elif condition.get("status") == "True":
        return 0.0
    else:
        since = condition.get("lastTransitionTime")
    began = moment(since)
    return 0.0 if began is None else max(0.0, ISSUE_SECONDS - (now - began).total_seconds())


def addresses(pods: Iterable[Manifest], node_type: str) -> Iterator[str]:
    """The addresses of the Pods of a role that have one and still use it."""
    for pod in pods:
        status, metadata = pod.get("status") or {}, pod["metadata"]
        if (metadata.get("labels") or {}).get(labels.NODE_TYPE) != node_type:
            continue
        if metadata.get("deletionTimestamp") or status.get("phase") in _ENDED:
            continue
        if status.get("podIP"):
            yield str(status["podIP"])


def ready(certificate: Manifest) -> bool:
    """Whether cert-manager has issued what the certificate asks for now."""
    condition = ready_condition(certificate) or {}
    return condition.get("status") == "True" and condition.get("observedGeneration") == certificate[
        "metadata"
    ].get("generation")


def ready_condition(certificate: Manifest) -> Manifest | None:
    """The condition ``Ready`` of a certificate, if it has one."""
    found = (certificate.get("status") or {}).get("conditions") or ()
    return next((condition for condition in found if condition.get("type") == "Ready"), None)


def not_ready(cluster: RayCluster, children: Sequence[Manifest]) -> list[str]:
    """Names of the certificates of Pods that are not issued as they should be."""
    there = {child["metadata"]["name"]: child for child in children if child["kind"] == "Certificate"}
    wanted = [names.certificate(cluster.name, role) for role in (labels.HEAD, labels.WORKER)]
    return [name for name in wanted if name not in there or not ready(there[name])]


def expiring(children: Sequence[Manifest], now: datetime) -> list[tuple[str, datetime]]:
    """Certificates that end soon, and when."""
    found = []
    for child in children:
        end = moment((child.get("status") or {}).get("notAfter")) if child["kind"] == "Certificate" else None
        if end is not None and end - now < SOON:
            found.append((str(child["metadata"]["name"]), end))
    return found


def moment(text: object) -> datetime | None:
    """A time as the API writes it; None when there is none."""
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
