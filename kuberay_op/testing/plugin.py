"""The pytest plugin of kuberay-op (entry point ``pytest11``): options, hooks and fixtures.

It is imported in every test run in the environment, so it imports little; clusters come late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from kuberay_op.testing import controlplane
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.golden import Golden

#: Each module of the kit that brings fixtures of its own.
pytest_plugins = ("kuberay_op.testing.loop_guard", "kuberay_op.testing.ray_fixtures")

RUN: Final = pytest.StashKey[str]()
RUN_KEY: Final = "kuberay_op_run"

#: Suffixes of the clusters one run may have.
PLAIN: Final = "plain"
KWOK: Final = "kwok"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-golden``."""
    group = parser.getgroup("kuberay-op")
    group.addoption("--update-golden", action="store_true", help="write golden files instead of comparing")


def pytest_configure(config: pytest.Config) -> None:
    """Name the run; a worker of xdist gets the name from its controller."""
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    config.stash[RUN] = worker[RUN_KEY] if worker else controlplane.new_run()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of xdist which run it is part of."""
    node.workerinput[RUN_KEY] = node.config.stash[RUN]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Take the run's clusters down: in the controller, also after a failure or Ctrl-C."""
    if RUN in config.stash and not hasattr(config, "workerinput"):
        controlplane.take_down(config.stash[RUN], (PLAIN, KWOK))


@pytest.fixture(scope="session")
def control_plane(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """A real control plane without nodes: etcd, API server, controller manager."""
    plane = controlplane.bring_up(f"{pytestconfig.stash[RUN]}-{PLAIN}", only=controlplane.CONTROL_PLANE)
    yield plane
    plane.close()


@pytest.fixture(scope="session")
def kwok_cluster(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """A cluster with nodes played by kwok: Pods are scheduled, Running and Ready at once."""
    plane = controlplane.bring_up(f"{pytestconfig.stash[RUN]}-{KWOK}", node=f"kwok:{controlplane.KWOK_NODES}")
    yield plane
    plane.close()


@pytest.fixture
def namespace(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace on the control plane, removed after the test."""
    name = controlplane.namespace_name(request.node.name)
    control_plane.create_namespace(name)
    yield name
    control_plane.delete_namespace(name)


@pytest.fixture
def kwok_namespace(kwok_cluster: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace on the kwok cluster, removed after the test."""
    name = controlplane.namespace_name(request.node.name)
    kwok_cluster.create_namespace(name)
    yield name
    kwok_cluster.delete_namespace(name)


@pytest.fixture
def own_cluster() -> Iterator[Callable[..., ControlPlane]]:
    """A maker of clusters for this test alone, to kill at will; it takes what ``Cluster.up`` takes."""
    made: list[ControlPlane] = []

    def make(**options: Any) -> ControlPlane:
        plane = controlplane.bring_up(
            f"{controlplane.new_run()}-own", **{"only": controlplane.CONTROL_PLANE, **options}
        )
        made.append(plane)
        return plane

    yield make
    for plane in made:
        plane.close()
        plane.cluster.down()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Golden files beside the test file; ``--update-golden`` writes them."""
    root = request.config.rootpath
    file = request.path.relative_to(root) if request.path.is_relative_to(root) else request.path
    return Golden(
        request.path.parent / "golden",
        update=request.config.getoption("--update-golden"),
        command=f"pytest {file} --update-golden",
    )
