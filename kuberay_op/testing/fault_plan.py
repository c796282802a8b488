"""What goes wrong, and when: the deciding half of the fault proxy (``faults`` is the other half).

A decision depends on nothing but the seed, the kind of call ("watch pods") and how many such calls came
before. Two runs with one seed therefore meet the same faults however their tasks interleave, and the log of
a failed run can be played again, whole or thinned out, with :class:`ExactPlan`.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

#: Strikes remembered by a plan; older ones are forgotten so that a day of faults costs no memory.
LOG_LENGTH: Final = 10_000


class Fault(StrEnum):
    """Everything the proxy can do to a call."""

    RESET_BEFORE = "reset-before"  # the connection is reset, the server never sees the request
    RESET_AFTER = "reset-after"  # the server does as asked, its answer is lost
    RESET_BODY = "reset-body"  # half of the answer, then a reset
    HANG = "hang"  # no answer; the socket stays open
    TRUNCATE = "truncate"  # a complete answer whose JSON stops half-way
    SLOW = "slow"  # the answer comes in small pieces with pauses
    CONFLICT = "conflict"  # 409
    THROTTLE = "throttle"  # 429 with Retry-After
    INTERNAL = "internal"  # 500
    UNAVAILABLE = "unavailable"  # 503
    GONE = "gone"  # 410 in answer to a watch, or to a further page of a list
    GONE_EVENT = "gone-event"  # an ERROR event with code 410, then the end of the stream
    SILENCE = "silence"  # the stream goes quiet without an end: a half-open socket
    CUT_EVENT = "cut-event"  # half an event, then a reset
    TRUNCATE_EVENT = "truncate-event"  # half an event, then an orderly end
    DUPLICATE = "duplicate"  # an event comes twice
    DELAY = "delay"  # the stream pauses before an event; the order stays as it was


#: Faults that end a watch in the middle. They may come at any event.
STREAM_ENDS: Final = frozenset({Fault.GONE_EVENT, Fault.SILENCE, Fault.CUT_EVENT, Fault.TRUNCATE_EVENT})

#: Faults that meet single events of a watch, which then goes on.
EVENT_FAULTS: Final = frozenset({Fault.DUPLICATE, Fault.DELAY})

_ANY_CALL: Final = frozenset(
    {Fault.RESET_BEFORE, Fault.HANG, Fault.SLOW, Fault.THROTTLE, Fault.INTERNAL, Fault.UNAVAILABLE}
)
_WHOLE_ANSWER: Final = frozenset({Fault.RESET_AFTER, Fault.RESET_BODY, Fault.TRUNCATE})

#: A bad day: of ten calls about three fail, and a watch breaks after some ninety events.
BAD_DAY: Final[Mapping[Fault, float]] = {
    Fault.RESET_BEFORE: 0.04,
    Fault.RESET_AFTER: 0.04,
    Fault.RESET_BODY: 0.03,
    Fault.HANG: 0.01,
    Fault.TRUNCATE: 0.03,
    Fault.SLOW: 0.03,
    Fault.CONFLICT: 0.05,
    Fault.THROTTLE: 0.03,
    Fault.INTERNAL: 0.03,
    Fault.UNAVAILABLE: 0.03,
    Fault.GONE: 0.05,
    Fault.GONE_EVENT: 0.003,
    Fault.SILENCE: 0.002,
    Fault.CUT_EVENT: 0.003,
    Fault.TRUNCATE_EVENT: 0.003,
    Fault.DUPLICATE: 0.05,
    Fault.DELAY: 0.01,
}


@dataclass(frozen=True, slots=True)
class Call:
    """A request as Kubernetes counts them: a verb on a resource."""

    verb: str
    resource: str
    paging: bool = False  # asks for a further page of a list

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"

    @property
    def faults(self) -> frozenset[Fault]:
        """The faults that a real server or network could show on this call, before its first event."""
        if self.verb == "watch":
            return _ANY_CALL | {Fault.GONE}
        if self.verb == "list":
            return _ANY_CALL | _WHOLE_ANSWER | ({Fault.GONE} if self.paging else frozenset())
        if self.verb == "get":
            return _ANY_CALL | _WHOLE_ANSWER
        return _ANY_CALL | _WHOLE_ANSWER | {Fault.CONFLICT}


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault that happened: to the nth call of its kind and, in a watch, at which event of it."""

    call: str
    number: int
    fault: Fault
    event: int | None = None

    def __str__(self) -> str:
        at = "" if self.event is None else f" at event {self.event}"
        return f"{self.call} #{self.number}: {self.fault}{at}"


