"""The rules of a RayCronJob."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kuberay_op.api.cron import Fields, parse_schedule
from kuberay_op.api.predicates import GateQuery
from kuberay_op.api.problems import Path, Problem, show
from kuberay_op.api.raycronjob import RayCronJobSpec
from kuberay_op.api.validation.rayjob import job_spec
from kuberay_op.api.validation.rules import Check, Finding, Findings, rule, run
from kuberay_op.api.validation.subjects import JobSubject
from kuberay_op.api.zones import find_zone


@dataclass(frozen=True, slots=True)
class CronSubject:
    """The spec of a RayCronJob."""

    spec: RayCronJobSpec
    gates: GateQuery
    at: Path = ("spec",)


@rule("raycronjob.spec.2", "schedule names no time zone; timeZone does.")
def zone_in_schedule(cron: CronSubject) -> Findings:
    """The text TZ anywhere in it counts."""
    if "TZ" in cron.spec.schedule:
        yield Finding("schedule", "must not hold a time zone (TZ); use timeZone instead", cron.spec.schedule)


@rule("raycronjob.spec.3", "schedule is a cron schedule that matches some day.")
def schedule(cron: CronSubject) -> Findings:
    """Five fields, or a descriptor such as @daily. The 30th of February never comes."""
    if "TZ" in cron.spec.schedule:
        return  # rule 2 has said it
    try:
        parsed = parse_schedule(cron.spec.schedule)
    except ValueError as error:
        text = f"{show(cron.spec.schedule)} is not a cron schedule: {error}"
        yield Finding("schedule", text, cron.spec.schedule)
        return
    if isinstance(parsed, Fields) and not parsed.can_match():
        text = f"{show(cron.spec.schedule)} never matches; choose a day that the months have"
        yield Finding("schedule", text, cron.spec.schedule)


@rule("raycronjob.spec.4", "timeZone is not empty.")
def zone_given(cron: CronSubject) -> Findings:
    """Leave it out for the operator's own."""
    if cron.spec.is_set("time_zone") and not cron.spec.time_zone:
        yield Finding("timeZone", "must not be empty; remove it to use the operator's time zone", "")


@rule("raycronjob.spec.5", "timeZone is the name of a time zone.")
def zone_known(cron: CronSubject) -> Findings:
    """Names as in Europe/Berlin."""
    zone = cron.spec.time_zone
    try:
        find_zone(zone)
    except ValueError as error:
        yield Finding("timeZone", str(error), zone)


def template(cron: CronSubject) -> Iterator[Problem]:
    """The rules of a job spec; annotations do not count."""
    yield from job_spec(JobSubject.of(cron.spec.job_template, {}, cron.gates, (*cron.at, "jobTemplate")))


SPEC_RULES: Final[tuple[Check[CronSubject], ...]] = (
    zone_in_schedule,
    schedule,
    zone_given,
    zone_known,
    template,
)


def cron_spec(cron: CronSubject) -> Iterator[Problem]:
    """Every mistake in the spec of a RayCronJob."""
    yield from run(SPEC_RULES, cron)
