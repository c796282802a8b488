"""``kuberay-op why rayjob`` on a real API server: the log comes from Ray, through the server's proxy."""

from __future__ import annotations

import asyncio
import socket
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kuberay_op.cli import cli
from kuberay_op.controllers.resources import RAY_CLUSTERS, RAY_JOBS
from kuberay_op.kube.client import Client
from kuberay_op.kube.resource import PODS, SERVICES, Resource
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.fake_ray import FakeRay

pytestmark = pytest.mark.apiserver

ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")
STATUS = {
    "jobDeploymentStatus": "Failed",
    "jobStatus": "FAILED",
    "jobId": "train-q8v5z",
    "rayClusterName": "train-x7k2c",
    "dashboardURL": "train-x7k2c-head-svc.default.svc.cluster.local:8265",
    "reason": "AppFailed",
    "message": "ValueError: no data",
    "observedGeneration": 1,
}
LOG = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nValueError: no data\n'


def own_address() -> str:
    """An address of this machine that is not loopback: the API server passes nothing on to loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; only asks for the route
        return str(probe.getsockname()[0])


async def set_up(client: Client, namespace: str, port: int) -> None:
    """A job that has failed, its cluster, and a way to the fake Ray on this machine."""
    cluster, name = STATUS["rayClusterName"], f"{STATUS['rayClusterName']}-head-svc"
    job = make.rayjob("train", make.namespace(namespace), make.spec(submissionMode="HTTPMode"))
    await client.create(RAY_JOBS, job, reason="test")
    await write_status(client, RAY_JOBS, "train", namespace, STATUS)
    obj = make.raycluster(str(cluster), make.namespace(namespace))
    await client.create(RAY_CLUSTERS, obj, reason="test")
    head = {"head": {"serviceName": name}}
    await write_status(client, RAY_CLUSTERS, str(cluster), namespace, head)
    where, address = {"name": name, "namespace": namespace}, own_address()
    containers = [{"name": "ray", "image": "ray"}]
    await client.create(PODS, {"metadata": where, "spec": {"containers": containers}}, reason="test")
    await write_status(client, PODS, name, namespace, {"podIP": address, "podIPs": [{"ip": address}]})
    spec = {"clusterIP": "None", "ports": [{"name": "dashboard", "port": port}]}
    await client.create(SERVICES, {"metadata": where, "spec": spec}, reason="test")
    target = {"ip": address, "targetRef": {"kind": "Pod", "name": name, "namespace": namespace}}
    subset = {"addresses": [target], "ports": [{"name": "dashboard", "port": port}]}
    await client.create(ENDPOINTS, {"metadata": where, "subsets": [subset]}, reason="test")


async def write_status(client: Client, resource: Resource, name: str, namespace: str, status: Any) -> None:
    """Write a status as its controller would."""
    body = {"status": status}
    await client.patch(resource, name, namespace, body, subresource="status", reason="test")


async def ask(kubeconfig: Path, namespace: str) -> Result:
    """What the command prints."""
    command = ["why", "rayjob", "train", "-n", namespace, "--kubeconfig", str(kubeconfig)]
    return await asyncio.to_thread(CliRunner().invoke, cli, command)


@pytest.fixture
def place(control_plane: ControlPlane, namespace: str) -> str:
    """A namespace where RayJobs are known."""
    import_module("kuberay_op.commands.why.rayjob")  # here, so that no event loop has to wait for it
    install_crds(control_plane, ["RayCluster", "RayJob"])
    return namespace


async def test_the_end_of_the_log_is_shown(control_plane: ControlPlane, place: str) -> None:
    fake = FakeRay(auto=True)
    await fake.start(host=own_address())
    try:
        async with await Client.connect(control_plane.kubeconfig, qps=0) as client:
            await set_up(client, place, fake.port)
        jobs = fake.cluster().jobs
        jobs.submit({"entrypoint": "python train.py", "submission_id": STATUS["jobId"]})
        jobs.all[str(STATUS["jobId"])].log = LOG
        result = await ask(control_plane.kubeconfig, place)
    finally:
        await fake.close()
    assert result.exit_code == 3
    assert result.output.splitlines() == [
        f"RayJob {place}/train is not complete: it failed: AppFailed: ValueError: no data",
        f"    kubectl describe rayjob train -n {place}",
        "the log of Ray's job train-q8v5z ends:",
        "    Traceback (most recent call last):",
        '      File "train.py", line 3, in <module>',
        "    ValueError: no data",
    ]


async def test_without_ray_the_rest_is_told(control_plane: ControlPlane, place: str) -> None:
    async with await Client.connect(control_plane.kubeconfig, qps=0) as client:
        await set_up(client, place, 9)
    result = await ask(control_plane.kubeconfig, place)
    assert result.exit_code == 3
    assert "it failed: AppFailed" in result.output.splitlines()[0]
    assert "could not look at:" in result.output
