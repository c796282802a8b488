"""Kubernetes Events as kinds decide on them, before anybody records them."""

from __future__ import annotations

from dataclasses import dataclass

from kuberay_op.kube.events import EventType


@dataclass(frozen=True, slots=True)
class Note:
    """One event about the object of a pass."""

    type: EventType
    reason: str
    action: str
    text: str
