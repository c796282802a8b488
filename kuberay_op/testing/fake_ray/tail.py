"""The log of a job, followed over a WebSocket as Ray's dashboard lets one: from its beginning to its end."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import unquote

from aiohttp import web

from kuberay_op.testing.fake_ray.cluster import FakeCluster, Gone
from kuberay_op.testing.fake_ray.http import Reply, Request, text_reply
from kuberay_op.testing.fake_ray.jobs import FINISHED, FakeJobs

#: Seconds between two looks at a log that may have grown.
LOOK: Final = 0.02
#: Characters in one message.
CHUNK: Final = 20_000


def tailed_job(path: str) -> str | None:
    """The job whose log a path follows, if it is such a path."""
    match path.partition("?")[0].split("/"):
        case ["", "api", "jobs", job, "logs", "tail"]:
            return unquote(job)
    return None


async def tail(
    cluster: FakeCluster, request: Request, job: str, asked: web.Request
) -> web.StreamResponse | Reply:
    """Send the log until the job has ended. Raises ``Gone`` when the connection is to break."""
    refusal = cluster.refusal(request)
    if refusal is not None:
        return refusal
    cluster.calls["GET /api/jobs/*/logs/tail"] += 1
    jobs = cluster.jobs
    if job not in jobs.all:
        return text_reply(404, f"Job {job} does not exist")
    socket = web.WebSocketResponse()
    await socket.prepare(asked)
    if "sec-websocket-extensions" in request.headers:
        # As Ray 2.60: the head passes the client's offer to compress on to its own backend, cannot read what
        # comes back, and closes as if all were well.
        await socket.close()
        return socket
    sent = 0
    while not _over(jobs, job, sent):
        text = jobs.all[job].log[sent : sent + CHUNK]
        if text:
            await socket.send_str(text)
            sent += len(text)
        else:
            await asyncio.sleep(LOOK)
        if cluster.jobs is not jobs or (cluster.fault is not None and cluster.fault.kind == "gone"):
            raise Gone  # the head was replaced in the middle of it
    await socket.close()
    return socket


def _over(jobs: FakeJobs, job: str, sent: int) -> bool:
    return jobs.status(job) in FINISHED and sent >= len(jobs.all[job].log)
