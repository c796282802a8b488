"""What goes after a job, and when: the rules of the contract (§9)."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.config import Config
from kuberay_op.controllers.rayjob.situation import Step
from kuberay_op.testing import make
from tests.unit.controllers.rayjob.situations import at, cluster, job, situation, status, step


def after(
    *parts: make.Part,
    state: str = "Complete",
    job_status: str | None = "SUCCEEDED",
    ago: float | None = 100,
    found: Any = "there",
    config: Config | None = None,
) -> Step:
    """The step of a job that ended so many seconds ago."""
    known = {"jobStatus": job_status, "endTime": None if ago is None else at(ago)}
    of = job(state, make.spec(shutdownAfterJobFinishes=False), *parts, status=known)
    there = cluster("ready", make.workers(2)) if found == "there" else found
    return step(situation(of, there, config=config or Config()))


def does(found: Step) -> str:
    """What a step does, in one word."""
    if found.suspend_workers:
        return "workers"
    return {"RayCluster": "cluster", "RayJob": "self", "": "nothing"}[
        str(found.deletes[0][0]["kind"]) if found.deletes else ""
    ]


SHUTDOWN = make.spec(shutdownAfterJobFinishes=True)


def test_nothing_is_deleted_unless_asked() -> None:
    assert after() == Step("Complete")


@pytest.mark.parametrize("job_status", ["SUCCEEDED", "FAILED", "STOPPED", "RUNNING", None])
def test_shutdown_deletes_the_cluster_however_the_job_ended(job_status: str | None) -> None:
    assert does(after(SHUTDOWN, job_status=job_status)) == "cluster"


def test_the_time_counts_from_the_end() -> None:
    later = after(SHUTDOWN, make.spec(ttlSecondsAfterFinished=130))
    assert (does(later), later.seconds) == ("nothing", 30)
    assert does(after(SHUTDOWN, make.spec(ttlSecondsAfterFinished=100))) == "cluster"
    lost = status(situation(job("Complete", SHUTDOWN, status={"jobStatus": "SUCCEEDED"}), cluster()))
    assert lost["endTime"] == at(0), "an end that is missing is set, and counts from then"


def test_what_is_gone_or_going_is_left_alone() -> None:
    assert after(SHUTDOWN, found=None) == Step("Complete")
    assert after(SHUTDOWN, found=cluster("ready", make.deleted())) == Step("Complete")


def test_the_job_itself_goes_if_the_configuration_says_so() -> None:
    assert does(after(SHUTDOWN, config=Config(delete_rayjob_after_job_finishes=True))) == "self"
    selected = make.spec(clusterSelector={"ray.io/cluster": "c"})
    own = Config(delete_rayjob_after_job_finishes=True)
    assert does(after(SHUTDOWN, selected, found=cluster(owned=False), config=own)) == "self"


def test_a_cluster_of_somebody_else_stays() -> None:
    selected = make.spec(clusterSelector={"ray.io/cluster": "c"})
    assert does(after(SHUTDOWN, selected, found=cluster(owned=False))) == "nothing"


def legacy(success: str, failure: str) -> make.Part:
    """The older form."""
    return make.spec(deletionStrategy={"onSuccess": {"policy": success}, "onFailure": {"policy": failure}})


@pytest.mark.parametrize(
    ("state", "job_status", "shutdown", "expected"),
    [
        ("Complete", "SUCCEEDED", False, "workers"),
        ("Failed", "FAILED", False, "cluster"),
        ("Failed", "RUNNING", False, "cluster"),  # a deadline: the job failed, though Ray does not say so
        ("Failed", None, False, "cluster"),  # a submission that failed
        ("Complete", "STOPPED", False, "nothing"),
        ("Complete", "STOPPED", True, "cluster"),
    ],
)
def test_the_older_policies(state: str, job_status: str | None, shutdown: bool, expected: str) -> None:
    parts = (legacy("DeleteWorkers", "DeleteCluster"), make.spec(shutdownAfterJobFinishes=shutdown))
    assert does(after(*parts, state=state, job_status=job_status)) == expected


def test_workers_are_suspended_once() -> None:
    done = cluster("ready", make.workers(2, suspend=True))
    assert does(after(legacy("DeleteWorkers", "DeleteNone"), found=done)) == "nothing"
    assert does(after(legacy("DeleteWorkers", "DeleteNone"), found=None)) == "nothing"


def rules(*entries: tuple[str, str, int]) -> make.Part:
    """Deletion rules: policy, status, seconds."""
    return make.spec(
        deletionStrategy={
            "deletionRules": [
                {
                    "policy": policy,
                    "condition": {
                        ("jobDeploymentStatus" if said == "Failed" else "jobStatus"): said,
                        "ttlSeconds": seconds,
                    },
                }
                for policy, said, seconds in entries
            ]
        }
    )


STAGED = rules(
    ("DeleteWorkers", "SUCCEEDED", 10), ("DeleteCluster", "SUCCEEDED", 20), ("DeleteSelf", "SUCCEEDED", 30)
)


@pytest.mark.parametrize(
    ("ago", "expected", "seconds"),
    [(5, "nothing", 5), (10, "workers", 10), (15, "workers", 5), (20, "cluster", 10), (30, "self", None)],
)
def test_staged_rules_run_in_order_and_overdue_ones_all_at_once(
    ago: int, expected: str, seconds: float | None
) -> None:
    found = after(STAGED, ago=ago)
    assert (does(found), found.seconds) == (expected, seconds)


def test_rules_ask_how_the_job_ended() -> None:
    failed = rules(("DeleteCluster", "Failed", 0), ("DeleteSelf", "SUCCEEDED", 0))
    assert does(after(failed, state="Failed", job_status="RUNNING")) == "cluster"
    assert does(after(failed, job_status="STOPPED")) == "nothing"
    assert does(after(rules(("DeleteNone", "SUCCEEDED", 0)))) == "nothing"
    selected = make.spec(clusterSelector={"ray.io/cluster": "c"})
    assert does(after(rules(("DeleteSelf", "SUCCEEDED", 0)), selected, found=cluster(owned=False))) == "self"


def test_rules_count_only_with_their_gate() -> None:
    off = Config(gates=Config().gates.with_overrides("RayJobDeletionPolicy=false"))
    assert does(after(STAGED, SHUTDOWN, ago=30, config=off)) == "cluster"
