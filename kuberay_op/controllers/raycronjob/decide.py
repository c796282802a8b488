"""Whether it is time for a run, which one, and what stands in its way. Pure.

Times that passed while nobody looked are not made up for: of several only the last is run, as a CronJob of
Kubernetes does it. The reference would make a RayJob for each of them at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kuberay_op.api import names
from kuberay_op.api.cron import parse_schedule
from kuberay_op.api.raycronjob import FORBID, REPLACE, RayCronJob
from kuberay_op.api.rayjob import RayJob
from kuberay_op.api.ticks import Ticks
from kuberay_op.api.zones import find_zone
from kuberay_op.controllers.raycronjob.runs import Runs

#: Missed times are counted up to here.
COUNTED: Final = 100


@dataclass(frozen=True, slots=True)
class Decision:
    """What a pass is to do."""

    #: The time that has come and for which there is nothing in the status yet; None when there is none.
    tick: datetime | None = None
    #: Name of its RayJob.
    name: str = ""
    #: Earlier times that passed without a run, and never get one; at most :data:`COUNTED`.
    missed: int = 0
    #: Whether it came too late to be run.
    late: bool = False
    #: The jobs that must end first.
    waits_for: tuple[RayJob, ...] = ()
    #: The jobs that it takes the place of.
    replaces: tuple[RayJob, ...] = ()
    #: Whether its RayJob must be made.
    make: bool = False


def decide(cron: RayCronJob, runs: Runs, now: datetime) -> Decision:
    """What is to be done at this moment for a RayCronJob that has these runs."""
    if cron.spec.suspend:
        return Decision()
    ticks, base = ticks_of(cron), base_of(cron)
    tick = ticks.last_between(base, now)
    if tick is None:
        return Decision()
    name = names.child_rayjob(cron.name, tick)
    everything = (*runs.active, *runs.succeeded, *runs.failed)
    if any(job.name == name for job in everything):
        return Decision(tick, name)  # made, and the operator ended before it could say so
    missed = ticks.count_between(base, tick, most=COUNTED + 1) - 1
    limit = cron.spec.starting_deadline_seconds
    if limit is not None and now - tick > timedelta(seconds=limit):
        return Decision(tick, name, missed, late=True)
    if runs.active and cron.spec.concurrency_policy == FORBID:
        return Decision(tick, name, missed, waits_for=runs.active)
    replaced = tuple(job for job in runs.active if not job.metadata.deletion_timestamp)
    return Decision(
        tick,
        name,
        missed,
        replaces=replaced if cron.spec.concurrency_policy == REPLACE else (),
        make=True,
    )


def seconds_to_next(cron: RayCronJob, now: datetime) -> float | None:
    """How long until it is time again; None when that is never."""
    if cron.spec.suspend:
        return None
    ticks, base = ticks_of(cron), base_of(cron)
    # From the last run if that lies in the future: the clock was set back, and no time is run twice.
    following = ticks.next_after(ticks.last_between(base, now) or base)
    return None if following is None else (following - now).total_seconds()


def ticks_of(cron: RayCronJob) -> Ticks:
    """The times of a RayCronJob; ValueError when its schedule or zone is not valid."""
    return Ticks(parse_schedule(cron.spec.schedule), find_zone(cron.spec.time_zone))


def base_of(cron: RayCronJob) -> datetime:
    """The moment up to which everything is done: the time of the last run, or when the object was made."""
    return datetime.fromisoformat(cron.status.last_schedule_time or cron.metadata.creation_timestamp)
