"""Whether this process is alive and ready, for the kubelet and for people.

``/healthz`` answers *restart me?* and so fails only for what a restart mends: an event loop that does not
turn, or a reflector that hears nothing although the API server answers others. An API server that is down is
no reason: we would come back just as deaf.

``/readyz`` answers *could this process work?*: its caches are filled, whether it leads or stands by.

Both give a line per check; a failing one says why.
"""

from __future__ import annotations

import asyncio
import faulthandler
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn

from kuberay_op.clock import Clock
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import ApiError
from kuberay_op.kube.reflector import Reflector

#: Gives None when all is well, else one sentence that says what is not.
Check = Callable[[], Awaitable[str | None]]

#: Seconds between two heartbeats of the loop, and without one after which it counts as stuck.
BEAT: Final = 1.0
STUCK_AFTER: Final = 30.0

#: Seconds of nothing but failures after which a reflector counts as deaf …
DEAF_AFTER: Final = 60.0

#: … and of silence; its own limit, after which it connects anew, is far shorter.
SILENT_AFTER: Final = 300.0

#: Seconds for which the API server's last answer is taken as its answer now.
REMEMBER: Final = 5.0


@dataclass(slots=True)
class Heartbeat:
    """Measures how late the event loop runs things; a loop that never runs the beat is stuck.

    With ``dump`` the stacks of all threads go to stderr when the loop is stuck, while it still is.
    """

    clock: Clock
    dump: bool = False
    lag: float = 0.0  # seconds the last beat came late
    worst: float = 0.0  # seconds the latest beat ever came
    last: float = field(default=0.0)

    def __post_init__(self) -> None:
        self.last = self.clock.monotonic()

    async def run(self) -> NoReturn:
        """Beat for ever."""
        try:
            while True:
                if self.dump:
                    faulthandler.dump_traceback_later(STUCK_AFTER)
                due = self.clock.monotonic() + BEAT
                await self.clock.sleep(BEAT)
                self.last = self.clock.monotonic()
                self.lag = max(0.0, self.last - due)
                self.worst = max(self.worst, self.lag)
        finally:
            if self.dump:
                faulthandler.cancel_dump_traceback_later()

    async def check(self) -> str | None:
        """Whether the loop turns. If it does not, nobody gets here, and the probe times out."""
        silent = self.clock.monotonic() - self.last
        return (
            f"the event loop has not run its heartbeat for {silent:.0f} s" if silent > STUCK_AFTER else None
        )


class Hearing:
    """Finds reflectors that are deaf although the API server talks to us."""

    def __init__(self, client: Client, reflectors: Mapping[str, Reflector], *, clock: Clock) -> None:
        self._client = client
        self._reflectors = reflectors
        self._clock = clock
        self._asked_at = float("-inf")
        self._answers = False

    async def check(self) -> str | None:
        """Names the deaf ones; None also when the API server itself does not answer."""
        deaf = [
            f"{name} {problem}" for name, each in self._reflectors.items() if (problem := self._deaf(each))
        ]
        if deaf and await self._server_answers():
            return f"the API server answers, but these watches hear nothing: {'; '.join(deaf)}"
        return None

    def _deaf(self, reflector: Reflector) -> str | None:
        if not reflector.synced.is_set() or reflector.last_contact is None:
            return None  # not ready yet, which is for /readyz to say
        now = self._clock.monotonic()
        failing = now - reflector.failing_since if reflector.failing_since is not None else 0.0
        if failing > DEAF_AFTER:
            return f"(failing for {failing:.0f} s)"
        silent = now - reflector.last_contact
        return f"(silent for {silent:.0f} s)" if silent > SILENT_AFTER else None

    async def _server_answers(self) -> bool:
        if self._clock.monotonic() - self._asked_at > REMEMBER:
            try:
                await self._client.request("GET", "/version", deadline=2.0)
                self._answers = True
            except ApiError as error:
                self._answers = error.status > 0  # a refusal is an answer too
            self._asked_at = self._clock.monotonic()
        return self._answers


@dataclass(slots=True)
class Health:
    """The checks behind the two probes, by name."""

    live: dict[str, Check] = field(default_factory=dict)
    ready: dict[str, Check] = field(default_factory=dict)


async def report(checks: Mapping[str, Check]) -> tuple[bool, str]:
    """Whether all is well, and a line for each check in the form Kubernetes components use."""
    answers = await asyncio.gather(*(check() for check in checks.values()))
    lines = [
        f"[+]{name} ok" if problem is None else f"[-]{name} failed: {problem}"
        for name, problem in zip(checks, answers, strict=True)
    ]
    well = all(problem is None for problem in answers)
    return well, "\n".join([*lines, "ok" if well else "failed", ""])
