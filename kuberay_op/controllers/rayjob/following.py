"""Asking Ray about jobs, outside of passes: how they are doing, and to stop.

A pass says what it wants to know (:meth:`Following.look`) and gets what is known. A job of HTTPMode is also
submitted here, when Ray says that it does not know it. Its submission id was written down before, so that a
second submission, by whoever and for whatever reason, is refused by Ray.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Final, Literal

from kuberay_op.api import conditions
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.rayjob import RayJob
from kuberay_op.api.validation.rayjob import HTTP_MODE
from kuberay_op.build.metadata import head_service_name
from kuberay_op.build.submitter import entrypoint_resources, runtime_env
from kuberay_op.clock import Clock
from kuberay_op.controllers.rayjob.situation import Answer, RaySays, going, moment
from kuberay_op.controllers.secrets import token_of
from kuberay_op.errors import Retry
from kuberay_op.kube.client import Client
from kuberay_op.kube.resource import Key
from kuberay_op.ray.client import Connector
from kuberay_op.ray.dashboard import Dashboard, JobInfo, Submission
from kuberay_op.ray.errors import JobExists, JobNotFound
from kuberay_op.ray.poller import Observation, Poller
from kuberay_op.ray.urls import direct, proxied_service

#: Dashboards that are asked at the same time. Most of them only make us wait, and the first question of a job
#: is two: whether Ray has it, and to take it.
AT_ONCE: Final = 512

#: How long a job that has failed is asked to stop: a shared cluster should not go on with it.
STOP_PATIENCE: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about one attempt of one RayJob."""

    what: Literal["info", "stop"]
    owner: Key
    uid: str
    cluster: str
    job_id: str

    def __str__(self) -> str:
        return f"{self.what} of job {self.job_id} of RayJob {self.owner}"


class Asking:
    """One job at one dashboard. ``known`` is whether Ray has had the job: then it is never submitted."""

    def __init__(self, dashboard: Dashboard, job: RayJob) -> None:
        self._dashboard = dashboard
        self._job = job
        self.known = bool(job.status.job_status)

    async def info(self) -> JobInfo:
        """How the job is doing; in HTTPMode it is submitted first if Ray has never had it."""
        job_id = self._job.status.job_id
        try:
            info = await self._dashboard.info(job_id)
        except JobNotFound:
            if self.known or self._job.spec.submission_mode != HTTP_MODE:
                raise
            info = await self._submit()
        self.known = True
        return info

    async def _submit(self) -> JobInfo:
        try:
            await self._dashboard.submit(submission(self._job))
        except JobExists:  # by an earlier attempt of ours to submit it: the id is the job's own
            return await self._dashboard.info(self._job.status.job_id)
        return JobInfo(conditions.JOB_PENDING, submission_id=self._job.status.job_id)

    async def stop(self) -> None:
        """Have the job stopped; returns when that is under way or not needed."""
        job_id = self._job.status.job_id
        try:
            if await self._dashboard.stop(job_id) or (await self._dashboard.info(job_id)).terminal:
                return
        except JobNotFound:
            return
        raise Retry(f"Ray cannot stop the job {job_id} yet")


def submission(job: RayJob) -> Submission:
    """What is sent to Ray for a job; raises Invalid when the spec does not allow it."""
    spec = job.spec
    return Submission(
        entrypoint=spec.entrypoint,
        submission_id=job.status.job_id,
        runtime_env=runtime_env(job) or {},
        metadata=spec.metadata,
        num_cpus=spec.entrypoint_num_cpus or 0.0,
        num_gpus=spec.entrypoint_num_gpus or 0.0,
        resources=entrypoint_resources(job),
    )


def question(job: RayJob, cluster: RayCluster | None, now: datetime) -> Literal["", "info", "stop"]:
    """What there is to ask about a job; nothing while it has not got to Ray, or there is none to ask."""
    status = job.status
    if cluster is None or not (status.job_id and status.dashboard_url):
        return ""
    if must_stop(job, cluster, now):
        return "stop"
    running = status.job_deployment_status == conditions.DEPLOYMENT_RUNNING
    return "info" if running and not going(job.raw) else ""


