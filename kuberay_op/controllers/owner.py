"""What makes a plugin's object a child of its owner."""

from __future__ import annotations

from typing import Any

from kuberay_op.api import labels
from kuberay_op.build.metadata import owner_reference
from kuberay_op.frozen import thaw
from kuberay_op.kube.resource import JOBS
from kuberay_op.plan.actions import Manifest


def owned(obj: Manifest, owner: Manifest, plugin: str, *, waited_for: bool = False) -> Manifest:
    """A plugin's object as a child of the owner."""
    owned: dict[str, Any] = thaw(obj)
    metadata = owned.setdefault("metadata", {})
    metadata["namespace"] = owner["metadata"].get("namespace")
    marks = {labels.PLUGIN: plugin} | ({labels.WAITED_FOR: "yes"} if waited_for else {})
    if owned.get("kind") == JOBS.kind:
        marks[labels.CREATED_BY] = labels.COMPONENT  # by which Jobs are watched
    metadata["labels"] = {**(metadata.get("labels") or {}), **marks}
    metadata["ownerReferences"] = [owner_reference(owner)]
    return owned
