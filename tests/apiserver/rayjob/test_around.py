"""What is around a job: clusters of others, names that are taken, deletion, and edits in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kuberay_op.controllers.resources import RAY_CLUSTERS, RAY_JOBS
from kuberay_op.kube.resource import JOBS, SECRETS, SERVICES, Resource
from kuberay_op.testing import make
from kuberay_op.testing.fake_ray import Fault, JobScript
from kuberay_op.testing.operator import eventually

pytestmark = pytest.mark.apiserver

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
SHARED = (
    make.spec(
        clusterSelector={"ray.io/cluster": "shared"}, shutdownAfterJobFinishes=False, rayClusterSpec=None
    ),
)


async def share(world: Any, *parts: make.Part) -> None:
    """Make the cluster that jobs choose."""
    cluster = make.raycluster("shared", make.namespace(world.namespace), *parts)
    await world.operator.client.create(RAY_CLUSTERS, cluster, reason="a test")


async def test_a_job_on_a_cluster_that_comes_later_and_stays(start: Any) -> None:
    async with start(jobs=JobScript(running=0)) as world:
        await world.create("a", "HTTPMode", *SHARED)
        missing = await eventually(lambda: world.said("a", "RayClusterNotFound"))
        assert "shared" in missing[0]
        status = await world.reaches("a", "Initializing", rayClusterName="shared")
        assert "does not exist" in status["message"]
        await share(world)
        await world.reaches("a", "Complete", jobStatus="SUCCEEDED")
        assert await world.get(SERVICES, "a-head-svc") is None
        await world.delete(RAY_JOBS, "a")
        await world.gone(RAY_JOBS, "a")
        assert await world.get(RAY_CLUSTERS, "shared") is not None


async def test_deleting_a_job_stops_it_on_a_shared_cluster(start: Any) -> None:
    async with start() as world:
        await share(world)
        for name in ("a", "silent"):
            await world.create(name, "HTTPMode", *SHARED)
            await world.reaches(name, "Running", jobStatus="RUNNING")
        fake = world.fake("shared")
        job_id = (await world.job("a"))["status"]["jobId"]
        await world.delete(RAY_JOBS, "a")
        await world.gone(RAY_JOBS, "a")
        assert fake.jobs.status(job_id) == "STOPPED"

        fake.fault = Fault.parse("gone")
        await world.delete(RAY_JOBS, "silent")
        await asyncio.sleep(1)
        held = await world.job("silent")
        assert held["metadata"]["finalizers"] == ["ray.io/rayjob-finalizer"], "Ray is asked again"
        fake.fault = None
        await world.gone(RAY_JOBS, "silent")
        assert [fake.jobs.status(each) for each in fake.jobs.all] == ["STOPPED", "STOPPED"]


async def test_a_job_whose_cluster_is_gone_can_be_deleted_at_once(start: Any) -> None:
    async with start() as world:
        await share(world)
        await world.create("a", "HTTPMode", *SHARED)
        await world.reaches("a", "Running", jobStatus="RUNNING")
        world.fake("shared").fault = Fault.parse("gone")
        await world.delete(RAY_CLUSTERS, "shared")
        await world.gone(RAY_CLUSTERS, "shared")
        await world.delete(RAY_JOBS, "a")
        await world.gone(RAY_JOBS, "a")


async def test_names_that_others_have_are_left_alone(start: Any) -> None:
    async with start() as world:
        client, namespace = world.operator.client, world.namespace
        container = {"name": "c", "image": "i"}
        pod = {"spec": {"restartPolicy": "Never", "nodeSelector": {"no": "node"}, "containers": [container]}}
        foreign = {"metadata": {"name": "a", "namespace": namespace}, "spec": {"template": pod}}
        await client.create(JOBS, foreign, reason="a test")
        service = {
            "metadata": {"name": "b-head-svc", "namespace": namespace},
            "spec": {"ports": [{"port": 1}]},
        }
        await client.create(SERVICES, service, reason="a test")

        await world.create("a", "K8sJobMode")
        said = await eventually(lambda: world.said("a", "FailedToCreateRayJobSubmitter"))
        assert f"Failed to create new Kubernetes Job {namespace}/a" in said[0]
        assert "is not ours" in said[0]
        await world.reaches("a", "Initializing")

        await world.create("b", "HTTPMode")
        said = await eventually(lambda: world.said("b", "FailedToCreateService"))
        assert "is not ours" in said[0]
        await world.reaches("b", "Running", jobStatus="RUNNING")
        for resource, name in ((JOBS, "a"), (SERVICES, "b-head-svc")):
            found = await world.get(resource, name)
            assert "ownerReferences" not in found["metadata"]


async def test_a_job_that_runs_is_not_stopped_by_a_bad_edit(start: Any) -> None:
    async with start() as world:
        await world.create("a", "HTTPMode")
        status = await world.reaches("a", "Running", jobStatus="RUNNING")
        await world.edit("a", backoffLimit=-1)
        assert await eventually(lambda: world.said("a", "InvalidRayJobSpec"))
        await world.reaches("a", "Running")
        world.fake(status["rayClusterName"]).jobs.finish(status["jobId"], "SUCCEEDED", "all is well")
        await world.reaches("a", "Complete", jobStatus="SUCCEEDED", message="all is well")
        assert await world.get(RAY_CLUSTERS, status["rayClusterName"]) is not None
        await world.edit("a", backoffLimit=0)
        await world.gone(RAY_CLUSTERS, status["rayClusterName"])


async def test_a_head_that_forgot_the_job_counts_as_a_failed_attempt(start: Any) -> None:
    async with start(speed=20) as world:
        await world.create("a", "HTTPMode", make.spec(backoffLimit=1))
        first = await world.reaches("a", "Running", jobStatus="RUNNING")
        fake = world.fake(first["rayClusterName"])
        fake.restart()
        second = await world.reaches("a", "Running", jobStatus="RUNNING", failed=1)
        assert second["rayClusterName"] != first["rayClusterName"]
        assert fake.jobs.all == {}, "it was not submitted again behind anybody's back"
        world.fake(second["rayClusterName"]).jobs.finish(second["jobId"])
        await world.reaches("a", "Complete", succeeded=1, failed=1)


async def test_what_ray_refuses_is_said_in_rays_words(start: Any) -> None:
    async with start() as world:
        secret = "s3cr3t-value"
        await world.create("a", "HTTPMode", make.spec(runtimeEnvYAML=f"env_vars: {{TOKEN: {secret}}}"))
        status = await world.reaches("a", "Running", jobStatus="RUNNING")
        assert secret not in str(status)
        await world.create("b", "HTTPMode", make.spec(jobId=".."))
        status = await world.reaches("b", "Failed", reason="SubmissionFailed", failed=1)
        assert "cannot be used" in status["message"]


async def test_a_cluster_with_a_token(start: Any) -> None:
    async with start(speed=20, jobs=JobScript(running=0)) as world:
        world.ray.token = "the-token"
        await share(world, make.cluster(authOptions={"mode": "token", "secretName": "mine"}))
        await world.create("a", "HTTPMode", *SHARED)

        async def told() -> bool:
            status = (await world.job("a")).get("status") or {}
            return "Secret" in status.get("message", "") and "does not exist" in status["message"]

        await eventually(told)
        body = {
            "metadata": {"name": "mine", "namespace": world.namespace},
            "stringData": {"auth_token": "the-token"},
        }
        await world.operator.client.create(SECRETS, body, reason="a test")
        done = await world.reaches("a", "Complete", jobStatus="SUCCEEDED")
        assert "the-token" not in str(done)


async def test_a_cluster_of_that_name_that_is_not_ours_is_not_used(start: Any) -> None:
    async with start(jobs=JobScript(running=0)) as world:
        await share(world)
        await world.create("a", "HTTPMode", make.suspended())
        await world.reaches("a", "Suspended")
        taken = {"status": {"jobDeploymentStatus": "Initializing", "rayClusterName": "shared", "jobId": "x"}}
        client = world.operator.client
        await client.patch(RAY_JOBS, "a", world.namespace, taken, subresource="status", reason="a test")
        await world.edit("a", suspend=False)
        done = await world.reaches("a", "Complete")
        assert done["rayClusterName"] != "shared"
        assert await world.get(RAY_CLUSTERS, "shared") is not None


async def test_a_deadline_counts_also_while_the_cluster_cannot_be_made(start: Any) -> None:
    async with start() as world:
        limits = {"hard": {"count/rayclusters.ray.io": "0"}}
        quota = {"metadata": {"name": "none", "namespace": world.namespace}, "spec": limits}
        client = world.operator.client
        await client.create(QUOTAS, quota, reason="a test")

        async def counted() -> bool:
            found = await client.get(QUOTAS, "none", world.namespace)
            return bool(found.get("status", {}).get("hard"))

        await eventually(counted)
        await world.create("a", "HTTPMode", make.spec(preRunningDeadlineSeconds=3))
        assert await eventually(lambda: world.said("a", "FailedToCreateRayCluster"))
        await world.reaches("a", "Failed", reason="PreRunningDeadlineExceeded")