class Plan:
    """Counts calls, remembers strikes; subclasses decide. By itself it lets everything pass."""

    def __init__(self) -> None:
        self.log: deque[Strike] = deque(maxlen=LOG_LENGTH)
        self.strikes: Counter[Fault] = Counter()
        self._numbers: Counter[str] = Counter()

    def script(self, call: Call) -> Script:
        """Decide on the next call; the same calls in the same order get the same scripts."""
        self._numbers[str(call)] += 1
        return self._decide(call, self._numbers[str(call)])

    def struck(self, strike: Strike) -> None:
        """Note that a fault really happened (a planned one may not, when its stream ends before)."""
        self.log.append(strike)
        self.strikes[strike.fault] += 1

    def _decide(self, call: Call, number: int) -> Script:
        return Script(self, call, number)


class Script:
    """The fate of one call. ``fault`` meets the call as a whole."""

    def __init__(self, plan: Plan, call: Call, number: int, fault: Fault | None = None) -> None:
        self._plan = plan
        self._call = call
        self._number = number
        self.fault = self._noted(fault)

    def at(self, event: int) -> Fault | None:
        """What happens at this event of a watch, counted from 0."""
        return self._noted(self._event_fault(event), event)

    def _event_fault(self, event: int) -> Fault | None:
        return None

    def _noted(self, fault: Fault | None, event: int | None = None) -> Fault | None:
        if fault is not None:
            self._plan.struck(Strike(str(self._call), self._number, fault, event))
        return fault


class FaultPlan(Plan):
    """Random faults from a seed.

    Args:
        seed: Say it in the failure message; it is all that is needed to meet the same faults again.
        rates: Probability of each fault per call, or per event for those that strike inside a watch.
    """

    def __init__(self, seed: int, rates: Mapping[Fault, float] = BAD_DAY) -> None:
        super().__init__()
        self.seed = seed
        self.rates = dict(rates)
        for fault, rate in rates.items():
            if not 0 <= rate <= 1:
                raise ValueError(f"the rate of {fault} is {rate}; it must be between 0 and 1")

    def __repr__(self) -> str:
        return f"FaultPlan(seed={self.seed})"

    def _decide(self, call: Call, number: int) -> Script:
        # A generator per call, seeded by its place, keeps decisions independent of interleaving.
        rng = random.Random(f"{self.seed}/{call}/{number}")  # noqa: S311 - a test kit, not a secret
        return _Drawn(self, call, number, rng)


class ExactPlan(Plan):
    """Exactly these faults and no others: for tests of one fault, and to replay the log of a failed run."""

    def __init__(self, *strikes: Strike) -> None:
        super().__init__()
        self._strikes: dict[tuple[str, int], dict[int | None, Fault]] = {}
        for strike in strikes:
            self._strikes.setdefault((strike.call, strike.number), {})[strike.event] = strike.fault

    def _decide(self, call: Call, number: int) -> Script:
        return _Exact(self, call, number, self._strikes.get((str(call), number), {}))


class _Exact(Script):
    """A script written out beforehand."""

    def __init__(self, plan: Plan, call: Call, number: int, faults: Mapping[int | None, Fault]) -> None:
        super().__init__(plan, call, number, faults.get(None))
        self._faults = faults

    def _event_fault(self, event: int) -> Fault | None:
        return self._faults.get(event)


class _Drawn(Script):
    """A script drawn as the call goes on."""

    def __init__(self, plan: FaultPlan, call: Call, number: int, rng: random.Random) -> None:
        self._rates = plan.rates
        self._rng = rng
        super().__init__(plan, call, number, self._draw(call.faults))

    def _event_fault(self, event: int) -> Fault | None:
        return self._draw(STREAM_ENDS | EVENT_FAULTS)

    def _draw(self, candidates: Iterable[Fault]) -> Fault | None:
        # One throw against the stacked rates: at most one fault, each as likely as its rate says. Sorted,
        # because the order of a set of strings differs between two runs of Python.
        throw = self._rng.random()
        for fault in sorted(candidates):
            throw -= self._rates.get(fault, 0.0)
            if throw < 0:
                return fault
        return None
