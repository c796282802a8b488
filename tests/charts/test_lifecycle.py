"""The life of a release on a real cluster: install, test, upgrade, rollback, uninstall, and what the CRDs do.

The Pods of the chart run as processes here (see ``kubelet.py``); everything else is real.
"""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import yaml

from kuberay_op import __version__
from kuberay_op.api.crds import VERSIONS, crd
from kuberay_op.commands.crds_apply import WRITER
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.go_modules import ModuleUnavailableError, module_dir
from kuberay_op.testing.reference import MODULE, VERSION
from tests.charts.conftest import NAMESPACE, RELEASE, Release
from tests.charts.helm import CHARTS, Json, helm

pytestmark = pytest.mark.apiserver

#: A values file as people wrote it for the reference's chart 1.0 to 1.6.
REFERENCE_VALUES: Json = {
    "image": {"repository": "quay.io/kuberay/operator", "tag": "v1.6.0", "pullPolicy": "IfNotPresent"},
    "nameOverride": "kuberay-operator",
    "fullnameOverride": "kuberay-operator",
    "serviceAccount": {"create": True, "name": "kuberay-operator"},
    "logging": {
        "stdoutEncoder": "json",
        "fileEncoder": "json",
        "baseDir": "",
        "fileName": "",
        "sizeLimit": "",
    },
    "batchScheduler": {"enabled": False, "name": ""},
    "featureGates": [{"name": "RayClusterStatusConditions", "enabled": True}],
    "metrics": {"enabled": True, "serviceMonitor": {"enabled": False}},
    "operatorCommand": "/manager",
    "leaderElectionEnabled": True,
    "rbacEnable": True,
    "crNamespacedRbacEnable": True,
    "singleNamespaceInstall": False,
    "env": [{"name": "ENABLE_PROBES_INJECTION", "value": "true"}],
    "resources": {"limits": {"cpu": "100m", "memory": "512Mi"}},
    "livenessProbe": {"initialDelaySeconds": 10, "periodSeconds": 5, "failureThreshold": 5},
    "podSecurityContext": {},
    "service": {"type": "ClusterIP", "port": 8080},
}


def of_ours(found: Json) -> bool:
    """Whether a CRD is as this version has it, in its fields and by its mark."""
    kind = found["spec"]["names"]["kind"]
    wanted = crd(kind)["spec"]["versions"]
    same = [each["schema"] for each in found["spec"]["versions"]] == [each["schema"] for each in wanted]
    return same and found["metadata"].get("annotations", {}).get(WRITER) == __version__


def reference_crds() -> list[Path]:
    """The files of the reference's CRDs; none where its module cannot be downloaded."""
    try:
        folder = module_dir(MODULE, VERSION) / "config" / "crd" / "bases"
    except ModuleUnavailableError:
        return []
    return sorted(folder.glob("*.yaml"))


@pytest.fixture
def third_party(release: Release, tmp_path: Path) -> str:
    """The image of a third party's plugin: what pip makes of a package that is nowhere else."""
    package, image = tmp_path / "licence", tmp_path / "image"
    ours = [sys.executable, "-c", "from kuberay_op.cli import main; main()"]
    subprocess.run(
        [*ours, "plugin", "new", "licence", "--python", "--folder", str(package)],
        check=True,
        capture_output=True,
    )
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(image / "plugins"), str(package)], check=True, capture_output=True)
    release.kubelet.images["example.org/licence:1"] = image
    return "example.org/licence:1"


