"""Each submission mode from the beginning to the end."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.kube.resource import JOBS, SERVICES
from kuberay_op.testing import make
from kuberay_op.testing.fake_ray import JobScript
from kuberay_op.testing.operator import eventually

pytestmark = pytest.mark.apiserver


async def test_the_operator_submits_by_http(start: Any) -> None:
    async with start(jobs=JobScript(running=1, message="done by the fake")) as world:
        await world.create(
            "a",
            "HTTPMode",
            make.spec(
                entrypoint="python main.py --x '$HOME'",
                runtimeEnvYAML="env_vars: {A: on}\npip: [requests]",
                metadata={"team": "x"},
                entrypointNumCpus=1,
                entrypointResources='{"special": 2}',
            ),
        )
        status = await world.reaches("a", "Complete")
        assert status["jobStatus"] == "SUCCEEDED"
        assert status["message"] == "done by the fake"
        assert (status["succeeded"], status["failed"]) == (1, 0)
        assert status["observedGeneration"] == 1
        assert status["endTime"] >= status["startTime"]
        assert status["rayJobInfo"]["endTime"] >= status["rayJobInfo"]["startTime"]
        cluster = status["rayClusterName"]
        assert status["dashboardURL"] == f"{cluster}-head-svc.{world.namespace}.svc.cluster.local:8265"
        fake = world.fake(cluster)
        assert fake.calls["POST /api/jobs/"] == 1
        assert fake.jobs.all[status["jobId"]].request == {
            "entrypoint": "python main.py --x '$HOME'",
            "submission_id": status["jobId"],
            "runtime_env": {"env_vars": {"A": True}, "pip": ["requests"]},
            "metadata": {"team": "x"},
            "entrypoint_num_cpus": 1,
            "entrypoint_resources": {"special": 2},
        }
        await world.gone(RAY_CLUSTERS, cluster)  # shutdownAfterJobFinishes
        assert await world.get(JOBS, "a") is None, "HTTPMode has no submitter"
        assert await world.said("a", "CompletedRayJob")


async def test_a_job_submits(start: Any) -> None:
    async with start() as world:
        await world.create("a", "K8sJobMode")
        status = await world.reaches("a", "Running")
        job = await world.get(JOBS, "a")
        assert job is not None
        container = job["spec"]["template"]["spec"]["containers"][0]
        assert container["command"] == ["/bin/bash", "-ce", "--"]
        assert f"--submission-id {status['jobId']}" in container["args"][0]
        assert await eventually(lambda: world.get(SERVICES, "a-head-svc"))

        fake = await world.submit("a")
        await world.reaches("a", "Running", jobStatus="RUNNING")
        fake.jobs.finish(status["jobId"])
        status = await world.reaches("a", "Running", jobStatus="SUCCEEDED")
        await world.end_submitter("a")
        status = await world.reaches("a", "Complete", jobStatus="SUCCEEDED", succeeded=1, failed=0)
        await world.gone(RAY_CLUSTERS, status["rayClusterName"])
        assert await world.get(JOBS, "a") is not None, "its log stays readable"
        assert fake.calls["POST /api/jobs/"] == 0, "only the submitter submits"
