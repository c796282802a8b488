"""What is deleted after a job has ended, and when. Pure.

All times count from the end of the job. Of several things that are due, only the one that removes most is
done; it includes the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kuberay_op.api import conditions
from kuberay_op.api.validation.deletion import DELETE_CLUSTER, DELETE_NONE, DELETE_SELF, DELETE_WORKERS
from kuberay_op.controllers.rayjob.situation import Situation, Step, going, left, moment, soonest

#: From the least to the most.
IMPACT: Final = (DELETE_NONE, DELETE_WORKERS, DELETE_CLUSTER, DELETE_SELF)


@dataclass(frozen=True, slots=True)
class Wish:
    """Something to be deleted from a moment on, and who says so."""

    policy: str
    due: datetime
    why: str


def step(at: Situation) -> Step:
    """Delete what is due, and come back for what is not."""
    end = moment(at.job.status.end_time)
    if end is None:  # somebody has taken it out; the times count from now on
        return Step(at.state, {"endTime": at.now})
    open_ = [wish for wish in wishes(at, end) if not achieved(wish.policy, at)]
    later = soonest(*(left(wish.due, at.now) for wish in open_ if wish.due > at.now))
    now = [wish for wish in open_ if wish.due <= at.now]
    if not now:
        return Step(at.state, seconds=later)
    chosen = max(now, key=lambda wish: IMPACT.index(wish.policy))  # of equals the first
    return _carried_out(at, chosen, later)


def wishes(at: Situation, end: datetime) -> Iterator[Wish]:
    """What the spec and the configuration say."""
    spec = at.job.spec
    ttl = timedelta(seconds=spec.ttl_seconds_after_finished or 0)
    strategy = spec.deletion_strategy
    if at.settings.rules and strategy.deletion_rules:
        for rule in strategy.deletion_rules:
            condition = rule.condition
            if (
                at.job.status.job_status == condition.job_status
                or at.state == condition.job_deployment_status
            ):
                due = end + timedelta(seconds=condition.ttl_seconds or 0)
                yield Wish(rule.policy, due, "a deletion rule says so")
    elif at.settings.rules and strategy:
        yield Wish(_legacy_policy(at), end + ttl, "deletionStrategy says so")
    elif spec.shutdown_after_job_finishes:
        policy = DELETE_SELF if at.settings.delete_self else DELETE_CLUSTER
        yield Wish(policy, end + ttl, "the job has finished")


def _legacy_policy(at: Situation) -> str:
    """By how the job ended. One that did not end by itself failed; one that somebody stopped did neither."""
    strategy = at.job.spec.deletion_strategy
    if at.job.status.job_status == conditions.JOB_SUCCEEDED:
        return strategy.on_success.policy or DELETE_NONE
    if at.job.status.job_status == conditions.JOB_FAILED or at.state == conditions.DEPLOYMENT_FAILED:
        return strategy.on_failure.policy or DELETE_NONE
    return DELETE_CLUSTER if at.job.spec.shutdown_after_job_finishes else DELETE_NONE


def achieved(policy: str, at: Situation) -> bool:
    """Whether there is nothing left to do for a policy. A cluster that is not ours is never touched."""
    cluster = at.cluster
    if policy == DELETE_SELF:
        return False
    if policy == DELETE_NONE or at.selects or cluster is None or going(cluster.raw):
        return True
    return policy == DELETE_WORKERS and all(group.suspend for group in cluster.spec.worker_group_specs)


def _carried_out(at: Situation, wish: Wish, later: float | None) -> Step:
    if wish.policy == DELETE_SELF:
        return Step(at.state, deletes=[(at.job.raw, wish.why)], seconds=later)
    if wish.policy == DELETE_WORKERS:
        return Step(at.state, suspend_workers=True, seconds=later)
    deletes = [] if at.cluster is None else [(at.cluster.raw, wish.why)]
    return Step(at.state, deletes=deletes, seconds=later)
