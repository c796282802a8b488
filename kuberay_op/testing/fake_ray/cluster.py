"""One fake cluster: its jobs, its applications, its token and its faults."""

from __future__ import annotations

import asyncio
import hmac
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import orjson

from kuberay_op.clock import Clock
from kuberay_op.testing.fake_ray.http import (
    NONSENSE,
    WEB_PAGE,
    Fault,
    Reply,
    Request,
    json_reply,
    text_reply,
    traceback_reply,
)
from kuberay_op.testing.fake_ray.jobs import FakeJobs, JobScript
from kuberay_op.testing.fake_ray.serve import AppScript, FakeServe

RAY_VERSION: Final = "2.52.0"
#: Requests that a cluster remembers.
REMEMBERED: Final = 1000
#: Paths that need no token.
PUBLIC: Final = frozenset({"/api/gcs_healthz", "/api/healthz", "/-/healthz"})


class Gone(Exception):
    """The connection ends without a reply."""


class Truncated(Exception):
    """The connection ends in the middle of ``reply``."""

    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self.reply = reply


class FakeCluster:
    """A Ray cluster as its dashboard shows it. Everything may be read and changed while it runs.

    ``calls`` counts requests by method and path (``GET /api/jobs/*``), ``requests`` holds the latest ones,
    ``busiest`` is the largest number that was under way at once.
    """

    def __init__(
        self,
        name: str,
        *,
        clock: Clock,
        token: str | None = None,
        jobs: JobScript | None = None,
        apps: AppScript | None = None,
        fault: Fault | None = None,
    ) -> None:
        self.name = name
        self.clock = clock
        self.token = token
        self.fault = fault
        self.jobs = FakeJobs(clock, jobs or JobScript())
        self.serve = FakeServe(clock, apps or AppScript())
        self.calls: Counter[str] = Counter()
        self.requests: deque[Request] = deque(maxlen=REMEMBERED)
        self.busiest = 0
        self._busy = 0

    def restart(self) -> None:
        """The head Pod was replaced, and nothing was kept: all jobs and applications are forgotten."""
        self.jobs = FakeJobs(self.clock, self.jobs.script, self.jobs.scripts)
        self.serve = FakeServe(self.clock, self.serve.script, self.serve.scripts)

    async def handle(self, request: Request) -> Reply:
        """Answer a request, or fail to, as the fault says. Raises ``Gone`` or ``Truncated``."""
        self.requests.append(request)
        self._busy += 1
        self.busiest = max(self.busiest, self._busy)
        try:
            return await self._faulty(request)
        finally:
            self._busy -= 1

    async def _faulty(self, request: Request) -> Reply:
        fault = self.fault
        if fault is None or not fault.hits(request.path):
            return self.answer(request)
        match fault.kind:
            case "slow":
                await self.clock.sleep(fault.value)
            case "hang":
                await asyncio.get_running_loop().create_future()  # ends when the client or the server does
            case "gone":
                raise Gone
            case "truncated":
                raise Truncated(self.answer(request))
            case "html":
                return WEB_PAGE
            case "nonsense":
                return NONSENSE
            case "status":
                return traceback_reply(int(fault.value), "RuntimeError: this cluster is broken on purpose")
        return self.answer(request)

    def answer(self, request: Request) -> Reply:
        """The right answer, without any fault."""
        path = urlsplit(request.path).path
        refusal = self.refusal(request)
        if refusal is not None:
            return refusal
        name, respond = self._route(request.method, path)
        self.calls[name] += 1
        if request.method not in {"POST", "PUT"}:
            return respond(None)
        try:
            return respond(orjson.loads(request.body) if request.body else None)
        except orjson.JSONDecodeError as error:
            return traceback_reply(500, f"json.decoder.JSONDecodeError: {error}")

    def refusal(self, request: Request) -> Reply | None:
        """What a request is told that does not carry the token; None when it may pass."""
        if self.token is None or urlsplit(request.path).path in PUBLIC:
            return None
        given = request.headers.get("authorization") or request.headers.get("x-ray-authorization") or ""
        if not given:
            return text_reply(401, "Unauthorized: Missing authentication token")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
            return text_reply(403, "Forbidden: Invalid authentication token")
        return None

    def _route(self, method: str, path: str) -> tuple[str, Callable[[Any], Reply]]:
        fixed: dict[str, Callable[[Any], Reply]] = {
            "GET /api/version": lambda _: json_reply(self._version()),
            "GET /api/gcs_healthz": lambda _: text_reply(200, "success"),
            "GET /-/healthz": lambda _: self.serve.health(),
            "GET /api/serve/applications/": lambda _: self.serve.details(),
            "PUT /api/serve/applications/": self.serve.put,
            "GET /api/jobs/": lambda _: self.jobs.list(),
            "POST /api/jobs/": self.jobs.submit,
        }
        name = f"{method} {path}"
        if name in fixed:
            return name, fixed[name]
        match path.split("/"):
            case ["", "api", "jobs", quoted, *rest] if quoted:
                job_id = unquote(quoted)
                jobs: dict[str, Callable[[Any], Reply]] = {
                    "GET /api/jobs/*": lambda _: self.jobs.info(job_id),
                    "DELETE /api/jobs/*": lambda _: self.jobs.delete(job_id),
                    "POST /api/jobs/*/stop": lambda _: self.jobs.stop(job_id),
                    "GET /api/jobs/*/logs": lambda _: self.jobs.logs(job_id),
                }
                name = f"{method} {'/'.join(['/api/jobs/*', *rest])}"
                if name in jobs:
                    return name, jobs[name]
        return name, lambda _: text_reply(404, "404: Not Found")

    def _version(self) -> dict[str, str]:
        return {
            "version": "4",
            "ray_version": RAY_VERSION,
            "ray_commit": "0" * 40,
            "session_name": f"session_{self.name}",
        }