def must_stop(job: RayJob, cluster: RayCluster | None, now: datetime) -> bool:
    """Whether Ray is to be told that the job is over: it was deleted, or failed by another's word."""
    if job.status.job_status in conditions.TERMINAL_JOB_STATUSES or cluster is None or going(cluster.raw):
        return False
    if going(job.raw):
        return True
    end = moment(job.status.end_time)
    failed = job.status.job_deployment_status == conditions.DEPLOYMENT_FAILED
    return failed and end is not None and now < end + STOP_PATIENCE


class Following:
    """Follows the jobs of all RayJobs; ``wake`` is called when there is news for one."""

    def __init__(
        self,
        connector: Connector,
        client: Client,
        *,
        wake: Callable[[Key], None],
        clock: Clock,
        rng: Random,
        proxied: bool,
    ) -> None:
        self._connector = connector
        self._client = client
        self._clock = clock
        self._proxied = proxied
        self._poller: Poller[Question, JobInfo | None] = Poller(
            lambda asked: wake(asked.owner), clock=clock, rng=rng, concurrency=AT_ONCE
        )
        self._current: dict[Key, Question] = {}
        self._asking: dict[Question, Asking] = {}

    def look(self, key: Key, job: RayJob, cluster: RayCluster | None) -> RaySays:
        """What is known about the job; from now on what there is to ask about it is asked."""
        now = self._clock.now()
        what = question(job, cluster, now)
        if not what or cluster is None:
            self.forget(key)
            return RaySays()
        status = job.status
        asked = Question(what, key, job.metadata.uid, status.ray_cluster_name, status.job_id)
        if self._current.get(key) != asked:
            self.forget(key)
            self._current[key] = asked
            self._asking[asked] = Asking(self._dashboard(job, cluster), job)
        asking = self._asking[asked]
        asking.known = asking.known or bool(status.job_status)
        if what == "info":
            self._poller.watch(asked, asking.info, done=_is_last)
        else:
            self._poller.watch(asked, asking.stop, done=_always)
        return self._says(asked, now)

    def hurry(self, key: Key) -> None:
        """Ask now: something happened that Ray must have noticed."""
        if key in self._current:
            self._poller.hurry(self._current[key])

    def forget(self, key: Key) -> None:
        """Ask no more about this RayJob."""
        asked = self._current.pop(key, None)
        if asked is not None:
            self._poller.forget(asked)
            self._asking.pop(asked, None)
            # Others that still ask the same cluster keep what they have of it.
            self._connector.forget(f"{key.namespace}/{asked.cluster}")

    def clear(self) -> None:
        """Ask no more about any: somebody else leads now."""
        for key in list(self._current):
            self.forget(key)

    async def close(self) -> None:
        """End all that is under way."""
        self.clear()
        await self._poller.close()

    def _says(self, asked: Question, now: datetime) -> RaySays:
        seen = self._poller.latest(asked)
        if seen is None:
            return RaySays()
        if asked.what == "stop":
            return RaySays(stopped=seen.error is None, stop_error=seen.error)
        return RaySays(job=self._answer(seen, now))

    def _answer(self, seen: Observation[JobInfo | None], now: datetime) -> Answer:
        """The observation in times that others can compare."""
        moment_ = self._clock.monotonic()
        at, since = (now - timedelta(seconds=moment_ - then) for then in (seen.checked_at, seen.changed_at))
        return Answer(seen.value, seen.error, at, since)

    def _dashboard(self, job: RayJob, cluster: RayCluster) -> Dashboard:
        name, namespace = job.status.ray_cluster_name, job.namespace
        endpoint = direct(job.status.dashboard_url)
        if self._proxied:
            service = cluster.status.head.service_name or head_service_name(cluster)
            endpoint = proxied_service(namespace, service)
        token = token_of(self._client, cluster, self._clock)
        return Dashboard(self._connector.client(f"{namespace}/{name}", endpoint, token=token))


def _is_last(info: JobInfo | None) -> bool:
    return info is not None and info.terminal


def _always(_: JobInfo | None) -> bool:
    return True
