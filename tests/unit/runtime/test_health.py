"""The checks behind the probes: a stuck loop, a deaf reflector, and nothing else."""

from __future__ import annotations

import asyncio
import faulthandler
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import Forbidden, Unreachable
from kuberay_op.kube.reflector import Reflector
from kuberay_op.runtime.health import DEAF_AFTER, SILENT_AFTER, Hearing, Heartbeat, report
from kuberay_op.testing.clock import FakeClock


async def test_the_heartbeat_measures_how_late_the_loop_is() -> None:
    clock = FakeClock()
    heart = Heartbeat(clock)
    task = asyncio.create_task(heart.run())
    await clock.advance(5)
    assert (heart.lag, heart.worst) == (0, 0)
    await clock.leap(9)  # the loop was kept
    assert heart.lag == 8
    await clock.advance(5)
    assert (heart.lag, heart.worst) == (0, 8)
    assert await heart.check() is None
    task.cancel()
    await clock.advance(31)
    assert await heart.check() == "the event loop has not run its heartbeat for 31 s"


async def test_a_stuck_loop_is_shown_on_stderr_while_it_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    armed: list[float | None] = []
    monkeypatch.setattr(faulthandler, "dump_traceback_later", armed.append)
    monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", lambda: armed.append(None))
    clock = FakeClock()
    task = asyncio.create_task(Heartbeat(clock, dump=True).run())
    await clock.advance(2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert armed == [30.0, 30.0, 30.0, None], "armed anew at every beat, and disarmed at the end"


class Server:
    """An API server that answers as told and counts how often it is asked."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.asked = 0

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        self.asked += 1
        if self.error:
            raise self.error
        return b"{}"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def reflector(
    *, contact: float | None = 0.0, failing_since: float | None = None, synced: bool = True
) -> Reflector:
    event = asyncio.Event()
    if synced:
        event.set()
    return cast(Reflector, SimpleNamespace(synced=event, last_contact=contact, failing_since=failing_since))


async def test_a_reflector_that_hears_is_well_and_nobody_is_asked(clock: FakeClock) -> None:
    server = Server()
    hearing = Hearing(cast(Client, server), {"pods": reflector()}, clock=clock)
    await clock.advance(SILENT_AFTER)
    assert await hearing.check() is None
    assert server.asked == 0


@pytest.mark.parametrize(
    ("state", "after", "problem"),
    [
        ({"failing_since": 0.0}, DEAF_AFTER + 1, "pods (failing for 61 s)"),
        ({"contact": 0.0}, SILENT_AFTER + 1, "pods (silent for 301 s)"),
    ],
)
async def test_a_deaf_reflector_fails_if_the_server_answers(
    clock: FakeClock, state: dict[str, Any], after: float, problem: str
) -> None:
    server = Server()
    hearing = Hearing(cast(Client, server), {"pods": reflector(**state)}, clock=clock)
    await clock.advance(after)
    assert await hearing.check() == f"the API server answers, but these watches hear nothing: {problem}"
    server.error = Forbidden("no", status=403)
    await clock.advance(6)
    assert await hearing.check() is not None, "a refusal is an answer"
    server.error = Unreachable("no answer")
    assert await hearing.check() is not None, "the last answer is remembered for a while"
    await clock.advance(6)
    assert await hearing.check() is None, "a server that is down is no reason to restart"
    assert server.asked == 3


async def test_a_reflector_that_was_never_in_sync_is_a_matter_of_readiness(clock: FakeClock) -> None:
    hearing = Hearing(
        cast(Client, Server()),
        {
            "pods": reflector(failing_since=0.0, synced=False),
            "jobs": reflector(contact=None, failing_since=0.0),
        },
        clock=clock,
    )
    await clock.advance(1000)
    assert await hearing.check() is None


async def test_a_report_has_a_line_for_each_check() -> None:
    async def well() -> str | None:
        return None

    async def ill() -> str | None:
        return "no pulse"

    assert await report({"a": well, "b": ill}) == (False, "[+]a ok\n[-]b failed: no pulse\nfailed\n")
    assert await report({}) == (True, "ok\n")
