"""The volume claim of an embedded control store: made once, adopted or let go, never resized. Pure.

What a claim is like is decided when it is made: its size and class cannot be changed later, so a spec that
asks for something else is only told so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kuberay_op.api import reasons
from kuberay_op.api.names import is_ours
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.build.gcs_ft import claim_name, storage_claim
from kuberay_op.controllers.notes import Note
from kuberay_op.kube.apply import controller_uid
from kuberay_op.plan.actions import Desired, Manifest
from kuberay_op.quantity import Quantity


def wanted_claim(cluster: RayCluster, claims: Sequence[Manifest]) -> Iterator[Desired]:
    """The claim if it is missing; else who owns it, so that it goes with the cluster or stays."""
    claim = storage_claim(cluster)
    if claim is None:
        return
    found = _named(claims, claim_name(cluster))
    if found is None:
        yield Desired(claim, "the control store needs a volume", once=True)
        return
    owners = claim["metadata"].get("ownerReferences")
    if owners and controller_uid(found) is None:
        yield Desired(_owned_by(claim, owners), "the claim goes with the cluster")
    elif (
        not owners and is_ours(found, cluster.metadata.uid) and len(found["metadata"]["ownerReferences"]) == 1
    ):
        # With other owners beside us it is no longer only ours to let go.
        yield Desired(_owned_by(claim, None), "the claim outlives the cluster")


def claim_notes(cluster: RayCluster, claims: Sequence[Manifest]) -> Iterator[Note]:
    """What is wrong with the claim: the user's is missing, or ours is not what the spec asks for."""
    name = claim_name(cluster)
    found = _named(claims, name)
    if cluster.spec.gcs_fault_tolerance_options.storage.claim_name:
        if found is None:
            text = f"PVC {cluster.namespace}/{name} does not exist; the head cannot start without it"
            yield Note("Warning", reasons.FAILED_TO_CREATE_PVC, reasons.ACTION_VALIDATE, text)
        return
    claim = storage_claim(cluster)
    differences = _differences(claim["spec"], found.get("spec") or {}) if claim and found else []
    if differences:
        text = f"PVC {cluster.namespace}/{name} stays as it is: {'; '.join(differences)}"
        yield Note("Warning", reasons.FAILED_TO_CREATE_PVC, reasons.ACTION_UPDATE, text)


def _differences(wanted: Manifest, found: Manifest) -> list[str]:
    said = []
    sizes = [str(_size(spec)) for spec in (wanted, found)]
    if Quantity.parse(sizes[0]).nanos != Quantity.parse(sizes[1]).nanos:
        said.append(f"its size is {sizes[1]}, not {sizes[0]}")
    storage_class = wanted.get("storageClassName")
    if storage_class is not None and storage_class != found.get("storageClassName"):
        said.append(f"its class is {found.get('storageClassName')!r}, not {storage_class!r}")
    modes = [sorted(spec.get("accessModes") or ()) for spec in (wanted, found)]
    if modes[0] != modes[1]:
        said.append(f"its access modes are {', '.join(modes[1])}, not {', '.join(modes[0])}")
    return said


def _size(spec: Manifest) -> Any:
    return ((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")


def _named(claims: Sequence[Manifest], name: str) -> Manifest | None:
    return next((claim for claim in claims if claim["metadata"]["name"] == name), None)


def _owned_by(claim: Manifest, owners: Any) -> Manifest:
    """The claim as far as it concerns its owners."""
    metadata = claim["metadata"]
    own = {"name": metadata["name"], "namespace": metadata["namespace"], "ownerReferences": owners}
    return {"apiVersion": claim["apiVersion"], "kind": claim["kind"], "metadata": own}
