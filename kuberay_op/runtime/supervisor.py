"""Keeps a task alive that must run for as long as the process does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final, NoReturn

from kuberay_op.clock import Clock
from kuberay_op.errors import OperatorError
from kuberay_op.logs import get_logger
from kuberay_op.runtime.backoff import Backoff

#: Soon at first, since most failures pass; never longer than this, so that recovery needs no restart.
RESTARTS: Final = Backoff(base=0.2, cap=5.0)

#: A task that ran this long before it failed starts again with the shortest delay.
HEALTHY_AFTER: Final = 60.0

_log = get_logger("runtime.supervisor")


@dataclass(slots=True)
class Supervisor:
    """Runs tasks and starts them again when they end, whatever the reason; cancellation passes through."""

    clock: Clock
    rng: Random
    backoff: Backoff = RESTARTS
    #: How often each task had to be started again, for ``/debug``.
    restarts: dict[str, int] = field(default_factory=dict)

    async def keep(self, name: str, task: Callable[[], Awaitable[None]]) -> NoReturn:
        """Run ``task`` for ever; ``name`` appears in the log."""
        failures = 0
        while True:
            started = self.clock.monotonic()
            problem, unexpected = "it ended by itself", None
            try:
                await task()
            except OperatorError as error:
                problem = str(error)
            except Exception as error:  # noqa: BLE001 (whatever it was, the task must go on)
                problem, unexpected = f"{type(error).__name__}: {error}", error
            ran = self.clock.monotonic() - started
            failures = 1 if ran >= HEALTHY_AFTER else failures + 1
            delay = self.backoff.delay(failures, self.rng)
            self.restarts[name] = self.restarts.get(name, 0) + 1
            _log.error(
                "background task ended and will be started again",
                task=name,
                problem=problem,
                seconds=round(delay, 3),
                exc_info=unexpected,
            )
            await self.clock.sleep(delay)
