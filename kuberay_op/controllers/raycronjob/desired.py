"""The RayCronJob's part in the pipeline: what there should be, and what to say about it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kuberay_op.api.raycronjob import RayCronJob
from kuberay_op.api.rayjob import RayJob
from kuberay_op.api.validation import Failure
from kuberay_op.build.cronjob import scheduled_rayjob, timestamp
from kuberay_op.controllers.notes import Note
from kuberay_op.controllers.pipeline import Kind, Report
from kuberay_op.controllers.raycronjob.decide import Decision, decide, seconds_to_next
from kuberay_op.controllers.raycronjob.events import decision_notes, outcome_notes
from kuberay_op.controllers.raycronjob.metrics import CronMetrics
from kuberay_op.controllers.raycronjob.runs import Runs
from kuberay_op.controllers.wishes import causes_of
from kuberay_op.hooks.scope import Gang, Scope
from kuberay_op.hooks.typed import Hooks
from kuberay_op.plan.actions import Action, Create, Delete, Manifest, Outcome, Wanted

#: Lanes of a plan: the jobs that make room, then the new one. Each run has a lane of its own, so that the
#: refusal of one does not put off the next.
REPLACED: Final = "replaced"
HISTORY: Final = "history"
RUN: Final = "run "

#: Longest sleep, in seconds. Sleeping follows a clock that nobody can set, schedules follow the wall's: one
#: that was set forward is noticed after this time at the latest.
LONGEST: Final = 600.0


class RayCronJobKind(Kind):
    """The RayCronJob's part in the pipeline."""

    def __init__(self, metrics: CronMetrics | None = None) -> None:
        self._metrics = metrics

    def skips(self, owner: Manifest) -> bool:
        """Never: only the jobs can be managed by somebody else, as their template says."""
        return False

    def gang(self, scope: Scope) -> Gang:
        """No Pods: the jobs have theirs."""
        return Gang(scope.name, ())

    def due(self, scope: Scope) -> float | None:
        """When it is time again, or when to see what the clock on the wall shows."""
        seconds = seconds_to_next(RayCronJob(dict(scope.owner)), scope.now)
        return None if seconds is None else min(seconds, LONGEST)

    def wanted(self, scope: Scope, hooks: Hooks) -> Wanted:
        """The job whose time has come; without those that it replaces or that are too old to keep."""
        cron, runs, decision = _look(scope)
        actions: list[Action] = [
            Delete(job.raw, "concurrencyPolicy is Replace, and it is time for the next", lane=REPLACED)
            for job in decision.replaces
        ]
        if decision.make and decision.tick is not None:
            built = hooks.patch_object(scope, scheduled_rayjob(cron, decision.tick))
            actions.append(
                Create(
                    built.obj,
                    f"it is time: {timestamp(decision.tick)}",
                    causes_of(built.changes),
                    lane=RUN + decision.name,
                    after=(REPLACED,),
                    once=True,
                )
            )
        actions += [
            Delete(job.raw, "there are more finished jobs than are to be kept", lane=HISTORY)
            for job in runs.beyond(cron.spec)
        ]
        return Wanted([], tuple(actions))

    def notes(self, scope: Scope, outcomes: Sequence[Outcome]) -> Iterator[Note]:
        """Jobs that were made, deleted, missed or put off; once per edit, that none are made."""
        cron, _, decision = _look(scope)
        yield from outcome_notes(outcomes)
        yield from decision_notes(cron, decision, outcomes)

    def status(self, scope: Scope, standing: Sequence[Manifest], report: Report) -> dict[str, Any]:
        """All fields of the status. A time counts as run when its job is there."""
        cron, _, decision = _look(scope)
        runs = Runs.of(standing)
        status: dict[str, Any] = {"observedGeneration": cron.metadata.generation}
        if decision.tick is not None and decision.name in _names(standing):
            status["lastScheduleTime"] = timestamp(decision.tick)
        success = max(cron.status.last_successful_time, runs.last_success())
        if success:
            status["lastSuccessfulTime"] = success
        if runs.active or cron.status.active:
            status["active"] = [_reference(job) for job in runs.active] or None
        return status

    def invalid(self, scope: Scope, broken: Failure) -> dict[str, Any]:
        """Nothing in the status says so; an event does."""
        return {}

    def written(self, scope: Scope, status: Mapping[str, Any]) -> bool:
        """Count the times that were missed; nothing follows from the status."""
        if self._metrics is not None and "lastScheduleTime" in status:
            _, _, decision = _look(scope)
            self._metrics.missed(scope.owner, decision.missed)
        return False


def _look(scope: Scope) -> tuple[RayCronJob, Runs, Decision]:
    cron = RayCronJob(dict(scope.owner))
    runs = Runs.of(scope.children.get(RayJob.KIND, ()))
    return cron, runs, decide(cron, runs, scope.now)


def _names(objects: Sequence[Manifest]) -> set[str]:
    return {str(obj["metadata"]["name"]) for obj in objects if obj.get("kind") == RayJob.KIND}


def _reference(job: RayJob) -> dict[str, str]:
    return {
        "apiVersion": "ray.io/v1",
        "kind": RayJob.KIND,
        "namespace": job.namespace,
        "name": job.name,
        "uid": job.metadata.uid,
    }
