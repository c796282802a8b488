"""The job API of a fake cluster. Jobs live by the clock: nothing runs, states follow from the time passed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from kuberay_op.clock import Clock
from kuberay_op.testing.fake_ray.http import Reply, json_reply, text_reply, traceback_reply

FINISHED: Final = frozenset({"STOPPED", "SUCCEEDED", "FAILED"})
MESSAGES: Final = {
    "PENDING": "Job waits to be started.",
    "RUNNING": "Job runs.",
    "STOPPED": "Job was stopped.",
    "SUCCEEDED": "Job finished.",
    "FAILED": "Job entrypoint failed with exit code 1.",
}
FIELDS: Final = frozenset(
    {
        "entrypoint",
        "submission_id",
        "job_id",
        "runtime_env",
        "metadata",
        "entrypoint_num_cpus",
        "entrypoint_num_gpus",
        "entrypoint_memory",
        "entrypoint_resources",
        "entrypoint_label_selector",
    }
)


@dataclass(frozen=True, slots=True)
class JobScript:
    """How a job's life goes: seconds ``PENDING``, seconds ``RUNNING`` (None: until told), the outcome."""

    pending: float = 0.0
    running: float | None = None
    outcome: str = "SUCCEEDED"
    message: str = ""
    log: str = ""


@dataclass(slots=True)
class FakeJob:
    """A submitted job. ``end`` is set when a test, or a stop, ended it before its script does."""

    submission_id: str
    request: dict[str, Any]
    script: JobScript
    submitted: float
    submitted_ms: int
    driver_id: str
    log: str = ""
    end: tuple[str, str, float] | None = None

    def state(self, now: float) -> tuple[str, str, float | None]:
        """Status, message, and the moment it ended."""
        if self.end is not None:
            return self.end
        script, begins = self.script, self.submitted + self.script.pending
        if now < begins:
            return "PENDING", MESSAGES["PENDING"], None
        if script.running is None or now < begins + script.running:
            return "RUNNING", MESSAGES["RUNNING"], None
        return script.outcome, script.message or MESSAGES[script.outcome], begins + script.running

    def to_json(self, now: float) -> dict[str, Any]:
        """As Ray describes a job."""
        status, message, ended = self.state(now)
        started = status != "PENDING"
        return {
            "type": "SUBMISSION",
            "job_id": self.driver_id if started else None,
            "submission_id": self.submission_id,
            "driver_info": None,
            "status": status,
            "entrypoint": self.request["entrypoint"],
            "message": message,
            "error_type": None,
            "start_time": self.submitted_ms,
            "end_time": None if ended is None else self.submitted_ms + round((ended - self.submitted) * 1000),
            "metadata": self.request.get("metadata") or {},
            "runtime_env": self.request.get("runtime_env") or {},
            "driver_agent_http_address": None,
            "driver_node_id": None,
            "driver_exit_code": {"SUCCEEDED": 0, "FAILED": 1}.get(status),
        }


@dataclass(slots=True)
class FakeJobs:
    """All jobs of one cluster. ``script`` is for jobs to come; ``scripts`` by submission id go before it."""

    clock: Clock
    script: JobScript = field(default_factory=JobScript)
    scripts: dict[str, JobScript] = field(default_factory=dict)
    all: dict[str, FakeJob] = field(default_factory=dict)

    def status(self, submission_id: str) -> str:
        """The present status of a job."""
        return self.all[submission_id].state(self.clock.monotonic())[0]

    def finish(self, submission_id: str, status: str = "SUCCEEDED", message: str = "") -> None:
        """End a job now."""
        self.all[submission_id].end = (status, message or MESSAGES[status], self.clock.monotonic())

    def submit(self, body: Any) -> Reply:
        """Take a job; an id that is known is refused in the words and with the status of Ray's head."""
        complaint = _complaint(body)
        if complaint:
            return traceback_reply(400, f"TypeError: {complaint}")
        submission_id = body.get("submission_id") or body.get("job_id") or f"raysubmit_{len(self.all):016d}"
        if submission_id in self.all:
            return traceback_reply(
                500,
                f"ValueError: Job with submission_id {submission_id} already exists. "
                "Please use a different submission_id.",
                wrapped=400,
            )
        script = self.scripts.get(submission_id, self.script)
        self.all[submission_id] = FakeJob(
            submission_id,
            body,
            script,
            submitted=self.clock.monotonic(),
            submitted_ms=int(self.clock.now().timestamp() * 1000),
            driver_id=f"{len(self.all) + 1:08x}",
            log=script.log,
        )
        return json_reply({"job_id": submission_id, "submission_id": submission_id})

    def info(self, submission_id: str) -> Reply:
        """One job."""
        job = self.all.get(submission_id)
        return _unknown(submission_id) if job is None else json_reply(job.to_json(self.clock.monotonic()))

    def list(self) -> Reply:
        """All jobs."""
        now = self.clock.monotonic()
        return json_reply([job.to_json(now) for job in self.all.values()])

    def stop(self, submission_id: str) -> Reply:
        """Stop a job unless it has ended."""
        if submission_id not in self.all:
            return _unknown(submission_id)
        active = self.status(submission_id) not in FINISHED
        if active:
            self.finish(submission_id, "STOPPED")
        return json_reply({"stopped": active})

    def delete(self, submission_id: str) -> Reply:
        """Forget a job, if it has ended."""
        if submission_id not in self.all:
            return _unknown(submission_id)
        status = self.status(submission_id)
        if status not in FINISHED:
            return traceback_reply(
                500,
                f"RuntimeError: Attempted to delete job '{submission_id}', "
                f"but it is in a non-terminal state {status}.",
                wrapped=500,
            )
        del self.all[submission_id]
        return json_reply({"deleted": True})

    def logs(self, submission_id: str) -> Reply:
        """What a job printed."""
        job = self.all.get(submission_id)
        return _unknown(submission_id) if job is None else json_reply({"logs": job.log})


def _unknown(submission_id: str) -> Reply:
    return text_reply(404, f"Job {submission_id} does not exist")


def _complaint(body: Any) -> str:
    """What Ray would dislike about a submission; empty when nothing."""
    if not isinstance(body, dict):
        return f"a job must be an object, got {type(body)}"
    unknown = sorted(set(body) - FIELDS)
    if unknown:
        return f"JobSubmitRequest got an unexpected argument {unknown[0]!r}"
    if not isinstance(body.get("entrypoint"), str):
        return f"entrypoint must be a string, got {type(body.get('entrypoint'))}"
    for name, kind in (("submission_id", str), ("runtime_env", dict), ("metadata", dict)):
        if not isinstance(body.get(name), kind | None):
            return f"{name} must be a {kind.__name__} if provided, got {type(body[name])}"
    if not all(isinstance(value, str) for value in (body.get("metadata") or {}).values()):
        return "metadata values must be strings"
    return ""
