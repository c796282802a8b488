"""The chart of the operator: it needs an image, and installs on a real API server."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op_local import binaries, versions

CHART = Path(__file__).parents[2] / "charts" / "kuberay-operator"

pytestmark = pytest.mark.apiserver


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    found = binaries.resolve(["helm"], kubernetes=versions.KUBERNETES, folder=None, say=lambda _: None)
    return subprocess.run([found["helm"], *arguments], capture_output=True, text=True, check=False)


def rendered(*arguments: str) -> list[dict[str, Any]]:
    done = helm("template", "ray", str(CHART), *arguments)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def test_without_an_image_it_says_what_is_missing() -> None:
    done = helm("template", "ray", str(CHART))
    assert done.returncode != 0
    assert "image.repository: no image is published yet" in done.stderr


def test_values_reach_the_deployment() -> None:
    objects = rendered(
        "--set", "image.repository=mine", "--set", "watchNamespaces={a,b}", "--set", "args={--qps=50}"
    )
    (deployment,) = [found for found in objects if found["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "mine:0.1.0"
    assert container["args"][1:] == ["--watch-namespace=a,b", "--qps=50"]


def test_it_installs_and_goes(kwok_cluster: ControlPlane, kwok_namespace: str) -> None:
    release = f"op-{kwok_namespace[-6:]}"
    where = ("--namespace", kwok_namespace, "--kubeconfig", str(kwok_cluster.kubeconfig))
    done = helm("install", release, str(CHART), "--skip-crds", "--set", "image.repository=x", *where)
    assert done.returncode == 0, done.stderr
    available = ("--for=condition=Available", "--timeout=120s")
    kwok_cluster.kubectl("wait", "deployment", release, "-n", kwok_namespace, *available)
    gone = helm("uninstall", release, *where)
    assert gone.returncode == 0, gone.stderr