def test_a_release_lives(release: Release, previous_chart: Path, third_party: str) -> None:
    # By the chart as it was before, on a cluster that has one of the reference's CRDs, and not the others.
    for path in reference_crds():
        if path.stem.endswith("rayclusters"):
            release.plane.kubectl("create", "-f", str(path))
    release.install(previous_chart, "--skip-crds")
    release.available()

    # To this one, with a values file of the reference; the new operator takes over from the old.
    release.upgrade(**REFERENCE_VALUES)
    release.available()
    assert all(of_ours(release.crd(views[0].PLURAL)) for views in VERSIONS.values())

    # It works: `helm test` makes a cluster and waits for it.
    said = release.helm("test", "--timeout", "2m")
    assert "Phase:          Succeeded" in said or "Succeeded" in said, said
    assert ": ready" in release.kubelet.log("kuberay-operator-test")

    # By a configuration file, with a plugin in the values, and one in Python that our image does not have.
    notes = {
        "apiVersion": "kuberay-op/v1alpha1",
        "kind": "Plugin",
        "name": "team",
        "summary": "Put the team on every Pod.",
        "patches": [
            {"name": "a", "match": {"object": "Pod"}, "merge": {"metadata": {"labels": {"team": "ml"}}}}
        ],
    }
    release.upgrade(yamlPlugins={"team": notes}, extraPlugins=[{"name": "licence", "image": third_party}])
    release.available()
    done = helm(
        *("install", "demo", str(CHARTS / "ray-cluster")),
        *(
            "--kubeconfig",
            str(release.plane.kubeconfig),
            "--namespace",
            "default",
            "--set",
            "worker.replicas=2",
        ),
    )
    assert done.returncode == 0, done.stderr
    ready = ("--for=jsonpath={.status.state}=ready", "--timeout=120s")
    release.plane.kubectl("wait", "raycluster/demo-kuberay", *ready)
    pods = release.plane.kubectl(
        "get", "pods", "-l", "team=ml,example.com/plugin=licence,ray.io/cluster=demo-kuberay", "-o", "name"
    )
    assert len(pods.split()) == 3

    # Helm keeps a release in a Secret, which can hold 1 MiB.
    stored = release.plane.api(
        "GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/sh.helm.release.v1.{RELEASE}.v3"
    )
    assert len(base64.b64decode(stored["data"]["release"])) < 200 * 1024

    # Back, and away. What people made stays, and so do the kinds.
    release.helm("rollback", "2")
    release.available()
    release.helm("uninstall")
    assert release.plane.kubectl("get", "raycluster/demo-kuberay", "-o", "name").strip()
    left = release.plane.kubectl(
        *("get", "all,configmaps,roles,rolebindings,serviceaccounts,leases", "-n", NAMESPACE),
        *("-l", "app.kubernetes.io/managed-by=Helm", "-o", "name"),
    )
    assert left == ""


@pytest.mark.slow
def test_crds_are_brought_up_to_date(release: Release) -> None:
    # The reference's are there, made by somebody else, and Helm is told to leave CRDs alone.
    for path in reference_crds():
        release.plane.kubectl("create", "-f", str(path))
    release.install("kuberay-operator", "--skip-crds", replicas=0)
    assert of_ours(release.crd())

    # Those of a newer version stay: another release on this cluster needs them.
    release.plane.kubectl("annotate", "crd/rayclusters.ray.io", f"{WRITER}=99.0.0", "--overwrite")
    release.upgrade(replicas=0, labels={"a": "b"})
    assert release.crd()["metadata"]["annotations"][WRITER] == "99.0.0"
    assert "rayclusters.ray.io: kept, it is of version 99.0.0" in release.kubelet.log("kuberay-operator-crds")

    # They go only when told.
    release.helm("uninstall")
    assert release.crd()
    release.install(replicas=0, crds={"removeOnUninstall": True})
    release.helm("uninstall")
    deleted = release.plane.kubectl("wait", "--for=delete", "crd/rayjobs.ray.io", "--timeout=60s")
    assert deleted.strip() in (
        "",
        "customresourcedefinition.apiextensions.k8s.io/rayjobs.ray.io condition met",
    )
    with pytest.raises(httpx.HTTPStatusError, match="404"):
        release.crd("rayjobs")


def test_one_namespace_needs_no_rights_beyond_it(control_plane: ControlPlane, namespace: str) -> None:
    """With ``singleNamespaceInstall`` somebody who may do everything in a namespace can install the chart."""
    install_crds(control_plane)  # somebody else's business
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    metadata = {"name": "all", "namespace": namespace}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": metadata,
        "rules": rules,
    }
    control_plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(role))
    control_plane.kubectl("create", "rolebinding", "all", "--role=all", "--user=alice", "-n", namespace)
    done = helm(
        *("install", "mine", str(CHARTS / "kuberay-operator"), "--skip-crds", "--namespace", namespace),
        *("--kubeconfig", str(control_plane.cluster.issue_client_cert("alice"))),
        *("--set", "singleNamespaceInstall=true,replicas=0"),
    )
    assert done.returncode == 0, done.stderr
    for namespaced in ("roles", "rolebindings", "deployments"):
        found = control_plane.kubectl("get", namespaced, "-n", namespace, "-o", "name")
        assert "/kuberay-operator" in found
