"""The fixtures of the test kit on a real control plane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kuberay_op.testing.controlplane import ControlPlane

pytestmark = pytest.mark.apiserver


def pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "a", "image": "none"}]},
    }


def test_the_namespace_is_there_and_takes_pods(control_plane: ControlPlane, namespace: str) -> None:
    made = control_plane.api("POST", f"/api/v1/namespaces/{namespace}/pods", pod("a"))
    assert made["metadata"]["namespace"] == namespace
    assert made["status"]["phase"] == "Pending"
    assert "a" in control_plane.kubectl("get", "pods", "--namespace", namespace)


def test_every_test_has_its_own_namespace(control_plane: ControlPlane, namespace: str) -> None:
    assert control_plane.api("GET", f"/api/v1/namespaces/{namespace}/pods")["items"] == []


def test_a_private_cluster_can_lose_its_api_server_and_get_it_back(
    own_cluster: Callable[..., ControlPlane],
) -> None:
    plane = own_cluster()
    before = plane.server
    plane.cluster.kill("kube-apiserver")
    assert plane.cluster.status().state == "broken"
    plane.cluster.start("kube-apiserver")
    assert plane.server == before
    assert plane.api("GET", "/api/v1/namespaces/default")["status"]["phase"] == "Active"
