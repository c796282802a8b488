"""The operator beside a local cluster: started, left alone by ``up``, ended by ``down``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kuberay_op_local import processes
from kuberay_op_local.cluster import Cluster
from kuberay_op_local.components import OPERATOR
from kuberay_op_local.errors import LocalError
from kuberay_op_local.operator import install

pytestmark = pytest.mark.apiserver


@pytest.fixture
def cluster(state_home: Path) -> Iterator[Cluster]:
    cluster = Cluster.up("with-operator", node="none")
    yield cluster
    cluster.down()


def test_it_runs_beside_the_cluster_and_ends_with_it(cluster: Cluster) -> None:
    said: list[str] = []
    install(cluster, say=said.append)
    assert any("the operator works" in line for line in said)
    assert "rayclusters" in cluster.kubectl("get", "crds")

    first = processes.find(cluster.layout.root)[OPERATOR]
    Cluster.up("with-operator", node="none")
    assert processes.find(cluster.layout.root)[OPERATOR].pid == first.pid

    with pytest.raises(LocalError, match="operator ended while it was starting") as caught:
        install(cluster, ["--no-such-flag"])
    assert "no-such-flag" in str(caught.value)
    assert not processes.alive(first)

    install(cluster, ["--qps=50"])
    last = processes.find(cluster.layout.root)[OPERATOR]
    cluster.down()
    assert not processes.alive(last)
