"""Real clusters for tests: one per test run, shared by all workers, gone at its end.

A cluster is named after the process that owns the run. All workers of ``pytest -n`` ask for the same name,
and bringing up a cluster that is up does nothing. The owner takes it down; should the owner be killed, the
next run on this machine finds a cluster without an owner and removes it.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from kuberay_op_local.cluster import Cluster
    from kuberay_op_local.health import Probe

PREFIX: Final = "pytest"
OWNED: Final = re.compile(rf"{PREFIX}-(?P<pid>\d+)-[0-9a-f]+-\w+")

#: What a control plane without nodes needs: the controller manager empties deleted namespaces, collects
#: garbage and makes service accounts. Pods stay Pending: no scheduler, no node.
CONTROL_PLANE: Final = ("etcd", "kube-apiserver", "kube-controller-manager")
KWOK_NODES: Final = 10

ACCOUNT_SECONDS: Final = 30.0


class ControlPlane:
    """A running cluster, as tests see it."""

    def __init__(self, cluster: Cluster) -> None:
        from kuberay_op_local.health import Probe  # late: the package is an extra

        self.cluster = cluster
        self._probe: Probe = Probe(cluster.spec, cluster.layout)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.cluster.kubeconfig

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self.cluster.server

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as administrator and give its output."""
        return self.cluster.kubectl(*arguments, stdin=stdin)

    def api(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """One call as administrator, for example ``api("GET", "/api/v1/nodes")``; raises when it fails."""
        answer = self._probe.api(method, path, body)
        answer.raise_for_status()
        result: dict[str, Any] = answer.json()
        return result

    def create_namespace(self, name: str) -> None:
        """Make a namespace and wait until Pods can be created in it."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self.api("POST", "/api/v1/namespaces", body)
        if "kube-controller-manager" not in self.cluster.spec.components:
            return
        path = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        deadline = time.monotonic() + ACCOUNT_SECONDS
        while self._probe.api("GET", path).status_code != 200:
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"namespace {name} got no default service account; see `logs` of the cluster"
                )
            time.sleep(0.01)

    def delete_namespace(self, name: str) -> None:
        """Ask for a namespace to be removed; its contents go in the background."""
        self._probe.api("DELETE", f"/api/v1/namespaces/{name}")

    def close(self) -> None:
        """Close the connections; the cluster goes on."""
        self._probe.__exit__()


def new_run() -> str:
    """The name of this test run's clusters, without the last part."""
    return f"{PREFIX}-{os.getpid()}-{secrets.token_hex(3)}"


def bring_up(name: str, **options: Any) -> ControlPlane:
    """Bring a cluster up for tests, with programs that are at hand: a test run never builds any."""
    try:
        from kuberay_op_local.cluster import Cluster
        from kuberay_op_local.errors import LocalError
    except ModuleNotFoundError:
        pytest.fail(
            "fixtures with a real cluster need kuberay-op-local: pip install 'kuberay-op[testing]'",
            pytrace=False,
        )
    sweep()
    try:
        return ControlPlane(Cluster.up(name, make=False, **options))
    except LocalError as error:
        pytest.fail(f"no cluster for this test: {error}", pytrace=False)


def take_down(run: str, suffixes: Sequence[str]) -> None:
    """Remove the clusters of a run, if any were made."""
    try:
        from kuberay_op_local.paths import clusters_dir
    except ModuleNotFoundError:
        return
    for suffix in suffixes:
        name = f"{run}-{suffix}"
        if (clusters_dir() / name).exists():
            from kuberay_op_local.cluster import Cluster  # late: most runs need no cluster

            Cluster(name).down()


def sweep() -> None:
    """Remove clusters of test runs that were killed."""
    import psutil

    from kuberay_op_local.cluster import Cluster
    from kuberay_op_local.paths import clusters_dir

    for folder in clusters_dir().glob(f"{PREFIX}-*"):
        owner = OWNED.fullmatch(folder.name)
        if owner and not psutil.pid_exists(int(owner["pid"])):
            Cluster(folder.name).down()


def namespace_name(test: str) -> str:
    """A namespace name that says which test it is for."""
    words = re.sub(r"[^a-z0-9]+", "-", test.lower()).strip("-")[:40].strip("-")
    return f"{words or 'test'}-{secrets.token_hex(3)}"
