"""A controller: workers that take keys from the queue and make one pass over each.

A pass ends in a ``Result`` or in an exception, and nothing that happens in it reaches another key:

=========================  =====================================================================
the pass                   what follows
=========================  =====================================================================
returns a ``Result``       the failure count is reset; looked at again when the result says so
raises ``Retry(after)``    looked at again after that time; without one, after the back-off
raises ``Invalid``         nothing, until the object changes
API server not answering   back-off of a few seconds at most: it is not this object's fault
the lease is not ours      the same; whoever holds it will look at the object
takes too long             cancelled; back-off
raises anything else       back-off; the traceback goes to the log
=========================  =====================================================================

Each pass leaves one line in the log.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any, Final
from uuid import UUID

from kuberay_op.clock import Clock
from kuberay_op.errors import Invalid, OperatorError, Retry
from kuberay_op.kube.errors import DeadlineExceeded, ServerError, TooManyRequests, Unreachable
from kuberay_op.kube.fence import NotLeader
from kuberay_op.kube.resource import Key
from kuberay_op.logs import bind, get_logger
from kuberay_op.metrics import ControllerMetrics, Outcome
from kuberay_op.runtime.queue import Queue, QueueClosed
from kuberay_op.runtime.result import Result

#: Passes that may run at once when the configuration does not say.
CONCURRENCY: Final = 4

#: Seconds a pass may take; every call inside has a shorter limit of its own.
TIMEOUT: Final = 120.0

#: Longest back-off, in seconds, after failures that say something about the API server, not about the key.
#: Short, so that all is well again soon after the server is.
OUTAGE_BACKOFF: Final = 5.0

#: Passes remembered for ``/debug``, one per key.
REMEMBERED: Final = 10_000

Reconcile = Callable[[Key], Awaitable[Result]]


@dataclass(frozen=True, slots=True)
class Pass:
    """One finished pass, as the log and ``/debug`` show it."""

    key: Key
    at: datetime
    seconds: float
    outcome: Outcome
    problem: str = ""
    again_in: float | None = None
    summary: Mapping[str, Any] = field(default_factory=dict)


class Controller:
    """Runs ``reconcile`` for the keys of its queue; see the module for what its ending means.

    ``name`` labels the metrics (``raycluster``); ``kind`` names the object in the log (``RayCluster``), and
    the logger unless ``logger`` does.
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        queue: Queue,
        clock: Clock,
        rng: Random,
        kind: str = "",
        logger: str = "",
        concurrency: int = CONCURRENCY,
        timeout: float = TIMEOUT,
        metrics: ControllerMetrics | None = None,
    ) -> None:
        self.name = name
        self.queue = queue
        self.last: OrderedDict[Key, Pass] = OrderedDict()
        self._reconcile = reconcile
        self._clock = clock
        self._rng = rng
        self._kind = kind or name
        self._concurrency = concurrency
        self._timeout = timeout
        self._metrics = metrics
        self._log = get_logger(f"controllers.{logger or self._kind}")
        self._report_workers()

    async def run(self) -> None:
        """Work until the queue is closed, and finish what is in work then."""
        async with asyncio.TaskGroup() as group:
            pump = group.create_task(self.queue.run(), name=f"{self.name} queue")
            workers = [
                group.create_task(self._work(), name=f"{self.name} worker {number}")
                for number in range(self._concurrency)
            ]
            await asyncio.wait(workers)
            pump.cancel()

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except QueueClosed:
                return
            self._report_workers()
            try:
                await self._pass(key)
            finally:
                self.queue.done(key)
                self._report_workers()

    async def _pass(self, key: Key) -> None:
        pass_id = str(UUID(int=self._rng.getrandbits(128), version=4))
        with bind(**{self._kind: {"name": key.name, "namespace": key.namespace}}, reconcileID=pass_id):
            at, started = self._clock.now(), self._clock.monotonic()
            result, failure = Result.done(), None
            try:
                result = await self._limited(key)
                outcome, again_in = self._after_success(key, result)
            except Exception as error:  # noqa: BLE001 (whatever it was, it must not reach another key)
                failure = error
                outcome, again_in = _outcome(error), self._after_failure(key, error)
            seconds = self._clock.monotonic() - started
            done = Pass(key, at, seconds, outcome, _sentence(failure), again_in, result.summary)
            self._remember(done, gone=result.is_gone)
            self._report(done, failure)

    async def _limited(self, key: Key) -> Result:
        try:
            async with asyncio.timeout(self._timeout) as limit:
                return await self._reconcile(key)
        except TimeoutError as error:
            if limit.expired():
                raise Retry(f"the pass took longer than {self._timeout:g} s and was stopped") from error
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Something inside was cancelled and nobody caught it; the worker itself must live on.
            raise RuntimeError("a task that the pass waited for was cancelled") from error

    def _after_success(self, key: Key, result: Result) -> tuple[Outcome, float | None]:
        self.queue.forget(key)
        if result.seconds is None:
            return "success", None
        self.queue.add_after(key, result.seconds)
        return "requeue_after", result.seconds

    def _after_failure(self, key: Key, error: Exception) -> float | None:
        """Put the key back as the error demands; gives the seconds until then, None for never."""
        match error:
            case Invalid():
                self.queue.forget(key)
                return None
            case Retry(after=float() | int() as wait) | TooManyRequests(retry_after=float() as wait):
                self.queue.add_after(key, wait)
                return wait
            case Unreachable() | DeadlineExceeded() | ServerError() | TooManyRequests() | NotLeader():
                return self.queue.retry(key, cap=OUTAGE_BACKOFF)
            case _:
                return self.queue.retry(key)

    def _remember(self, done: Pass, *, gone: bool) -> None:
        self.last.pop(done.key, None)
        if not gone:
            self.last[done.key] = done
            if len(self.last) > REMEMBERED:
                self.last.popitem(last=False)

    def _report(self, done: Pass, error: Exception | None) -> None:
        expected = isinstance(error, OperatorError)
        if self._metrics:
            self._metrics.reconciled(done.outcome, done.seconds)
            if done.outcome == "error":
                self._metrics.error(terminal=isinstance(error, Invalid))
            if error is not None and not expected:
                self._metrics.panic()
        log = self._log.bind(**done.summary, result=done.outcome, seconds=round(done.seconds, 6))
        if done.again_in is not None:
            log = log.bind(again_in=round(done.again_in, 3))
        if error is None:
            log.info("reconciled")
        elif isinstance(error, Retry | NotLeader):
            log.info("not finished yet", waiting=done.problem)
        elif isinstance(error, Invalid):
            log.warning("not valid; nothing is done until it is changed", error=done.problem)
        else:
            log.error("pass failed", error=done.problem, exc_info=None if expected else error)

    def _report_workers(self) -> None:
        if self._metrics:
            self._metrics.workers(self.queue.in_work, self._concurrency)


def _outcome(error: Exception) -> Outcome:
    match error:
        case Retry(after=None) | NotLeader():
            return "requeue"
        case Retry():
            return "requeue_after"
        case _:
            return "error"


def _sentence(error: Exception | None) -> str:
    if error is None:
        return ""
    return str(error) if isinstance(error, OperatorError) else f"{type(error).__name__}: {error}"
