"""A cluster with a real node for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kuberay_op_local.cluster import Cluster
from kuberay_op_local.real.able import real_cluster, why_not

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def able() -> None:
    """Skip where no real node can be."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def cluster(able: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for the module, with the image of Python on Debian."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with real_cluster("real", images=["base"], source=ROOT) as made:
            yield made
