"""``kuberay-op adopt --check`` on clusters that the reference made: told beforehand what would change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from kuberay_op.commands.adopt import CHANGES, adopt
from kuberay_op.testing.controlplane import ControlPlane, namespace_name
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.go_modules import ModuleUnavailableError
from kuberay_op.testing.reference import BUILD_SECONDS, reference_program, running
from tests.conformance.stage import Side
from tests.conformance.test_adoption import incomplete, manifests_of_shapes, until

pytestmark = pytest.mark.apiserver


@pytest.fixture(scope="module")
def reference() -> Path:
    """The reference operator."""
    try:
        return reference_program()
    except ModuleUnavailableError as error:
        pytest.skip(f"the reference operator cannot be had here: {error}")


@pytest.mark.timeout(BUILD_SECONDS + 300)
def test_no_pod_of_the_reference_would_be_touched(
    kwok_cluster: ControlPlane, reference: Path, tmp_path: Path
) -> None:
    install_crds(kwok_cluster)
    side = Side(kwok_cluster, namespace_name("adopt"))
    kwok_cluster.create_namespace(side.namespace)
    try:
        settings = {
            "apiVersion": "config.ray.io/v1alpha1",
            "kind": "Configuration",
            "metricsAddr": "0",
            "probeAddr": "0",
            "enableLeaderElection": False,
            "reconcileConcurrency": 4,
            "watchNamespace": side.namespace,
        }
        file = tmp_path / "configuration.yaml"
        file.write_text(yaml.safe_dump(settings))
        environment = {"KUBECONFIG": str(kwok_cluster.kubeconfig)}
        manifests = manifests_of_shapes(side.namespace)
        with running([str(reference), f"--config={file}"], environment, tmp_path / "reference.log"):
            side.create(manifests)
            until(lambda: incomplete(side, manifests))

        code, found = check(kwok_cluster, side)
        assert code == CHANGES, "labels and annotations of ours would be added"
        assert len(found) == len(manifests)
        assert [each["object"] for each in found if each["refused"]] == []
        pods = [action for each in found for action in each["actions"] if action["kind"] == "Pod"]
        assert {action["action"] for action in pods} <= {"change"}
        assert {tuple(action["patch"]) for action in pods} <= {
            ("metadata",),
            ("kind", "metadata"),
            ("metadata", "kind"),
        }
    finally:
        side.release()


def check(plane: ControlPlane, side: Side) -> tuple[int, list[dict[str, Any]]]:
    arguments = ["--check", "-n", side.namespace, "--kubeconfig", str(plane.kubeconfig), "--output", "json"]
    done = CliRunner().invoke(adopt, arguments)
    return done.exit_code, json.loads(done.stdout)
