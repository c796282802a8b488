"""The Lease object as leaders write and read it, in the form every Kubernetes client uses.

Pure functions; ``leader.py`` sends what they make. All writes carry the resourceVersion of the Lease they
were made from, so of two claims on the same state the API server accepts one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kuberay_op.kube.events import micro_time
from kuberay_op.kube.resource import LEASES, Object


@dataclass(frozen=True, slots=True)
class Record:
    """Who holds a lease. Two records are equal unless somebody claimed or renewed in between."""

    holder: str
    duration: float
    renewed: str
    transitions: int


def record_of(lease: Mapping[str, Any]) -> Record:
    """What a Lease says. An empty holder means that it is free."""
    spec = lease.get("spec") or {}
    return Record(
        holder=spec.get("holderIdentity") or "",
        duration=float(spec.get("leaseDurationSeconds") or 0),
        renewed=spec.get("renewTime") or "",
        transitions=spec.get("leaseTransitions") or 0,
    )


def new_lease(name: str, namespace: str) -> Object:
    """A Lease that nobody holds and that does not exist yet."""
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": name, "namespace": namespace},
    }


def claimed(lease: Mapping[str, Any], holder: str, duration: float, now: datetime) -> Object:
    """The Lease, taken or renewed by ``holder``. Fields we do not know stay as they are."""
    before = record_of(lease)
    moment = micro_time(now)
    spec = dict(lease.get("spec") or {})
    if before.holder != holder:
        # The first holder ever is not a change of hands.
        spec["leaseTransitions"] = before.transitions + (1 if spec else 0)
        spec["acquireTime"] = moment
    spec |= {"holderIdentity": holder, "leaseDurationSeconds": round(duration), "renewTime": moment}
    return {**lease, "spec": spec}


def released(lease: Mapping[str, Any], now: datetime) -> Object:
    """The Lease, free for the next to take at once."""
    moment = micro_time(now)
    spec = {key: value for key, value in (lease.get("spec") or {}).items() if key != "holderIdentity"}
    return {**lease, "spec": spec | {"leaseDurationSeconds": 1, "renewTime": moment, "acquireTime": moment}}
