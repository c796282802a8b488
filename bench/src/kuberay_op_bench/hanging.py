"""How long others wait while a plugin hangs: a real API server, and more bad objects than workers."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

from kuberay_op.api import labels
from kuberay_op.api.crds import crd
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.hooks import Scope, hookimpl
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, PODS
from kuberay_op.logs import LogSettings, setup
from kuberay_op.testing import make
from kuberay_op.testing.operator import eventually, running_operator
from kuberay_op_bench.report import Measure

#: Seconds within which a good object must have its head Pod, whatever a plugin does to others.
TARGET: Final = 2.0

CONTROL_PLANE: Final = ("etcd", "kube-apiserver", "kube-controller-manager")


async def nothing(scope: Scope) -> None:
    """Answers at once: what there is to compare with."""


async def awaits(scope: Scope) -> None:
    """Never comes back, as a coroutine."""
    if scope.name.startswith("bad-"):
        await asyncio.Event().wait()


def sleeps(scope: Scope) -> None:
    """Never comes back, in a system call."""
    if scope.name.startswith("bad-"):
        time.sleep(3600)


def spins(scope: Scope) -> None:
    """Never comes back, computing."""
    while scope.name.startswith("bad-"):
        pass


HANGS: Final[dict[str, Callable[[Scope], Any]]] = {
    "awaits for ever": awaits,
    "sleeps for ever": sleeps,
    "computes for ever": spins,
}


def measures(bad: int, good: int) -> Iterator[Measure]:
    """The longest of ``good`` waits for a head Pod, with ``bad`` objects for which a plugin hangs."""
    from kuberay_op_local.cluster import Cluster  # late: the other measures need no cluster

    cluster = Cluster.up(f"bench-hooks-{Random().getrandbits(32):08x}", only=CONTROL_PLANE)  # noqa: S311 (a name)
    try:
        with setup(LogSettings(file=Path(os.devnull), level=100)):  # it has much to complain about
            asyncio.run(_install(cluster.kubeconfig))
            for name, hang in {"does nothing": nothing, **HANGS}.items():
                waits = asyncio.run(_waits(cluster.kubeconfig, hang, bad, good))
                target = TARGET if name in HANGS else None
                what = f"head Pod of a new cluster while a plugin {name}, longest of {good}"
                yield Measure(what, round(max(waits), 3), "s", at_most=target)
    finally:
        cluster.down()


async def _install(kubeconfig: Path) -> None:
    async def served() -> bool:
        try:
            await client.list(RAY_CLUSTERS)
        except NotFound:
            return False
        return True

    async with await Client.connect(kubeconfig) as client:
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd("RayCluster"), reason="a benchmark")
        await eventually(served)


async def _waits(kubeconfig: Path, hang: Callable[[Scope], Any], bad: int, good: int) -> list[float]:
    class Plugin:
        kuberay_before_reconcile = staticmethod(hookimpl(hang))

    namespace = f"bench-{hang.__name__}"
    async with running_operator(
        kubeconfig, namespaces=[namespace], plugins={"hanging": Plugin()}
    ) as operator:
        client = operator.client
        await client.create(NAMESPACES, {"metadata": {"name": namespace}}, reason="a benchmark")
        for number in range(bad):
            await _create(client, namespace, f"bad-{number}")
        return [await _wait(client, namespace, f"good-{number}") for number in range(good)]


async def _wait(client: Client, namespace: str, name: str) -> float:
    async def head() -> list[Any]:
        return (await client.list(PODS, namespace, label_selector=f"{labels.CLUSTER}={name}")).items

    began = time.perf_counter()
    await _create(client, namespace, name)
    await eventually(head)
    return time.perf_counter() - began


async def _create(client: Client, namespace: str, name: str) -> None:
    await client.create(RAY_CLUSTERS, make.raycluster(name, make.namespace(namespace)), reason="a benchmark")
