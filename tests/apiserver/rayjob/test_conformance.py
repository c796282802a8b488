"""The conformance cases of the contract (§16) that need a real API server; the number is in each name."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from kuberay_op.controllers.resources import RAY_CLUSTERS, RAY_JOBS
from kuberay_op.kube.errors import InvalidObject
from kuberay_op.kube.resource import JOBS, PODS, SERVICES
from kuberay_op.testing import make
from kuberay_op.testing.fake_ray import Fault, JobScript
from kuberay_op.testing.operator import eventually

pytestmark = pytest.mark.apiserver

#: A head for which there is no node.
NO_NODE = make.head(template=make.pod_template("ray-head", nodeSelector={"no": "node"}))

SUBMITTER = "ray-job-submitter"


async def test_01_names_are_written_before_the_cluster_is_made(start: Any) -> None:
    async with start() as world:
        parts = (make.labels(team="x"), make.annotations(note="y"), NO_NODE)
        await world.create("a", "HTTPMode", *parts)
        await world.create("b", "SidecarMode", *parts)
        for name, mode, more in (
            ("a", "HTTPMode", {}),
            ("b", "SidecarMode", {"ray.io/disable-provisioned-head-restart": "true"}),
        ):
            status = await world.reaches(name, "Initializing")
            assert status["jobId"].startswith(f"{name}-")
            assert status["startTime"]
            cluster = await eventually(partial(world.get, RAY_CLUSTERS, status["rayClusterName"]))
            assert cluster["metadata"]["labels"] == {
                "team": "x",
                "ray.io/originated-from-cr-name": name,
                "ray.io/originated-from-crd": "RayJob",
                "ray.io/job-submission-mode": mode,
            }
            assert cluster["metadata"]["annotations"] == {"note": "y", **more}
            job = await world.job(name)
            assert job["metadata"]["finalizers"] == ["ray.io/rayjob-finalizer"]
        assert len(await world.clusters()) == 2


async def test_02_while_the_cluster_is_not_ready_its_status_is_mirrored(start: Any) -> None:
    async with start() as world:
        await world.create("a", "K8sJobMode", NO_NODE)
        await world.reaches("a", "Initializing")

        async def mirrored() -> bool:
            status = (await world.job("a"))["status"]
            cluster = await world.get(RAY_CLUSTERS, status["rayClusterName"])
            seen = status.get("rayClusterStatus") or {}
            return bool(seen.get("conditions") and cluster and seen == cluster.get("status"))

        await eventually(mirrored)
        assert await world.get(JOBS, "a") is None
        assert await world.get(SERVICES, "a-head-svc") is None


async def test_04_a_submitter_that_gave_up(start: Any) -> None:
    async with start() as world:
        await world.create("a", "K8sJobMode")
        status = await world.reaches("a", "Running")
        await world.end_submitter("a", "Failed")
        status = await world.reaches("a", "Failed", reason="SubmissionFailed", failed=1, succeeded=0)
        assert "jobStatus" not in status
        assert "it has been tried too often" in status["message"]
        await world.gone(RAY_CLUSTERS, status["rayClusterName"])
        assert await world.get(JOBS, "a") is not None
        assert await world.said("a", "FailedRayJob") == [f"SubmissionFailed: {status['message']}"]


async def test_05_stopped_is_complete_and_a_deadline_is_final(start: Any) -> None:
    async with start() as world:
        await world.create("stopped", "HTTPMode")
        await world.create("late", "HTTPMode", make.spec(activeDeadlineSeconds=4, backoffLimit=2))
        status = await world.reaches("stopped", "Running", jobStatus="RUNNING")
        (await world.fake_of("stopped")).jobs.finish(status["jobId"], "STOPPED")
        await world.reaches("stopped", "Complete", jobStatus="STOPPED", succeeded=0, failed=0)
        status = await world.reaches("late", "Running", jobStatus="RUNNING")
        fake = await world.fake_of("late")
        await world.reaches("late", "Failed", reason="DeadlineExceeded", jobStatus="RUNNING", failed=1)

        async def told_to_stop() -> bool:
            return bool(fake.jobs.status(status["jobId"]) == "STOPPED" or not await world.clusters())

        await eventually(told_to_stop)


async def test_06_a_failing_application_is_tried_again_on_new_clusters(start: Any) -> None:
    again = make.spec(backoffLimit=2)
    async with start(speed=20, jobs=JobScript(running=1, outcome="FAILED", message="boom")) as world:
        for name, mode in (("http", "HTTPMode"), ("job", "K8sJobMode"), ("side", "SidecarMode")):
            await world.create(name, mode, again)
        seen: dict[str, set[str]] = {"job": set(), "side": set()}
        for attempt in range(3):
            for name, clusters in seen.items():
                status = await world.reaches(name, "Running", failed=attempt)
                clusters.add(status["rayClusterName"])
                await world.submit(name)
                await world.reaches(name, "Running", jobStatus="FAILED")
                old = await world.get(JOBS, "job")
                if name == "job":
                    await world.end_submitter(name)
                else:
                    await end_sidecar(world, status["rayClusterName"], 1)
                await eventually(partial(failed, world, name, attempt + 1))
                if name == "job" and attempt < 2:
                    await world.reaches(name, "Running", failed=attempt + 1)
                    new = await world.get(JOBS, "job")
                    assert new["metadata"]["uid"] != old["metadata"]["uid"]
        for name in ("http", "job", "side"):
            status = await world.reaches(name, "Failed", reason="AppFailed", failed=3, succeeded=0)
            assert status["message"] == "boom"
        assert [len(names) for names in seen.values()] == [3, 3]
        assert len(await world.said("http", "RetryingRayJob")) == 2

        async def cleaned_up() -> bool:
            return not await world.clusters()

        await eventually(cleaned_up)


async def failed(world: Any, name: str, times: int) -> bool:
    """Whether a job has failed so often."""
    return bool((await world.job(name))["status"].get("failed") == times)


async def end_sidecar(world: Any, cluster: str, code: int) -> None:
    """Let the submitter in the head Pod end, as a kubelet would report it."""
    (head,) = await world.heads(cluster)
    now = world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    statuses = head["status"]["containerStatuses"]
    for each in statuses:
        if each["name"] == SUBMITTER:
            each["ready"] = False
            each["state"] = {"terminated": {"exitCode": code, "finishedAt": now, "reason": "Error"}}
    await world.operator.client.patch(
        PODS,
        head["metadata"]["name"],
        world.namespace,
        {"status": {"containerStatuses": statuses}},
        subresource="status",
        reason="a test",
    )


async def test_08_a_suspension_is_atomic(start: Any) -> None:
    async with start() as world:
        await world.create("a", "K8sJobMode")
        first = await world.reaches("a", "Running")
        await world.hold(RAY_CLUSTERS, first["rayClusterName"], "example.com/hold")
        await world.edit("a", suspend=True)
        await world.reaches("a", "Suspending")
        await world.edit("a", suspend=False)
        await world.gone(JOBS, "a")
        await asyncio.sleep(0.5)
        await world.reaches("a", "Suspending", rayClusterName=first["rayClusterName"])
        await world.hold(RAY_CLUSTERS, first["rayClusterName"])
        second = await world.reaches("a", "Running")
        assert second["rayClusterName"] != first["rayClusterName"]
        assert second["jobId"] != first["jobId"]
        await world.edit("a", suspend=True)
        gone = await world.reaches("a", "Suspended")
        assert not {"jobId", "rayClusterName", "dashboardURL", "rayClusterStatus"} & set(gone)
        assert await world.clusters() == []
        assert await world.said("a", "SuspendedRayJob")
        assert await world.said("a", "ResumedRayJob")


async def test_08_a_job_may_be_made_suspended_and_suspending_a_finished_one_does_nothing(start: Any) -> None:
    async with start(jobs=JobScript(running=0)) as world:
        await world.create("a", "HTTPMode", make.suspended())
        await world.reaches("a", "Suspended")
        assert await world.clusters() == []
        await world.edit("a", suspend=False)
        done = await world.reaches("a", "Complete")
        await world.edit("a", suspend=True)
        await asyncio.sleep(0.5)
        after = (await world.job("a"))["status"]
        assert (after["jobDeploymentStatus"], after["endTime"]) == ("Complete", done["endTime"])


async def test_09_interactive_mode_waits_for_the_user(start: Any) -> None:
    async with start() as world:
        await world.create("a", "InteractiveMode")
        await world.create("slow", "InteractiveMode", make.spec(preRunningDeadlineSeconds=2), NO_NODE)
        await world.create("idle", "InteractiveMode", make.spec(preRunningDeadlineSeconds=4))
        status = await world.reaches("a", "Waiting")
        assert "jobId" not in status
        fake = await world.fake_of("a")
        fake.jobs.submit({"entrypoint": "x", "submission_id": "theirs"})
        await world.edit("a", jobId="theirs")
        await world.reaches("a", "Running", jobId="theirs", jobStatus="RUNNING")
        fake.jobs.finish("theirs")
        await world.reaches("a", "Complete", jobStatus="SUCCEEDED")
        for name in ("slow", "idle"):
            await world.reaches(name, "Failed", reason="PreRunningDeadlineExceeded")


async def test_10_the_clock_of_silence_is_kept_in_the_status(start: Any) -> None:
    async with start() as world:
        await world.create("a", "HTTPMode")
        status = await world.reaches("a", "Running", jobStatus="RUNNING")
        fake = await world.fake_of("a")
        fake.fault = Fault.parse("gone")

        async def ticking() -> Any:
            return (await world.job("a"))["status"].get("jobStatusCheckFailureStartTime")

        since = await eventually(ticking)
        await asyncio.sleep(1.5)
        assert await ticking() == since
        fake.fault = None

        async def stopped() -> bool:
            return not await ticking()

        await eventually(stopped)
        assert fake.calls["POST /api/jobs/"] == 1
        fake.jobs.finish(status["jobId"])
        await world.reaches("a", "Complete")


async def test_10_a_dashboard_that_stays_silent_fails_the_job(start: Any) -> None:
    async with start(speed=60) as world:
        await world.create("a", "HTTPMode", make.spec(backoffLimit=3))
        status = await world.reaches("a", "Running")
        world.fake(status["rayClusterName"]).fault = Fault.parse("status:503")
        await world.reaches("a", "Failed", reason="JobStatusCheckTimeoutExceeded", failed=1)


def rules(*entries: tuple[str, dict[str, Any]]) -> make.Part:
    """Deletion rules."""
    strategy = {"deletionRules": [{"policy": policy, "condition": when} for policy, when in entries]}
    return make.spec(shutdownAfterJobFinishes=False, deletionStrategy=strategy)


async def test_11_rules_run_in_their_order(start: Any) -> None:
    async with start(jobs=JobScript(running=0)) as world:
        good = {"jobStatus": "SUCCEEDED"}
        await world.create(
            "overdue",
            "HTTPMode",
            make.workers(1),
            rules(("DeleteWorkers", good), ("DeleteCluster", good), ("DeleteSelf", good)),
        )
        await world.create(
            "staged",
            "HTTPMode",
            make.workers(1),
            rules(
                ("DeleteWorkers", good | {"ttlSeconds": 1}),
                ("DeleteCluster", good | {"ttlSeconds": 4}),
                ("DeleteSelf", good | {"ttlSeconds": 7}),
            ),
        )
        await world.gone(RAY_JOBS, "overdue")
        status = await world.reaches("staged", "Complete")

        async def workers_suspended() -> bool:
            cluster = await world.get(RAY_CLUSTERS, status["rayClusterName"])
            assert cluster is not None, "the workers come before the cluster"
            return bool(cluster["spec"]["workerGroupSpecs"][0].get("suspend"))

        await eventually(workers_suspended)
        await world.gone(RAY_CLUSTERS, status["rayClusterName"])
        assert await world.get(RAY_JOBS, "staged") is not None, "the cluster comes before the job"
        await world.gone(RAY_JOBS, "staged")


async def test_11_a_rule_for_failed_counts_also_when_ray_does_not_say_so(start: Any) -> None:
    async with start() as world:
        late = make.spec(activeDeadlineSeconds=3)
        await world.create("a", "HTTPMode", late, rules(("DeleteCluster", {"jobDeploymentStatus": "Failed"})))
        status = await world.reaches("a", "Running", jobStatus="RUNNING")
        await world.gone(RAY_CLUSTERS, status["rayClusterName"])
        await world.reaches("a", "Failed", jobStatus="RUNNING", reason="DeadlineExceeded")


async def test_12_a_lost_head_ends_a_job_with_a_sidecar(start: Any) -> None:
    keep = make.spec(shutdownAfterJobFinishes=False)
    async with start() as world:
        await world.create("side", "SidecarMode", keep)
        await world.create("job", "K8sJobMode", keep)
        heads = {}
        for name in ("side", "job"):
            status = await world.reaches(name, "Running")
            await world.submit(name)
            await world.reaches(name, "Running", jobStatus="RUNNING")
            (head,) = await world.heads(status["rayClusterName"])
            heads[name] = status["rayClusterName"], head["metadata"]["uid"]
            await world.delete(PODS, head["metadata"]["name"])
        status = await world.reaches("side", "Failed")
        assert status["reason"] in ("AppFailed", "SubmissionFailed")
        assert await world.heads(heads["side"][0]) == []

        async def replaced() -> bool:
            found = await world.heads(heads["job"][0])
            return bool(found and found[0]["metadata"]["uid"] != heads["job"][1])

        await eventually(replaced)
        await world.reaches("job", "Running")


async def test_13_what_is_not_valid_is_said(start: Any) -> None:
    async with start(jobs=JobScript(running=0)) as world:
        await world.create("x" * 48, "HTTPMode")
        status = await world.reaches("x" * 48, "ValidationFailed", reason="ValidationFailed")
        assert "47" in status["message"]
        await world.create("env", "HTTPMode", make.spec(runtimeEnvYAML="invalid_yaml_string"))
        status = await world.reaches("env", "ValidationFailed", reason="ValidationFailed")
        assert "runtimeEnvYAML" in status["message"]
        assert await world.said("env", "InvalidRayJobSpec")
        assert await world.clusters() == []
        await world.edit("env", runtimeEnvYAML="pip: []")
        await world.reaches("env", "Complete")


async def test_14_jobs_of_others_are_not_touched(start: Any) -> None:
    async with start() as world:
        await world.create("a", "HTTPMode", make.spec(managedBy="kueue.x-k8s.io/multikueue"))
        await world.create("b", "HTTPMode", make.spec(managedBy="ray.io/kuberay-operator"))
        await world.reaches("b", "Running")
        found = await world.job("a")
        assert not found.get("status")
        assert "finalizers" not in found["metadata"]
        with pytest.raises(InvalidObject, match="managedBy"):
            await world.edit("a", managedBy="ray.io/kuberay-operator")
        with pytest.raises(InvalidObject, match="managedBy"):
            await world.create("c", "HTTPMode", make.spec(managedBy="somebody"))
