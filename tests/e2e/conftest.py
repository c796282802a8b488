"""One real node with the operator as a Pod and real Ray, for all end-to-end tests."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from kuberay_op_local.cluster import Cluster

ROOT: Final = Path(__file__).parents[2]
RAY: Final = "rayproject/ray:2.60.0"
OPERATOR_NAMESPACE: Final = "ray-system"

#: A Ray task and its answer, as one line of Python.
TASK: Final = "import ray; ray.init(); print('answer', ray.get(ray.remote(lambda: 6 * 7).remote()))"


@dataclass(frozen=True)
class Node:
    """A cluster with a real node, as tests talk to it."""

    cluster: Cluster

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout: float = 300.0) -> str:
        """Run kubectl and give its output."""
        return self.cluster.kubectl(*arguments, stdin=stdin, timeout=timeout)

    def apply(self, *documents: dict[str, Any]) -> None:
        """Create or change objects."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(listed))

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """Read an object; empty when it is not there."""
        found: dict[str, Any] = json.loads(
            self.kubectl("get", kind, name, "--ignore-not-found", "-o", "json") or "{}"
        )
        return found

    def wait(
        self, kind: str, name: str, what: Callable[[dict[str, Any]], bool], seconds: float
    ) -> dict[str, Any]:
        """Wait until something holds for an object; shows its status when it never does."""
        deadline = time.monotonic() + seconds
        while not what(found := self.get(kind, name)):
            status = json.dumps(found.get("status"), indent=1)
            assert time.monotonic() < deadline, f"{kind} {name} stays like this: {status}"
            time.sleep(1)
        return found


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A real node that has our images; skipped where there cannot be one."""
    able = pytest.importorskip("kuberay_op_local.real.able", reason="needs the package kuberay-op-local")
    reason = able.why_not()
    if reason is not None:
        pytest.skip(reason)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with able.real_cluster(
            "e2e", images=["operator", "ray", "submitter", "redis"], source=ROOT
        ) as cluster:
            yield Node(cluster)


@pytest.fixture(scope="session")
def operator(node: Node) -> Node:
    """The node with our operator installed by our chart: a Pod with a service account."""
    helm = node.cluster.spec.programs.get("helm")
    if helm is None:
        from kuberay_op_local import binaries  # late: the package is an extra

        found = binaries.resolve(
            ["helm"], kubernetes=node.cluster.spec.kubernetes, folder=None, say=print, make=False
        )
        helm = str(found["helm"])
    chart = str(ROOT / "charts" / "kuberay-operator")
    command = [helm, "install", "kuberay-operator", chart, "-n", OPERATOR_NAMESPACE, "--create-namespace"]
    done = subprocess.run(
        [*command, "--wait", "--timeout=180s"],
        env=node.cluster.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return node


def ray_pod(*, memory: str = "2Gi", name: str = "ray-head") -> dict[str, Any]:
    """The template of a Ray Pod with our image."""
    asked = {"cpu": "1", "memory": memory}
    container = {"name": name, "image": RAY, "resources": {"requests": asked, "limits": asked}}
    return {"spec": {"containers": [container]}}


def cluster_spec(*, workers: int) -> dict[str, Any]:
    """The spec of a small RayCluster."""
    group = {
        "groupName": "small",
        "replicas": workers,
        "minReplicas": workers,
        "maxReplicas": workers,
        "rayStartParams": {},
        "template": ray_pod(memory="1Gi", name="ray-worker"),
    }
    return {
        "rayVersion": "2.60.0",
        "headGroupSpec": {"rayStartParams": {"dashboard-host": "0.0.0.0"}, "template": ray_pod()},
        "workerGroupSpecs": [group] if workers else [],
    }
