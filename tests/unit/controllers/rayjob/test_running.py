"""A job that runs: what Ray and the submitter say, put together. One row per case of the contract (§5.1)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kuberay_op.config import Config
from kuberay_op.controllers.rayjob.situation import RaySays
from kuberay_op.ray.errors import BadRequest, JobNotFound, Unreachable
from kuberay_op.testing import make
from tests.unit.controllers.rayjob.situations import (
    ago,
    at,
    cluster,
    info,
    job,
    says,
    situation,
    status,
    step,
    submitter,
)

UNREACHABLE = Unreachable("no connection")
NOT_FOUND = JobNotFound("no such job")


def outcome(mode: str, ray: RaySays, /, *parts: make.Part, **fields: Any) -> tuple[str, str, str]:
    """State, reason and job status after the step; fields of the status begin with ``status_``."""
    known = {name.removeprefix("status_"): fields.pop(name) for name in list(fields) if name[:7] == "status_"}
    found = status(situation(job("Running", *parts, mode=mode, status=known), cluster(), ray=ray, **fields))
    known_status = known.get("jobStatus", "")
    return found["jobDeploymentStatus"], found.get("reason") or "", found.get("jobStatus", known_status) or ""


# --- what Ray says


@pytest.mark.parametrize("mode", ["HTTPMode", "InteractiveMode"])
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("PENDING", ("Running", "", "PENDING")),
        ("RUNNING", ("Running", "", "RUNNING")),
        ("SUCCEEDED", ("Complete", "", "SUCCEEDED")),
        ("STOPPED", ("Complete", "", "STOPPED")),
        ("FAILED", ("Failed", "AppFailed", "FAILED")),
        ("SOMETHING NEW", ("Running", "", "SOMETHING NEW")),
    ],
)
def test_without_a_submitter_rays_word_is_enough(mode: str, said: str, expected: Any) -> None:
    assert outcome(mode, says(info(said))) == expected


def test_rays_message_is_passed_on_even_if_nothing_else_changed() -> None:
    of = job("Running", status={"jobStatus": "RUNNING", "message": "old"})
    found = status(situation(of, cluster(), ray=says(info("RUNNING", "60 % done"))))
    assert found["message"] == "60 % done"
    failed = status(situation(of, cluster(), ray=says(info("FAILED", "ValueError: x", end=ago(1)))))
    assert (failed["message"], failed["rayJobInfo"]["endTime"]) == ("ValueError: x", at(1))


@pytest.mark.parametrize("mode", ["K8sJobMode", "SidecarMode"])
def test_with_a_submitter_both_must_have_ended(mode: str) -> None:
    def submitters(over: bool) -> dict[str, Any]:
        state = {"terminated": {"exitCode": 0, "finishedAt": at(5)}} if over else {"running": {}}
        pod = {"metadata": {"name": "h"},
               "status": {"containerStatuses": [{"name": "ray-job-submitter", "state": state}]}}  # fmt: skip
        return {"submitter": submitter("Complete" if over else "", 5), "heads": [pod]}

    assert outcome(mode, says(info("SUCCEEDED")), **submitters(False)) == ("Running", "", "SUCCEEDED")
    assert outcome(mode, says(info("SUCCEEDED")), **submitters(True)) == ("Complete", "", "SUCCEEDED")
    assert outcome(mode, says(info("FAILED")), **submitters(True)) == ("Failed", "AppFailed", "FAILED")


def test_a_job_that_ended_well_is_not_failed_because_somebody_noticed_late() -> None:
    late = {"submitter": submitter("Complete", 3600)}
    assert outcome("K8sJobMode", says(info("SUCCEEDED")), **late)[0] == "Complete"
    overdue = make.spec(activeDeadlineSeconds=1)
    assert outcome("K8sJobMode", says(info("SUCCEEDED")), overdue, **late)[0] == "Complete"
    assert outcome("K8sJobMode", RaySays(), **late)[0] == "Running", "Ray was not asked yet"
    assert outcome("K8sJobMode", says(info("RUNNING"), age=3601), **late)[0] == "Running", "asked before"


def test_a_submitter_that_does_not_end_has_its_time() -> None:
    ended = {"status_jobStatus": "SUCCEEDED", "status_rayJobInfo": {"endTime": at(300)}}
    for ray in (says(info("SUCCEEDED", end=ago(300))), says(None, UNREACHABLE), RaySays()):
        assert outcome("K8sJobMode", ray, submitter=submitter(), **ended)[:2] == (
            "Complete", "JobDeploymentStatusTransitionGracePeriodExceeded")  # fmt: skip
    failed = {"status_jobStatus": "FAILED", "status_rayJobInfo": {"endTime": at(300)}}
    assert outcome("K8sJobMode", RaySays(), submitter=submitter(), **failed)[0] == "Failed"
    early = {"status_jobStatus": "SUCCEEDED", "status_rayJobInfo": {"endTime": at(299)}}
    assert outcome("K8sJobMode", RaySays(), submitter=submitter(), **early)[0] == "Running"
    none = Config(rayjob_transition_grace_seconds=-1)
    assert outcome("K8sJobMode", says(info("SUCCEEDED", end=ago(0))), submitter=submitter(), config=none)[
        0
    ] == ("Complete")


# --- what the submitter says


def test_a_submitter_that_gave_up() -> None:
    gave_up = {"submitter": submitter("Failed", 5)}
    assert outcome("K8sJobMode", says(None, NOT_FOUND), **gave_up) == ("Failed", "SubmissionFailed", "")
    assert outcome("K8sJobMode", says(info("FAILED")), **gave_up) == ("Failed", "AppFailed", "FAILED")
    assert outcome("K8sJobMode", says(info("SUCCEEDED")), **gave_up) == ("Complete", "", "SUCCEEDED")
    assert outcome("K8sJobMode", says(info("RUNNING")), **gave_up)[:2] == ("Failed", "SubmissionFailed")
    assert outcome("K8sJobMode", says(None, UNREACHABLE), **gave_up)[0] == "Running", "Ray may know better"
    later = {"submitter": submitter("Failed", 30)}
    assert outcome("K8sJobMode", says(None, UNREACHABLE), **later)[:2] == ("Failed", "SubmissionFailed")
    of = situation(job("Running", mode="K8sJobMode"), cluster(), ray=says(None, NOT_FOUND), **gave_up)
    assert status(of)["message"] == "the submitter Job j failed: R"


def test_a_submitter_that_ended_and_a_job_that_did_not() -> None:
    assert outcome("K8sJobMode", says(info("RUNNING")), submitter=submitter("Complete", 29))[0] == "Running"
    found = status(
        situation(job("Running", mode="K8sJobMode"), cluster(), ray=says(info("RUNNING")),
                  submitter=submitter("Complete", 30))
    )  # fmt: skip
    assert found["reason"] == "JobDeploymentStatusTransitionGracePeriodExceeded"
    assert (found["jobDeploymentStatus"], found["jobStatus"]) == ("Failed", "FAILED")
    assert re.fullmatch(
        r"The RayJob submitter finished at 2026-01-01 11:59:30 "
        r"but the ray job did not reach terminal state within 30s",
        found["message"],
    )
    unknown = says(None, NOT_FOUND)
    assert outcome("K8sJobMode", unknown, submitter=submitter("Complete", 5))[:2] == ("Failed", "AppFailed")


def test_a_submitter_that_was_deleted_is_made_again_while_it_is_needed() -> None:
    of = job("Running", mode="K8sJobMode")
    assert step(situation(of, cluster(), ray=says(info("RUNNING")))).submitter
    assert step(situation(of, cluster(), ray=says(info("SUCCEEDED")))).state == "Complete"


# --- no answer


def test_the_clock_of_silence() -> None:
    of = situation(job("Running"), cluster(), ray=says(None, UNREACHABLE))
    found = status(of)
    assert found["jobStatusCheckFailureStartTime"] == at(0)
    assert found["message"] == "no connection"
    assert step(of).seconds == 300

    silent = {"status_jobStatusCheckFailureStartTime": at(300)}
    long_silence = says(None, UNREACHABLE, since=300)
    expected = ("Failed", "JobStatusCheckTimeoutExceeded", "")
    assert outcome("HTTPMode", long_silence, **silent) == expected
    assert outcome("HTTPMode", says(None, UNREACHABLE, since=29), **silent)[0] == "Running", "just started"
    assert outcome("HTTPMode", RaySays(), **silent)[0] == "Running", "nobody has asked yet"
    for answer in (says(info("RUNNING")), says(None, NOT_FOUND)):
        of = situation(
            job("Running", status={"jobStatusCheckFailureStartTime": at(9)}), cluster(), ray=answer
        )
        assert status(of)["jobStatusCheckFailureStartTime"] is None


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("HTTPMode", "Failed"), ("InteractiveMode", "Failed"), ("K8sJobMode", "Running")],
)
def test_a_job_that_ray_has_lost(mode: str, expected: str) -> None:
    fields = {"submitter": submitter()}
    assert outcome(mode, says(None, NOT_FOUND), status_jobStatus="RUNNING", **fields)[0] == expected
    assert outcome(mode, says(None, NOT_FOUND), **fields)[0] == "Running", "it never had it"


def test_what_ray_refuses_is_not_tried_for_minutes() -> None:
    refused = says(None, BadRequest("submit job x: 400: entrypoint must be a string"))
    assert outcome("HTTPMode", refused)[:2] == ("Failed", "SubmissionFailed")


# --- around it


def test_a_cluster_that_was_deleted_is_made_again() -> None:
    found = step(situation(job("Running"), None, ray=says(None, UNREACHABLE)))
    assert (found.state, found.cluster) == ("Running", True)
    selected = make.spec(clusterSelector={"ray.io/cluster": "c"})
    assert not step(situation(job("Running", selected), None)).cluster


def test_the_service_is_for_clusters_of_the_job_only() -> None:
    assert step(situation(job("Running"), cluster())).service
    selected = make.spec(clusterSelector={"ray.io/cluster": "c"})
    assert not step(situation(job("Running", selected), cluster(owned=False))).service


def test_suspend_counts_while_it_runs_and_not_after() -> None:
    suspend = make.spec(suspend=True)
    assert outcome("HTTPMode", says(info("RUNNING")), suspend)[0] == "Suspending"
    assert outcome("HTTPMode", says(info("SUCCEEDED")), suspend)[0] == "Complete"


def test_the_deadline_leaves_the_job_status_as_it_was() -> None:
    found = status(
        situation(
            job("Running", make.spec(activeDeadlineSeconds=10), status={"jobStatus": "RUNNING"}), cluster()
        )
    )
    assert (found["jobDeploymentStatus"], found["reason"]) == ("Failed", "DeadlineExceeded")
    assert "jobStatus" not in found


# --- the sidecar


def sidecar(state: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A head Pod whose submitter is in a state."""
    container = {"name": "ray-job-submitter", "state": state, **fields}
    return {"metadata": {"name": "h"}, "status": {"containerStatuses": [{"name": "ray-head"}, container]}}


