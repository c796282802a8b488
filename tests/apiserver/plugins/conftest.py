"""Shared by the tests of plugins: an operator on a cluster with kwok nodes, and questions to ask about it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest

from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.world import World, world_on

Start = Callable[..., AbstractAsyncContextManager[World]]


@pytest.fixture
def start(kwok_cluster: ControlPlane, kwok_namespace: str) -> Start:
    """Starts an operator with the given plugins, which sees the test's own namespace only."""
    return partial(world_on, kwok_cluster, kwok_namespace)
