"""What users get: the wheel holds the Go module and kwok's stages."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from kuberay_op_local import versions

PACKAGE = Path(__file__).parents[1]


def test_the_wheel_holds_everything_a_build_needs(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)],
        cwd=PACKAGE,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    source = PACKAGE / "src"
    ours = {
        str(path.relative_to(source))
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert ours <= held
    assert {"kuberay_op_local/go/go.sum", "kuberay_op_local/stages.yaml"} <= ours


def test_the_go_module_requires_the_versions_we_say() -> None:
    requirements = versions.module_of("etcd").sources()["go.mod"]
    for line in (
        f"go {versions.GO}.0",
        f"k8s.io/kubernetes v{versions.KUBERNETES}",
        f"go.etcd.io/etcd/server/v3 v{versions.ETCD}",
        f"sigs.k8s.io/kwok v{versions.KWOK}",
        f"helm.sh/helm/v4 v{versions.HELM}",
        f"k8s.io/api => k8s.io/api v0.{versions.KUBERNETES.partition('.')[2]}",
    ):
        assert line in requirements
    node = versions.module_of("kubelet").sources()["go.mod"]
    assert f"k8s.io/kubernetes v{versions.KUBERNETES}" in node
    assert f"github.com/coredns/coredns v{versions.COREDNS}" in node
