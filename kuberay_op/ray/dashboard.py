"""Ray's job API, as the dashboard of the head Pod offers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from kuberay_op.ray import urls
from kuberay_op.ray.answers import Call, Fields, decode
from kuberay_op.ray.client import RayClient
from kuberay_op.ray.errors import Garbled

#: States of a job that nothing follows.
TERMINAL: Final = frozenset({"STOPPED", "SUCCEEDED", "FAILED"})
#: Longest log we read. Ray gives all of it or nothing.
MAX_LOG_BYTES: Final = 16 * 1024 * 1024
#: Times beyond this (year 9999, in milliseconds) are no times.
LATEST_MS: Final = 253_402_300_799_000


@dataclass(frozen=True, slots=True)
class Submission:
    """A job to be submitted. ``submission_id`` is ours to choose, so that Ray notices a repetition."""

    entrypoint: str
    submission_id: str
    runtime_env: Mapping[str, Any] = field(default_factory=dict, repr=False)
    metadata: Mapping[str, str] = field(default_factory=dict)
    num_cpus: float = 0.0
    num_gpus: float = 0.0
    resources: Mapping[str, float] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """What is sent. Fields without a value are left out: old versions of Ray refuse unknown ones."""
        optional = {
            "runtime_env": dict(self.runtime_env),
            "metadata": dict(self.metadata),
            "entrypoint_num_cpus": self.num_cpus,
            "entrypoint_num_gpus": self.num_gpus,
            "entrypoint_resources": dict(self.resources),
        }
        given = {name: value for name, value in optional.items() if value}
        return {"entrypoint": self.entrypoint, "submission_id": self.submission_id, **given}


@dataclass(frozen=True, slots=True)
class JobInfo:
    """What Ray says about a job. Two are equal when nothing changed."""

    status: str
    message: str = ""
    submission_id: str = ""
    job_id: str = ""
    entrypoint: str = ""
    error_type: str = ""
    start: datetime | None = None
    end: datetime | None = None
    exit_code: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    runtime_env: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def terminal(self) -> bool:
        """Has the job ended, one way or another?"""
        return self.status in TERMINAL


@dataclass(frozen=True, slots=True)
class Version:
    """Versions of Ray and of its job API."""

    ray: str
    api: str


class Dashboard:
    """The dashboard of one cluster."""

    def __init__(self, client: RayClient) -> None:
        self._client = client

    async def submit(self, job: Submission) -> None:
        """Submit a job; it starts later. ``JobExists``: it, or another of this id, was submitted before.

        After ``TimedOut`` or ``Unreachable`` nobody knows whether Ray took the job: ask ``info``.
        """
        doing = f"submit job {job.submission_id}"
        await self._client.ask(Call("submit", doing, "POST", urls.JOBS, job.submission_id, job.body()))

    async def info(self, submission_id: str) -> JobInfo:
        """State of a job; ``JobNotFound`` only when Ray itself says so."""
        call = Call("info", f"read job {submission_id}", "GET", urls.job(submission_id), submission_id)
        return job_info(call, decode(call, await self._client.ask(call)))

    async def jobs(self) -> tuple[JobInfo, ...]:
        """All jobs, also those that were not submitted through this API (they have no submission id)."""
        call = Call("list", "list jobs", "GET", urls.JOBS)
        items = decode(call, await self._client.ask(call))
        if not isinstance(items, list):
            raise Garbled("list jobs: the answer is not a list")
        return tuple(job_info(call, item) for item in items)

    async def stop(self, submission_id: str) -> bool:
        """Ask a job to stop. False: there was nothing to stop, since it has ended or not yet begun."""
        call = Call(
            "stop", f"stop job {submission_id}", "POST", urls.job(submission_id, "stop"), submission_id
        )
        return Fields(call, decode(call, await self._client.ask(call))).flag("stopped")

    async def delete(self, submission_id: str) -> None:
        """Make Ray forget a job that has ended; ``JobActive`` when it has not."""
        call = Call("delete", f"delete job {submission_id}", "DELETE", urls.job(submission_id), submission_id)
        await self._client.ask(call)

    async def logs(self, submission_id: str, *, max_bytes: int = MAX_LOG_BYTES) -> str:
        """Everything the job's driver printed; ``TooLarge`` when that is too much."""
        call = Call(
            "logs",
            f"read the logs of job {submission_id}",
            "GET",
            urls.job(submission_id, "logs"),
            submission_id,
            max_bytes=max_bytes,
        )
        return Fields(call, decode(call, await self._client.ask(call))).text("logs")

    async def version(self) -> Version:
        """Versions of Ray and of its job API."""
        call = Call("version", "read Ray's version", "GET", urls.VERSION)
        answer = Fields(call, decode(call, await self._client.ask(call)))
        return Version(ray=answer.text("ray_version"), api=answer.text("version"))

    async def gcs_healthy(self) -> bool:
        """Does the control store behind the dashboard work?"""
        call = Call("gcs_health", "read the health of the control store", "GET", urls.GCS_HEALTH)
        return b"success" in (await self._client.ask(call)).body


def job_info(call: Call, value: Any) -> JobInfo:
    """A job from Ray's JSON; unknown fields are ignored, unknown states kept as they are."""
    answer = Fields(call, value, where="the job")
    status = answer.text("status")
    if not status:
        raise Garbled(f"{call.doing}: status of the job is missing")
    exit_code = answer.number("driver_exit_code")
    return JobInfo(
        status=status,
        message=answer.text("message"),
        submission_id=answer.text("submission_id"),
        job_id=answer.text("job_id"),
        entrypoint=answer.text("entrypoint"),
        error_type=answer.text("error_type"),
        start=_time(answer.number("start_time")),
        end=_time(answer.number("end_time")),
        exit_code=None if exit_code is None else int(exit_code),
        metadata=answer.object("metadata"),
        runtime_env=answer.object("runtime_env"),
    )


def _time(milliseconds: float | None) -> datetime | None:
    """0 and numbers that no calendar has count as "not yet"; Ray sends both."""
    if milliseconds is None or not 0 < milliseconds <= LATEST_MS:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
