"""Shared by the tests of RayJobs: an operator on kwok nodes, and a fake Ray behind every RayCluster.

Nothing runs in kwok's Pods. So a test plays the submitter: its Pod never finds a node, and the test submits
to the fake Ray and writes the status of the Job itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from kuberay_op.api import labels
from kuberay_op.clock import Clock, SystemClock
from kuberay_op.controllers.resources import RAY_CLUSTERS, RAY_JOBS
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.resource import EVENTS, JOBS, PODS, Resource
from kuberay_op.testing import make
from kuberay_op.testing.clock import FastClock
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.fake_ray import FakeRay, JobScript
from kuberay_op.testing.fake_ray.cluster import FakeCluster
from kuberay_op.testing.operator import RunningOperator, eventually, running_operator

Json = dict[str, Any]

#: A submitter whose Pod stays where it is, for the test to play its part.
PLAYED = {
    "spec": {
        "restartPolicy": "Never",
        "nodeSelector": {"played-by": "the-test"},
        "containers": [{"name": "submitter", "image": "submitter"}],
    }
}


@dataclass(frozen=True, slots=True)
class World:
    """A namespace with an operator on it, and the Ray that it sees."""

    operator: RunningOperator
    namespace: str
    ray: FakeRay
    clock: Clock

    # --- doing

    async def create(self, name: str, mode: str = "HTTPMode", *parts: make.Part) -> Json:
        """Make a RayJob; in K8sJobMode the test plays the submitter."""
        played = make.spec(submitterPodTemplate=PLAYED) if mode == "K8sJobMode" else make.spec()
        job = make.rayjob(
            name, make.namespace(self.namespace), make.spec(submissionMode=mode), played, *parts
        )
        return await self.operator.client.create(RAY_JOBS, job, reason="a test")

    async def edit(self, name: str, **spec: Any) -> Json:
        """Change the spec of a RayJob."""
        client = self.operator.client
        return await client.patch(RAY_JOBS, name, self.namespace, {"spec": spec}, reason="a test")

    async def delete(self, resource: Resource, name: str) -> None:
        """Delete an object."""
        await self.operator.client.delete(resource, name, self.namespace, reason="a test")

    async def hold(self, resource: Resource, name: str, *finalizers: str) -> None:
        """Keep an object from going, or (without finalizers) let it go."""
        body = {"metadata": {"finalizers": list(finalizers) or None}}
        await self.operator.client.patch(resource, name, self.namespace, body, reason="a test")

    async def end_submitter(self, name: str, how: str = "Complete") -> None:
        """Let the submitter Job end, as its controller would write it."""
        now = self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        before = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[how]
        conditions = [
            {
                "type": kind,
                "status": "True",
                "lastProbeTime": now,
                "lastTransitionTime": now,
                "reason": "BackoffLimitExceeded" if how == "Failed" else "CompletionsReached",
                "message": "it has been tried too often" if how == "Failed" else "",
            }
            for kind in (before, how)
        ]
        counts = {"active": None, "ready": None, "uncountedTerminatedPods": None}
        done = {"completionTime": now} if how == "Complete" else {}
        job = await self.operator.client.get(JOBS, name, self.namespace)
        start = (job.get("status") or {}).get("startTime") or now
        body = {"status": {"conditions": conditions, "startTime": start, **done, **counts}}
        await self.operator.client.patch(
            JOBS, name, self.namespace, body, subresource="status", reason="a test"
        )

    async def submit(self, name: str) -> FakeCluster:
        """Submit the job as its submitter would."""
        status = (await self.job(name))["status"]
        fake = self.fake(status["rayClusterName"])
        reply = fake.jobs.submit({"entrypoint": "python main.py", "submission_id": status["jobId"]})
        assert reply.status == 200, reply.body
        return fake

    # --- looking

    def fake(self, cluster: str) -> FakeCluster:
        """The Ray behind a RayCluster."""
        return self.ray.cluster(f"{self.namespace}/{cluster}-head-svc")

    async def fake_of(self, name: str) -> FakeCluster:
        """The Ray behind the present cluster of a RayJob."""
        return self.fake((await self.job(name))["status"]["rayClusterName"])

    async def job(self, name: str) -> Json:
        """A RayJob as it is now."""
        return await self.operator.client.get(RAY_JOBS, name, self.namespace)

    async def get(self, resource: Resource, name: str) -> Json | None:
        """An object, None when there is none."""
        try:
            return await self.operator.client.get(resource, name, self.namespace)
        except NotFound:
            return None

    async def clusters(self) -> list[Json]:
        """All RayClusters."""
        return (await self.operator.client.list(RAY_CLUSTERS, self.namespace)).items

    async def heads(self, cluster: str) -> list[Json]:
        """The head Pods of a cluster."""
        selector = f"{labels.CLUSTER}={cluster},{labels.NODE_TYPE}={labels.HEAD}"
        return (await self.operator.client.list(PODS, self.namespace, label_selector=selector)).items

    async def said(self, name: str, reason: str) -> list[str]:
        """The notes of the events with this reason about a RayJob."""
        events = (await self.operator.client.list(EVENTS, self.namespace)).items
        return [
            event["note"]
            for event in events
            if event["regarding"]["name"] == name and event["reason"] == reason
        ]

    # --- waiting

    async def reaches(self, name: str, state: str, **fields: Any) -> Json:
        """Wait until a RayJob is in a state, with these fields of the status; gives the status."""
        status: Json = {}

        async def there() -> bool:
            status.clear()
            status.update((await self.job(name)).get("status") or {})
            return status.get("jobDeploymentStatus", "") == state and all(
                status.get(field) == value for field, value in fields.items()
            )

        try:
            await eventually(there)
        except TimeoutError:
            raise AssertionError(f"{name} did not become {state} {fields}: {status}") from None
        return dict(status)

    async def gone(self, resource: Resource, name: str) -> None:
        """Wait until there is no such object."""

        async def missing() -> bool:
            return await self.get(resource, name) is None

        await eventually(missing)


async def release(plane: ControlPlane, namespace: str) -> None:
    """Take our finalizers off: no operator is left that would, and the namespace is to go."""
    async with await Client.connect(plane.kubeconfig, qps=0) as client:
        for job in (await client.list(RAY_JOBS, namespace)).items:
            with suppress(NotFound):
                name, body = job["metadata"]["name"], {"metadata": {"finalizers": None}}
                await client.patch(RAY_JOBS, name, namespace, body, reason="the test is over")


Start = Callable[..., AbstractAsyncContextManager[World]]


@pytest.fixture
def start(kwok_cluster: ControlPlane, kwok_namespace: str) -> Start:
    """Starts an operator and a fake Ray whose jobs end when they are told to, or by ``jobs``."""
    install_crds(kwok_cluster)

    @asynccontextmanager
    async def run(
        *, speed: float = 1.0, jobs: JobScript | None = None, **options: Any
    ) -> AsyncIterator[World]:
        clock = SystemClock() if speed == 1 else FastClock(speed)
        ray = FakeRay(auto=True, clock=clock, jobs=jobs or JobScript())
        async with running_operator(
            kwok_cluster.kubeconfig,
            namespaces=[kwok_namespace],
            clock=clock,
            ray=ray.transport(),
            **options,
        ) as operator:
            yield World(operator, kwok_namespace, ray, clock)
        await release(kwok_cluster, kwok_namespace)

    return run
