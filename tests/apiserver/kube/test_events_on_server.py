"""That Kubernetes accepts our events and counts."""

from __future__ import annotations

import random

import pytest

from kuberay_op.clock import SystemClock
from kuberay_op.kube.client import Client
from kuberay_op.kube.events import Events
from kuberay_op.kube.resource import CONFIG_MAPS, EVENTS, NAMESPACES
from kuberay_op.testing.controlplane import ControlPlane
from tests.apiserver.kube.objects import config_map

pytestmark = pytest.mark.apiserver


async def test_events_and_series(client: Client, namespace: str, control_plane: ControlPlane) -> None:
    rng = random.Random(1)  # noqa: S311 (seeded on purpose)
    events = Events(client, clock=SystemClock(), rng=rng)
    recorder = events.recorder("raycluster-controller")
    about = await client.create(CONFIG_MAPS, config_map(namespace, "a"), reason="test")
    for _ in range(5):
        recorder.warning(about, "FailedToCreateHeadPod", "Create", "no quota")
    recorder.normal(about, "CreatedHeadPod", "Create", "é" * 2000)
    await events.flush(grace=30.0)
    assert events.dropped == 0
    listed = (await client.list(EVENTS, namespace)).items
    [failed] = [item for item in listed if item["reason"] == "FailedToCreateHeadPod"]
    [created] = [item for item in listed if item["reason"] == "CreatedHeadPod"]
    assert failed["series"]["count"] == 5
    assert failed["regarding"]["uid"] == about["metadata"]["uid"]
    assert failed["reportingController"] == "raycluster-controller"
    assert len(created["note"].encode()) <= 1024
    described = control_plane.kubectl("describe", "configmap", "a", "-n", namespace)
    assert "no quota" in described


async def test_events_of_what_has_no_namespace(client: Client, namespace: str) -> None:
    rng = random.Random(1)  # noqa: S311 (seeded on purpose)
    events = Events(client, clock=SystemClock(), rng=rng)
    about = await client.get(NAMESPACES, namespace)
    events.recorder("c").normal(about, "Reason", "Create", "hello")
    await events.flush(grace=30.0)
    assert events.dropped == 0


async def test_events_in_a_namespace_that_is_gone_are_dropped(client: Client) -> None:
    rng = random.Random(1)  # noqa: S311 (seeded on purpose)
    events = Events(client, clock=SystemClock(), rng=rng)
    about = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "not-there", "uid": "u"},
    }
    events.recorder("c").normal(about, "Reason", "Create", "hello")
    await events.flush(grace=30.0)
    assert events.dropped == 1
