"""A release of the operator's chart on a cluster of its own, whose every call is recorded."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kuberay_op.testing.audit import AuditLog
from kuberay_op.testing.controlplane import ControlPlane
from tests.charts.helm import CHARTS, Json, helm
from tests.charts.kubelet import HERE, Kubelet

NAMESPACE: Final = "ray-system"
RELEASE: Final = "kuberay-operator"
ACCOUNT: Final = f"system:serviceaccount:{NAMESPACE}:kuberay-operator"

#: So that the operator is ready soon; the reference's ten seconds are for slower starts.
SOON: Final[Json] = {**HERE, "readinessProbe": {"initialDelaySeconds": 0}}


class Release:
    """The release, and the cluster it is on."""

    def __init__(self, plane: ControlPlane, kubelet: Kubelet, audit: AuditLog) -> None:
        self.plane = plane
        self.kubelet = kubelet
        self.audit = audit

    def helm(self, command: str, *arguments: str, values: Mapping[str, Any] | None = None) -> str:
        """Run helm on the cluster; it must succeed."""
        where = ("--namespace", NAMESPACE, "--kubeconfig", str(self.plane.kubeconfig))
        more = ("--values", "-") if values is not None else ()
        text = None if values is None else yaml.safe_dump({**SOON, **values})
        done = helm(command, RELEASE, *arguments, *where, *more, stdin=text)
        assert done.returncode == 0, f"{done.stderr}\n{self.kubelet.log('kuberay-operator')[-3000:]}"
        return done.stdout

    def install(self, chart: str | Path = "kuberay-operator", *arguments: str, **values: Any) -> str:
        """Install the chart."""
        return self.helm("install", str(CHARTS / chart), *arguments, values=values)

    def upgrade(self, chart: str | Path = "kuberay-operator", *arguments: str, **values: Any) -> str:
        """Upgrade to the chart."""
        return self.helm("upgrade", str(CHARTS / chart), *arguments, values=values)

    def available(self) -> None:
        """Wait until the operator of the present release says that it is ready."""
        where = ("--namespace", NAMESPACE, "--timeout=120s")
        try:
            self.plane.kubectl("rollout", "status", "deployment/kuberay-operator", *where)
        except Exception as error:
            raise AssertionError(f"{error}\n{self.kubelet.log('kuberay-operator')[-3000:]}") from error

    def crd(self, plural: str = "rayclusters") -> Json:
        """A CRD as it is on the cluster."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        return self.plane.api("GET", f"{path}/{plural}.ray.io")


@pytest.fixture
def release(own_cluster: Callable[..., ControlPlane], tmp_path: Path) -> Iterator[Release]:
    """A fresh cluster with kwok's nodes for Ray, and this process as kubelet for what the chart installs."""
    folder = tmp_path / "pods"
    folder.mkdir()
    audit = AuditLog(tmp_path, [ACCOUNT], reads=True)
    plane = own_cluster(only=None, node="kwok:2", extra_args={"kube-apiserver": audit.arguments()})
    plane.create_namespace(NAMESPACE)
    with Kubelet(plane, NAMESPACE, folder) as kubelet:
        yield Release(plane, kubelet, audit)


@pytest.fixture
def previous_chart(tmp_path: Path) -> Path:
    """The chart of the commit before the last one that changed it."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("git, which knows the chart before the last change, is not installed")

    def run(*arguments: str) -> bytes:
        done = subprocess.run([git, *arguments], cwd=CHARTS.parent, capture_output=True, check=False)
        return done.stdout

    found = run("log", "-2", "--format=%H", "--", "charts/kuberay-operator").decode().split()
    if len(found) < 2:
        pytest.skip("this checkout has no history of the chart to upgrade from")
    with tarfile.open(fileobj=io.BytesIO(run("archive", found[1], "charts/kuberay-operator"))) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "charts" / "kuberay-operator"
