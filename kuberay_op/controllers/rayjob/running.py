"""A job that was handed to Ray: what Ray and the submitter say, put together. Pure.

Ray is asked first, and what it answers counts before any clock: a job that has ended well is not failed
because somebody noticed late. Only where Ray has no answer do the submitter and the time decide.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from kuberay_op.api import conditions
from kuberay_op.api.validation.rayjob import HTTP_MODE, INTERACTIVE_MODE, K8S_JOB_MODE, SIDECAR_MODE
from kuberay_op.controllers.rayjob.deadlines import active_deadline, until
from kuberay_op.controllers.rayjob.situation import Answer, Situation, Step, left, moment, soonest, timestamp
from kuberay_op.controllers.rayjob.submitter import Submitter, look
from kuberay_op.errors import Invalid
from kuberay_op.ray.dashboard import JobInfo
from kuberay_op.ray.errors import JobNotFound

#: How long the job may go on after its submitter has ended.
SUBMITTER_TIMEOUT: Final = timedelta(seconds=30)

#: How long this very process must have asked in vain before a job fails for want of an answer: the clock of
#: the status may have run while no operator did.
RECHECK: Final = timedelta(seconds=30)

#: Seconds between two looks while an answer that is fresh enough is on its way.
SOON: Final = 1.0

#: Times of Kubernetes are whole seconds, cut off.
SECOND: Final = timedelta(seconds=1)


def step(at: Situation) -> Step:
    """The step of a job that runs."""
    submitter = look(at)
    info = at.ray.job.now if at.ray.job else None
    fields = {**_seen(at), **({} if info is None else told(info))}
    done = _ended(at, info, submitter)
    if done is None and at.job.spec.suspend:
        return Step(conditions.DEPLOYMENT_SUSPENDING)
    done = done or overdue(at) or _judged(at, info, submitter)
    if done is not None:
        return Step(done.state, {**fields, **done.fields}, seconds=done.seconds)
    return _going_on(at, info, submitter, fields)


def overdue(at: Situation) -> Step | None:
    """The job has had its time."""
    due = active_deadline(at)
    if due is None or at.now < due:
        return None
    seconds = at.job.spec.active_deadline_seconds
    return failed(
        conditions.DEADLINE_EXCEEDED, f"the job took longer than activeDeadlineSeconds ({seconds} s)"
    )


def failed(reason: str, message: str, **fields: Any) -> Step:
    """The attempt has failed."""
    return Step(conditions.DEPLOYMENT_FAILED, {"reason": reason, "message": message, **fields})


def told(info: JobInfo) -> dict[str, Any]:
    """What the status says of Ray's answer."""
    return {
        "jobStatus": info.status,
        "message": info.message or None,
        "reason": None,
        "rayJobInfo": {"startTime": timestamp(info.start), "endTime": timestamp(info.end)},
        "jobStatusCheckFailureStartTime": None,
    }


# --- the end


def _ended(at: Situation, info: JobInfo | None, submitter: Submitter | None) -> Step | None:
    """The job is over: by what Ray says, once the submitter has finished or has had its time."""
    status = info.status if info else at.job.status.job_status
    if status not in conditions.TERMINAL_JOB_STATUSES:
        return None
    if info is not None and (
        submitter is None or submitter.finished or submitter.missing or submitter.failure
    ):
        return _ended_as(info.status, conditions.APP_FAILED, info.message)
    end = info.end if info else moment(at.job.status.ray_job_info.end_time)
    if end is not None and at.now >= end + at.settings.transition_grace:
        message = info.message if info else at.job.status.message
        return _ended_as(status, conditions.TRANSITION_GRACE_PERIOD_EXCEEDED, message, always=True)
    return None


def _ended_as(status: str, reason: str, message: str, *, always: bool = False) -> Step:
    bad = status == conditions.JOB_FAILED
    state = conditions.DEPLOYMENT_FAILED if bad else conditions.DEPLOYMENT_COMPLETE
    return Step(state, {"reason": reason if bad or always else None, "message": message or None})


# --- no end yet


def _judged(at: Situation, info: JobInfo | None, submitter: Submitter | None) -> Step | None:
    """Failed for other reasons than Ray's own word."""
    error = at.ray.job.error if at.ray.job else None
    if isinstance(error, Invalid):
        return failed(conditions.SUBMISSION_FAILED, f"Ray refuses the job: {error}")
    if _lost(at, error):
        job_id = at.job.status.job_id
        text = f"Ray does not know the job {job_id} any more: its head was replaced and has kept nothing"
        return failed(conditions.APP_FAILED, text, jobStatusCheckFailureStartTime=None)
    if at.mode == SIDECAR_MODE and not at.heads and at.cluster is not None:
        return failed(conditions.APP_FAILED, "the head Pod, and with it the submitter, is gone")
    if submitter is not None and submitter.failure and submitter.finished is None:
        return failed(conditions.SUBMISSION_FAILED, submitter.failure)
    if submitter is not None and submitter.finished is not None:
        done = _after_submitter(at, info, submitter, submitter.finished)
        if done is not None:
            return done
    return _unanswered(at, error)


