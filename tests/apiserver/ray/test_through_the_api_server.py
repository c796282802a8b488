"""Ray behind the API server's own proxy, as with ``--use-kubernetes-proxy``."""

from __future__ import annotations

import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kuberay_op.clock import SystemClock
from kuberay_op.kube.client import Client
from kuberay_op.kube.fence import NotLeader
from kuberay_op.kube.resource import PODS, SERVICES, Resource
from kuberay_op.ray import errors
from kuberay_op.ray.client import Connector
from kuberay_op.ray.dashboard import Dashboard, Submission
from kuberay_op.ray.direct import DirectTransport
from kuberay_op.ray.limits import Gates
from kuberay_op.ray.proxied import ProxiedTransport
from kuberay_op.ray.urls import proxied_service
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.fake_ray import FakeRay

pytestmark = pytest.mark.apiserver

ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")


def own_address() -> str:
    """An address of this machine that is not loopback: the API server passes nothing on to loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; only asks for the route
        return str(probe.getsockname()[0])


async def expose(client: Client, namespace: str, port: int) -> None:
    """A Service whose dashboard port leads to this machine, by way of a Pod that has its address."""
    where = {"name": "ray", "namespace": namespace}
    container = {"name": "ray", "image": "ray"}
    await client.create(PODS, {"metadata": where, "spec": {"containers": [container]}}, reason="test")
    address = {"podIP": own_address(), "podIPs": [{"ip": own_address()}]}
    await client.patch(PODS, "ray", namespace, {"status": address}, subresource="status", reason="test")
    spec = {"clusterIP": "None", "ports": [{"name": "dashboard", "port": port}]}
    await client.create(SERVICES, {"metadata": where, "spec": spec}, reason="test")
    # The API server passes requests on only to what Endpoints say is a Pod.
    target = {"ip": own_address(), "targetRef": {"kind": "Pod", "name": "ray", "namespace": namespace}}
    subset = {"addresses": [target], "ports": [{"name": "dashboard", "port": port}]}
    await client.create(ENDPOINTS, {"metadata": where, "subsets": [subset]}, reason="test")


@asynccontextmanager
async def dashboard_of(client: Client, namespace: str) -> AsyncIterator[Dashboard]:
    """The cluster's dashboard, through the API server."""
    clock = SystemClock()
    gates = Gates(clock=clock, rng=random.Random(1))  # noqa: S311 (for jitter)
    async with DirectTransport() as direct:
        connector = Connector(direct=direct, gates=gates, clock=clock, proxied=ProxiedTransport(client))
        yield Dashboard(connector.client(f"{namespace}/ray", proxied_service(namespace, "ray")))


async def test_a_job_is_submitted_watched_and_stopped(control_plane: ControlPlane, namespace: str) -> None:
    fake = FakeRay(auto=True)
    await fake.start(host=own_address())
    async with await Client.connect(control_plane.kubeconfig, qps=0) as client:
        try:
            await expose(client, namespace, fake.port)
            async with dashboard_of(client, namespace) as dashboard:
                await dashboard.submit(Submission(submission_id="one", entrypoint="python a.py"))
                with pytest.raises(errors.JobExists):
                    await dashboard.submit(Submission(submission_id="one", entrypoint="python a.py"))
                assert (await dashboard.info("one")).submission_id == "one"
                with pytest.raises(errors.JobNotFound):
                    await dashboard.info("two")
                await dashboard.stop("one")
        finally:
            await fake.close()


async def test_nobody_behind_the_service_is_an_error_of_ray(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with (
        await Client.connect(control_plane.kubeconfig, qps=0) as client,
        dashboard_of(client, namespace) as dashboard,
    ):
        with pytest.raises(errors.RayError):
            await dashboard.info("one")


async def test_who_does_not_lead_submits_nothing(control_plane: ControlPlane, namespace: str) -> None:
    def closed() -> float:
        raise NotLeader("not the leader")

    fake = FakeRay(auto=True)
    await fake.start(host=own_address())
    async with (
        await Client.connect(control_plane.kubeconfig, qps=0) as admin,
        await Client.connect(control_plane.kubeconfig, qps=0, fence=closed) as client,
    ):
        try:
            await expose(admin, namespace, fake.port)
            async with dashboard_of(client, namespace) as dashboard:
                with pytest.raises(errors.Unreachable, match="not the leader"):
                    await dashboard.submit(Submission(submission_id="one", entrypoint="python a.py"))
            async with dashboard_of(admin, namespace) as dashboard:
                assert await dashboard.jobs() == ()
        finally:
            await fake.close()
