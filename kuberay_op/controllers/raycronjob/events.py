"""What to tell users of the runs of a RayCronJob, as Kubernetes Events. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kuberay_op.api import reasons
from kuberay_op.api.raycronjob import RayCronJob
from kuberay_op.build.cronjob import timestamp
from kuberay_op.controllers.notes import Note
from kuberay_op.controllers.raycronjob.decide import COUNTED, Decision
from kuberay_op.plan.actions import Create, Delete, Manifest, Outcome


def outcome_notes(outcomes: Sequence[Outcome]) -> Iterator[Note]:
    """What was done to RayJobs, and what was not."""
    for outcome in outcomes:
        name = _named(outcome.action.obj)
        match outcome.action, outcome.error:
            case Create(), None:
                if outcome.changed:
                    text = f"Created RayJob {name}; {outcome.action.reason}"
                    yield Note("Normal", reasons.CREATED_RAYJOB, reasons.ACTION_CREATE, text)
            case Create(), error:
                text = f"Failed to create RayJob {name}, {error}"
                yield Note("Warning", reasons.FAILED_TO_CREATE_RAYJOB, reasons.ACTION_CREATE, text)
            case Delete(), None:
                text = f"Deleted RayJob {name}; {outcome.action.reason}"
                yield Note("Normal", reasons.DELETED_RAYJOB, reasons.ACTION_DELETE, text)
            case Delete(), error:
                text = f"Failed to delete RayJob {name}, {error}"
                yield Note("Warning", reasons.FAILED_TO_DELETE_RAYJOB, reasons.ACTION_DELETE, text)


def decision_notes(cron: RayCronJob, decision: Decision, outcomes: Sequence[Outcome]) -> Iterator[Note]:
    """Why a run was missed or put off."""
    if cron.spec.suspend and cron.status.observed_generation != cron.metadata.generation:
        text = f"{cron.namespace}/{cron.name} is suspended; no RayJob is made"
        yield Note("Normal", reasons.SUSPENDED_RAYCRONJOB, reasons.ACTION_SUSPEND, text)
    if decision.tick is None:
        return
    when = timestamp(decision.tick)
    if decision.late:
        seconds = cron.spec.starting_deadline_seconds
        text = f"Missed the run of {when}: it is more than startingDeadlineSeconds ({seconds}) ago"
        yield Note("Warning", reasons.MISS_SCHEDULE, reasons.ACTION_CREATE, text)
    elif decision.waits_for:
        names = ", ".join(job.name for job in decision.waits_for)
        text = f"The run of {when} waits: concurrencyPolicy is Forbid, and {names} has not finished"
        yield Note("Normal", reasons.JOB_ALREADY_ACTIVE, reasons.ACTION_CREATE, text)
    made = any(isinstance(each.action, Create) and each.error is None and each.changed for each in outcomes)
    if made and decision.missed:
        count = f"{COUNTED} or more" if decision.missed >= COUNTED else str(decision.missed)
        text = f"Missed {count} earlier runs, which are not made up for; the run of {when} was made"
        yield Note("Warning", reasons.MISS_SCHEDULE, reasons.ACTION_CREATE, text)


def _named(obj: Manifest) -> str:
    return f"{obj['metadata'].get('namespace')}/{obj['metadata']['name']}"