def _lost(at: Situation, error: Exception | None) -> bool:
    """Ray had the job and has not any more. With a submitter that still runs this may be mended by it."""
    known = at.job.status.job_status in (conditions.JOB_PENDING, conditions.JOB_RUNNING)
    known = known or (at.ray.job is not None and at.ray.job.info is not None)
    return known and isinstance(error, JobNotFound) and at.mode in (HTTP_MODE, INTERACTIVE_MODE)


def _after_submitter(
    at: Situation, info: JobInfo | None, submitter: Submitter, finished: datetime
) -> Step | None:
    """The submitter has ended, and Ray does not say that the job has."""
    asked, late = fresh(at, finished), at.now >= finished + SUBMITTER_TIMEOUT
    if submitter.failure and (asked or late):
        return failed(conditions.SUBMISSION_FAILED, submitter.failure)
    if not asked:
        return None
    answer = at.ray.job
    if answer is not None and isinstance(answer.error, JobNotFound):
        text = f"the submitter has ended, and Ray does not know the job {at.job.status.job_id}"
        return failed(conditions.APP_FAILED, text)
    if info is not None and late:
        text = (
            f"The RayJob submitter finished at {finished:%Y-%m-%d %H:%M:%S} but the ray job did not reach "
            f"terminal state within {SUBMITTER_TIMEOUT.total_seconds():.0f}s"
        )
        reason = conditions.TRANSITION_GRACE_PERIOD_EXCEEDED
        return failed(reason, text, jobStatus=conditions.JOB_FAILED)
    return None


def fresh(at: Situation, finished: datetime) -> bool:
    """Whether Ray was asked after the submitter had ended, and answered."""
    answer = at.ray.job
    if answer is None or not asked_since(finished, answer):
        return False
    return answer.error is None or isinstance(answer.error, JobNotFound)


def asked_since(finished: datetime, answer: Answer) -> bool:
    """Whether Ray was asked after that moment, whatever came of it."""
    return answer.at >= finished + SECOND


def _unanswered(at: Situation, error: Exception | None) -> Step | None:
    """Ray has not answered for too long."""
    since = moment(at.job.status.job_status_check_failure_start_time)
    if since is None or at.ray.job is None or not is_silence(error):
        return None
    patience = at.settings.check_timeout
    if at.now < since + patience or at.now < at.ray.job.since + min(RECHECK, patience):
        return None
    text = f"Ray's dashboard gave no answer for {patience.total_seconds():.0f} s; at last: {error}"
    return failed(conditions.STATUS_CHECK_TIMEOUT_EXCEEDED, text)


def is_silence(error: Exception | None) -> bool:
    """Whether Ray failed to answer; that it does not know the job is an answer."""
    return error is not None and not isinstance(error, JobNotFound | Invalid)


# --- going on


def _going_on(
    at: Situation, info: JobInfo | None, submitter: Submitter | None, fields: dict[str, Any]
) -> Step:
    error = at.ray.job.error if at.ray.job else None
    since = moment(at.job.status.job_status_check_failure_start_time)
    timeout: float | None = None
    if is_silence(error):
        fields["message"] = str(error)
        fields["jobStatusCheckFailureStartTime"] = timestamp(since or at.now)
        timeout = left((since or at.now) + at.settings.check_timeout, at.now)
        if at.ray.job is not None and since is not None:
            recheck = at.ray.job.since + min(RECHECK, at.settings.check_timeout)
            timeout = max(timeout, left(recheck, at.now))
    elif error is not None:
        fields |= {"message": _not_there(at), "jobStatusCheckFailureStartTime": None}
    has_ended = info is not None and info.terminal
    return Step(
        at.state,
        fields,
        cluster=at.cluster is None and not at.selects,
        service=at.cluster is not None and not at.selects,
        submitter=at.mode == K8S_JOB_MODE and not has_ended,
        seconds=soonest(timeout, until(active_deadline(at), at.now), _next_look(at, info, submitter)),
        problem=missing_cluster(at),
    )


def _next_look(at: Situation, info: JobInfo | None, submitter: Submitter | None) -> float | None:
    seconds: float | None = None
    if submitter is not None and submitter.finished is not None:
        finished = submitter.finished
        seconds = left(finished + SUBMITTER_TIMEOUT, at.now) if fresh(at, finished) else SOON
    if info is not None and info.terminal and info.end is not None:
        seconds = soonest(seconds, left(info.end + at.settings.transition_grace, at.now))
    return seconds


def missing_cluster(at: Situation) -> str:
    """What to say of a cluster that was chosen and is not there; empty when all is well."""
    if at.cluster is None and at.selects:
        return f"the RayCluster {at.job.status.ray_cluster_name} that clusterSelector names does not exist"
    return ""


def _not_there(at: Situation) -> str:
    job_id = at.job.status.job_id
    if at.mode == INTERACTIVE_MODE:
        return f"Ray does not know the job {job_id} that spec.jobId names; submit it, or correct the id"
    return f"Ray does not know the job {job_id} yet"


def _seen(at: Situation) -> dict[str, Any]:
    return {} if at.cluster is None else {"rayClusterStatus": at.cluster.status.raw}
