"""The states of a RayJob before and after it runs, one row per rule."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kuberay_op.controllers.rayjob.situation import Situation, Step
from kuberay_op.testing import make
from tests.unit.controllers.rayjob.situations import (
    DASHBOARD,
    NOW,
    at,
    cluster,
    job,
    situation,
    status,
    step,
    submitter,
)

SELECTOR = make.spec(clusterSelector={"ray.io/cluster": "shared"})


# --- New


def test_a_new_job_gets_its_names_before_anything_is_made() -> None:
    found = step(situation(job()))
    assert found.state == "Initializing"
    assert re.fullmatch("j-[bcdfghjklmnpqrstvwxz2456789]{5}", str(found.fields["jobId"]))
    assert re.fullmatch("j-[bcdfghjklmnpqrstvwxz2456789]{5}", str(found.fields["rayClusterName"]))
    assert found.fields["jobId"] != found.fields["rayClusterName"]
    assert found.fields["startTime"] == NOW
    assert (found.cluster, found.service, found.submitter) == (False, False, False)


@pytest.mark.parametrize(
    ("of", "fields"),
    [
        (job("", make.spec(jobId="mine")), {"jobId": "mine"}),
        (job("", SELECTOR), {"rayClusterName": "shared"}),
        (job("", mode="InteractiveMode"), {"jobId": None}),
        (job("", status={"jobId": "kept", "rayClusterName": "kept", "jobStatus": "RUNNING"}),
         {"jobId": None, "rayClusterName": None, "jobStatus": None}),
    ],
)  # fmt: skip
def test_names_that_are_given_are_used(of: Any, fields: dict[str, Any]) -> None:
    found = step(situation(of))
    assert found.state == "Initializing"
    assert {name: found.fields.get(name) for name in fields} == fields


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (job("", mode="MailMode"), "submissionMode: 'MailMode' is unknown"),
        (job("", make.spec(entrypointResources="[1]")), "entrypointResources: must be JSON text"),
        (job("", make.spec(metadata={"a": "b"}), make.cluster(rayVersion="2.5.1")), "needs Ray 2.6.0"),
        (job("", make.spec(metadata={"a": "b"}), make.cluster(rayVersion="nightly")), "not a version"),
    ],
)
def test_what_nobody_can_run_is_said_at_once(of: Any, text: str) -> None:
    found = status(situation(of))
    assert (found["jobDeploymentStatus"], found["reason"]) == ("ValidationFailed", "ValidationFailed")
    assert text in found["message"]


def test_a_job_that_was_not_valid_goes_on_once_it_is() -> None:
    known = {"jobId": "x", "rayClusterName": "c", "startTime": at(60), "reason": "ValidationFailed"}
    found = step(situation(job("ValidationFailed", status=known)))
    assert found.state == "Initializing"
    assert found.fields == {"jobStatus": None, "reason": None, "message": None}, "names and start stay"


# --- Initializing


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (situation(job("Initializing")), Step("Initializing", {"message": None}, cluster=True)),
        (situation(job("Initializing"), cluster("")), "Initializing"),
        (situation(job("Initializing"), cluster("ready")), "Running"),
        (situation(job("Initializing"), cluster("ready"), head_service=None), "Initializing"),
        (situation(job("Initializing", mode="InteractiveMode"), cluster()), "Waiting"),
        (situation(job("Initializing", make.spec(suspend=True)), cluster()), "Suspending"),
        (situation(job("Initializing"), cluster("ready", make.deleted())), "Initializing"),
    ],
)
def test_the_cluster_comes_first(of: Situation, expected: Step | str) -> None:
    found = step(of)
    assert (found if isinstance(expected, Step) else found.state) == expected


def test_the_submitter_is_made_when_the_cluster_is_ready_and_not_earlier() -> None:
    early = step(situation(job("Initializing", mode="K8sJobMode"), cluster("")))
    assert not early.submitter
    found = step(situation(job("Initializing", mode="K8sJobMode"), cluster()))
    assert (found.state, found.submitter, found.after_acting) == ("Running", True, True)
    assert found.fields["dashboardURL"] == DASHBOARD


def test_a_service_that_is_not_there_is_looked_for_again() -> None:
    found = step(situation(job("Initializing"), cluster(), head_service=None))
    assert (found.state, found.seconds) == ("Initializing", 3)
    assert found.fields["message"] == "no Service leads to the dashboard of the RayCluster c"
    assert step(situation(job("Initializing"), cluster(""), head_service=None)).seconds is None


def test_the_status_of_the_cluster_is_copied() -> None:
    found = step(situation(job("Initializing"), cluster("")))
    assert found.fields["rayClusterStatus"] == cluster("").status.raw


def test_a_name_that_is_taken_is_given_up() -> None:
    found = step(situation(job("Initializing"), cluster_taken=True))
    assert found.state == "Initializing"
    assert str(found.fields["rayClusterName"]).startswith("j-")
    assert found.seconds == 0, "there is more to do"
    assert not found.cluster


def test_a_cluster_that_was_chosen_must_be_there() -> None:
    found = step(situation(job("Initializing", SELECTOR, status={"rayClusterName": "shared"})))
    assert not found.cluster
    assert found.problem == "the RayCluster shared that clusterSelector names does not exist"


def test_a_sidecar_that_ended_early_does_not_wait_for_the_workers() -> None:
    ended = {"name": "ray-job-submitter", "state": {"terminated": {"exitCode": 0}}}
    head = {"metadata": {"name": "h"}, "status": {"containerStatuses": [ended]}}
    of = job("Initializing", mode="SidecarMode")
    assert step(situation(of, cluster(""))).state == "Initializing"
    assert step(situation(of, cluster(""), heads=[head])).state == "Running"


# --- deadlines


@pytest.mark.parametrize("state", ["Initializing", "Waiting", "Running"])
def test_the_deadline_counts_from_the_start(state: str) -> None:
    def found(seconds: int, **status: Any) -> Step:
        of = job(state, make.spec(activeDeadlineSeconds=seconds), mode="InteractiveMode", status=status)
        return step(situation(of, cluster()))

    assert found(60).state == "Failed", "the boundary counts"
    assert found(60).fields["reason"] == "DeadlineExceeded"
    assert found(61).state != "Failed"
    assert found(60, startTime=None).state != "Failed", "no start, no deadline yet"
    if state != "Initializing":
        assert found(90).seconds == 30


@pytest.mark.parametrize("state", ["Initializing", "Waiting"])
def test_the_job_must_run_in_time(state: str) -> None:
    of = job(state, make.spec(preRunningDeadlineSeconds=60), mode="InteractiveMode")
    found = step(situation(of, cluster("")))
    assert (found.state, found.fields["reason"]) == ("Failed", "PreRunningDeadlineExceeded")
    running = job("Running", make.spec(preRunningDeadlineSeconds=60))
    assert step(situation(running, cluster())).state == "Running"


def test_a_start_that_is_missing_is_set() -> None:
    assert status(situation(job("Running", status={"startTime": None}), cluster()))["startTime"] == at(0)


# --- Waiting


def test_waiting_for_the_user() -> None:
    of = situation(job("Waiting", mode="InteractiveMode", status={"jobId": None}), cluster())
    assert step(of).state == "Waiting"
    named = job("Waiting", make.spec(jobId="theirs"), mode="InteractiveMode", status={"jobId": None})
    found = step(situation(named, cluster()))
    assert (found.state, found.fields["jobId"]) == ("Running", "theirs")
    suspended = job("Waiting", make.spec(suspend=True), mode="InteractiveMode")
    assert step(situation(suspended, cluster())).state == "Suspending"


# --- Suspending, Retrying, Suspended


@pytest.mark.parametrize("state", ["Suspending", "Retrying"])
def test_everything_of_the_attempt_goes(state: str) -> None:
    of = job(state, mode="K8sJobMode", status={"jobStatus": "FAILED", "reason": "AppFailed"})
    parts = situation(of, cluster(), submitter=submitter())
    assert [obj["kind"] for obj, _ in step(parts).deletes] == ["RayCluster", "Job"]
    assert step(parts).state == state
    held = situation(of, cluster("ready", make.deleted()))
    assert (step(held).state, step(held).deletes) == (state, []), "once is enough, and it is waited for"
    gone = step(situation(of))
    assert gone.state == {"Suspending": "Suspended", "Retrying": ""}[state]
    for field in ("jobId", "rayClusterName", "dashboardURL", "jobStatus", "reason", "message", "rayJobInfo"):
        assert gone.fields[field] is None
    assert not {"startTime", "endTime", "succeeded", "failed"} & set(gone.fields)


def test_a_suspension_once_begun_is_finished() -> None:
    of = situation(job("Suspending", make.spec(suspend=False)), cluster())
    assert step(of).deletes
    assert step(of).state == "Suspending"


@pytest.mark.parametrize(("mode", "goes"), [("K8sJobMode", True), ("InteractiveMode", True),
                                            ("HTTPMode", False), ("SidecarMode", False)])  # fmt: skip
def test_only_a_submitter_is_deleted(mode: str, goes: bool) -> None:
    found = step(situation(job("Suspending", mode=mode), submitter=submitter()))
    assert bool(found.deletes) == goes


def test_a_cluster_of_somebody_else_is_never_deleted() -> None:
    found = step(situation(job("Suspending", SELECTOR), cluster(owned=False)))
    assert (found.state, list(found.deletes)) == ("Suspended", [])


def test_the_next_attempt_waits_for_its_time() -> None:
    waits = step(situation(job("Retrying", status={"retryTime": at(-30)})))
    assert (waits.state, waits.seconds) == ("Retrying", 30)
    assert step(situation(job("Retrying", status={"retryTime": at(0)}))).state == ""
    assert step(situation(job("Retrying"))).state == "", "the reference's CRD has no such field"


def test_suspended_until_it_is_not() -> None:
    assert step(situation(job("Suspended", make.spec(suspend=True)))) == Step("Suspended")
    assert step(situation(job("Suspended", make.spec(suspend=False)))).state == ""


# --- attempts


@pytest.mark.parametrize(
    ("limit", "failed", "reason", "state"),
    [
        (None, 0, "AppFailed", "Failed"),
        (0, 0, "AppFailed", "Failed"),
        (2, 0, "AppFailed", "Retrying"),
        (2, 1, "SubmissionFailed", "Retrying"),
        (2, 2, "AppFailed", "Failed"),
        (2, 0, "PreRunningDeadlineExceeded", "Retrying"),
        (2, 0, "DeadlineExceeded", "Failed"),
        (2, 0, "JobStatusCheckTimeoutExceeded", "Failed"),
    ],
)
def test_which_failures_are_tried_again(limit: int | None, failed: int, reason: str, state: str) -> None:
    from kuberay_op.controllers.rayjob.status import status_of

    of = job("Running", make.spec(backoffLimit=limit), status={"failed": failed, "succeeded": 0})
    found = status_of(of, Step("Failed", {"reason": reason}), NOW)
    assert found["jobDeploymentStatus"] == state
    assert (found["failed"], found["succeeded"]) == (failed + 1, 0)
    assert ("endTime" in found) == (state == "Failed")


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 10), (2, 20), (3, 40), (4, 80), (5, 160), (6, 320), (7, 360), (50, 360)]
)
def test_the_pause_doubles_as_that_of_a_kubernetes_job(failures: int, seconds: int) -> None:
    from kuberay_op.controllers.rayjob.status import pause

    assert pause(failures).total_seconds() == seconds


@pytest.mark.parametrize(
    ("active", "pre_running", "expected"), [(None, None, None), (90, 70, 10), (90, 60, 30), (60, None, None)]
)
def test_the_alarm_is_set_for_the_next_deadline(
    active: int | None, pre_running: int | None, expected: float | None
) -> None:
    from kuberay_op.controllers.rayjob.deadlines import alarm

    of = job("Initializing", make.spec(activeDeadlineSeconds=active, preRunningDeadlineSeconds=pre_running))
    assert alarm(of, NOW) == expected
