"""Warnings about a RayCronJob: what is allowed and will not do what it seems to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kuberay_op.api.cron import Every, Fields, parse_schedule
from kuberay_op.api.formats import dns1035_label_problem
from kuberay_op.api.predicates import GateQuery
from kuberay_op.api.problems import Path, Problem
from kuberay_op.api.raycronjob import RayCronJob
from kuberay_op.api.validation import warn_rayjob
from kuberay_op.api.validation.rules import Check, Finding, Findings, run, warning
from kuberay_op.api.validation.subjects import JobSubject


@dataclass(frozen=True, slots=True)
class WholeCron:
    """A whole RayCronJob."""

    obj: RayCronJob
    gates: GateQuery
    at: Path = ()


@warning("warning.cron-gate", "The feature gate RayCronJob is on.")
def gate(cron: WholeCron) -> Findings:
    """Without it nobody looks at the object."""
    if not cron.gates("RayCronJob"):
        yield Finding("kind", "RayCronJob objects are ignored while the feature gate RayCronJob is off")


@warning("warning.cron-name", "The name of a RayCronJob starts with a letter.")
def name(cron: WholeCron) -> Findings:
    """Its RayJobs begin with it, and have to."""
    text = cron.obj.name
    if text and (problem := dns1035_label_problem(text)):
        yield Finding("metadata.name", f"none of its RayJobs will be valid: {problem}", text)


def _schedule(cron: WholeCron) -> Fields | Every | None:
    try:
        return parse_schedule(cron.obj.spec.schedule)
    except ValueError:
        return None


@warning("warning.cron-often", "schedule makes at most one RayJob a minute.")
def often(cron: WholeCron) -> Findings:
    """The names of RayJobs carry the minute, so the second in a minute is not made."""
    schedule = _schedule(cron)
    if isinstance(schedule, Every) and schedule.seconds < 60:
        text = "is shorter than a minute, but at most one RayJob a minute is made"
        yield Finding("spec.schedule", text, cron.obj.spec.schedule)


RULES: Final[tuple[Check[WholeCron], ...]] = (gate, name, often)


def check(cron: WholeCron) -> Iterator[Problem]:
    """All warnings about a RayCronJob."""
    yield from run(RULES, cron)
    template = cron.obj.spec.job_template
    if template:
        yield from warn_rayjob.check(JobSubject.of(template, {}, cron.gates, ("spec", "jobTemplate")))
