"""Owner references: what makes a child its owner's."""

from __future__ import annotations

from typing import Any

from kuberay_op.api import labels
from kuberay_op.frozen import thaw
from kuberay_op.plan.actions import Manifest


def owned(obj: Manifest, owner: Manifest, plugin: str) -> Manifest:
    """A plugin's object as a child of the owner."""
    owned: dict[str, Any] = thaw(obj)
    metadata = owned.setdefault("metadata", {})
    metadata["namespace"] = owner["metadata"].get("namespace")
    metadata["labels"] = {**(metadata.get("labels") or {}), labels.PLUGIN: plugin}
    metadata["ownerReferences"] = [owner_reference(owner)]
    return owned


def owner_reference(owner: Manifest) -> dict[str, Any]:
    """The reference by which a child is the owner's, and goes with it."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"].get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
