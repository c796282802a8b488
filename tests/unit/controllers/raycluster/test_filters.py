"""Which changes of a Pod start a pass."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.controllers.raycluster.filters import pod_news
from kuberay_op.frozen import freeze
from kuberay_op.testing import make, pods
from kuberay_op.testing.changes import changed

CLUSTER = make.raycluster("a", make.stored())
RUNNING = pods.worker(CLUSTER)
PENDING = pods.worker(CLUSTER, phase="Pending")


def news(pod: dict[str, Any], changes: dict[str, Any]) -> bool:
    return pod_news(freeze(pod), freeze(changed(pod, changes)))


@pytest.mark.parametrize(
    ("pod", "changes"),
    [
        (RUNNING, {"metadata.deletionTimestamp": "2026-01-01T00:00:00Z"}),
        (RUNNING, {"metadata.labels.x": "y"}),
        (RUNNING, {"metadata.annotations": {"x": "y"}}),
        (RUNNING, {"status.phase": "Failed"}),
        (RUNNING, {"status.podIP": "10.0.0.2"}),
        (RUNNING, {"status.conditions.0.status": "False"}),
        (PENDING, {"status": {"phase": "Pending", **pods.waiting("ErrImagePull")}}),
        (PENDING, {"status.conditions": [{"type": "PodScheduled", "status": "False"}]}),
        (RUNNING, {"metadata.ownerReferences": []}),
    ],
)
def test_what_a_plan_or_a_status_would_say_differently(pod: dict[str, Any], changes: dict[str, Any]) -> None:
    assert news(pod, changes)


@pytest.mark.parametrize(
    ("pod", "changes"),
    [
        (RUNNING, {"metadata.resourceVersion": "2"}),
        (RUNNING, {"status.hostIP": "10.1.1.1"}),
        (PENDING, {"spec.nodeName": "n1"}),
        (PENDING, {"status.conditions": [{"type": "PodScheduled", "status": "True"}]}),
        (PENDING, {"status": {"phase": "Pending", **pods.waiting("ContainerCreating")}}),
        (RUNNING, {"status.conditions.0.lastProbeTime": "2026-01-01T00:00:00Z"}),
    ],
)
def test_what_is_only_on_the_way(pod: dict[str, Any], changes: dict[str, Any]) -> None:
    assert not news(pod, changes)