def test_a_sidecar_that_failed() -> None:
    ended = sidecar({"terminated": {"exitCode": 3, "finishedAt": at(5), "reason": "Error"}})
    assert outcome("SidecarMode", says(info("RUNNING")), heads=[ended])[:2] == ("Failed", "SubmissionFailed")
    assert outcome("SidecarMode", says(info("FAILED")), heads=[ended])[:2] == ("Failed", "AppFailed")
    before = says(info("RUNNING"), age=5)
    assert outcome("SidecarMode", before, heads=[ended])[0] == "Running", "the application may have failed"
    assert outcome("SidecarMode", RaySays(), heads=[])[:2] == ("Failed", "AppFailed")


@pytest.mark.parametrize(
    ("state", "restarts", "expected"),
    [
        ({"running": {}}, 2, "Running"),  # the third attempt may run to its end
        ({"waiting": {"reason": "CrashLoopBackOff"}}, 1, "Running"),
        ({"waiting": {"reason": "CrashLoopBackOff"}}, 2, "Failed"),
        ({"terminated": {"exitCode": 1, "finishedAt": at(5)}}, 2, "Failed"),
        ({"terminated": {"exitCode": 0, "finishedAt": at(5)}}, 2, "Running"),
    ],
)
def test_a_sidecar_that_may_restart(state: dict[str, Any], restarts: int, expected: str) -> None:
    config = Config()
    gates = config.gates.with_overrides("SidecarSubmitterRestart=true")
    last = {"terminated": {"exitCode": 1, "finishedAt": at(6)}}
    pod = sidecar(state, restartCount=restarts, lastState=last)
    found = outcome("SidecarMode", says(info("RUNNING")), heads=[pod], config=Config(gates=gates))
    assert found[0] == expected
