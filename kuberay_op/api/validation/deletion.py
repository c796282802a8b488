"""Rule 3 of a job spec: what is deleted after the job, and when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from kuberay_op.api.predicates import autoscaling_enabled
from kuberay_op.api.problems import Path, Problem, one_of, show
from kuberay_op.api.rayjob import DeletionRule
from kuberay_op.api.validation.rules import Check, Finding, Findings, rule, run
from kuberay_op.api.validation.subjects import JobSubject

DELETE_WORKERS: Final = "DeleteWorkers"
DELETE_CLUSTER: Final = "DeleteCluster"
DELETE_SELF: Final = "DeleteSelf"
DELETE_NONE: Final = "DeleteNone"

#: From the least to the most that is deleted; a later one must not come earlier.
_ORDER: Final = (DELETE_WORKERS, DELETE_CLUSTER, DELETE_SELF)
_LEGACY: Final = ("onSuccess", "onFailure")

_NOT_OURS: Final = "cannot be used with clusterSelector: that cluster is not ours to delete"
_AUTOSCALED: Final = "cannot be used with autoscaling, which would bring the workers back"


def _policies(job: JobSubject) -> list[tuple[str, str]]:
    """The policies of the older form, with their fields."""
    strategy = job.spec.deletion_strategy
    return [("onSuccess", strategy.on_success.policy), ("onFailure", strategy.on_failure.policy)]


def _is_legacy(job: JobSubject) -> bool:
    strategy = job.spec.deletion_strategy
    return bool(strategy.on_success) or bool(strategy.on_failure)


# --- what holds for both forms


@rule("rayjob.spec.3.1", "ttlSecondsAfterFinished needs shutdownAfterJobFinishes.")
def ttl_without_shutdown(job: JobSubject) -> Findings:
    """Nothing would be deleted after that time."""
    seconds = job.spec.ttl_seconds_after_finished or 0
    if not job.spec.shutdown_after_job_finishes and seconds > 0:
        text = f"is {show(seconds)}; needs shutdownAfterJobFinishes to be true"
        yield Finding("ttlSecondsAfterFinished", text, seconds)


@rule("rayjob.spec.3.2", "deletionStrategy needs the feature gate RayJobDeletionPolicy.")
def gate(job: JobSubject) -> Findings:
    """The operator would not follow it."""
    if not job.gates("RayJobDeletionPolicy"):
        yield Finding("deletionStrategy", "needs the feature gate RayJobDeletionPolicy, which is off")


@rule("rayjob.spec.3.7", "deletionStrategy has deletionRules, or onSuccess and onFailure.")
def something(_: JobSubject) -> Findings:
    """An empty strategy says nothing."""
    yield Finding("deletionStrategy", "needs deletionRules")


# --- deletionRules


@rule("rayjob.spec.3.3", "deletionRules and shutdownAfterJobFinishes exclude each other.")
def rules_with_shutdown(job: JobSubject) -> Findings:
    """Both say when the cluster goes."""
    if job.spec.shutdown_after_job_finishes:
        text = "cannot stand beside shutdownAfterJobFinishes; use a rule with DeleteCluster instead"
        yield Finding("deletionStrategy.deletionRules", text)


@rule("rayjob.spec.3.4", "deletionRules and the older onSuccess and onFailure exclude each other.")
def rules_with_legacy(job: JobSubject) -> Findings:
    """Both say what goes."""
    if _is_legacy(job):
        yield Finding(
            "deletionStrategy.deletionRules", "cannot stand beside onSuccess and onFailure; drop those"
        )


@dataclass(frozen=True, slots=True)
class _Rule:
    """One deletion rule."""

    job: JobSubject
    rule: DeletionRule
    at: Path

    @property
    def condition(self) -> tuple[str, str]:
        """Which status it waits for, and which value of it."""
        condition = self.rule.condition
        if condition.is_set("job_status"):
            return "jobStatus", condition.job_status
        return "jobDeploymentStatus", condition.job_deployment_status


@rule("rayjob.spec.3.6.1", "The condition of a deletion rule names one of the two statuses.")
def one_status(subject: _Rule) -> Findings:
    """None says nothing, both contradict each other."""
    condition = subject.rule.condition
    if condition.is_set("job_status") == condition.is_set("job_deployment_status"):
        yield Finding("condition", "needs exactly one of jobStatus and jobDeploymentStatus")


@rule("rayjob.spec.3.6.2", "ttlSeconds of a deletion rule is not negative.")
def rule_ttl(subject: _Rule) -> Findings:
    """It is a time to wait."""
    seconds = subject.rule.condition.ttl_seconds or 0
    if seconds < 0:
        yield Finding("condition.ttlSeconds", f"is {show(seconds)}; must be 0 or more", seconds)


@rule("rayjob.spec.3.6.3", "On an existing cluster no rule deletes the cluster or its workers.")
def rule_selector(subject: _Rule) -> Findings:
    """It is not the job's."""
    policy = subject.rule.policy
    if subject.job.selects_cluster and policy in (DELETE_CLUSTER, DELETE_WORKERS):
        yield Finding("policy", f"{policy} {_NOT_OURS}", policy)


@rule("rayjob.spec.3.6.4", "With autoscaling no rule deletes the workers.")
def rule_autoscaling(subject: _Rule) -> Findings:
    """They would come back."""
    if subject.rule.policy == DELETE_WORKERS and autoscaling_enabled(subject.job.spec.ray_cluster_spec):
        yield Finding("policy", f"{DELETE_WORKERS} {_AUTOSCALED}", DELETE_WORKERS)


_RULE_RULES: Final[tuple[Check[_Rule], ...]] = (one_status, rule_ttl, rule_selector, rule_autoscaling)


@dataclass(frozen=True, slots=True)
class _RuleList:
    """The deletion rules that are right in themselves."""

    rules: tuple[_Rule, ...]
    at: Path


@rule("rayjob.spec.3.6.5", "No two deletion rules have the same condition and policy.")
def unique(subject: _RuleList) -> Findings:
    """The second has no effect."""
    seen: set[tuple[tuple[str, str], str]] = set()
    for entry in subject.rules:
        key = (entry.condition, entry.rule.policy)
        if key in seen:
            status, value = entry.condition
            text = f"there is a rule for {status} {value} with policy {entry.rule.policy} already"
            yield Finding((entry.at[-1],), text)
        seen.add(key)


@rule(
    "rayjob.spec.3.6.6",
    "For each status, workers go no later than the cluster, and it no later than the RayJob.",
)
def ttl_order(subject: _RuleList) -> Findings:
    """What is gone with the larger part cannot go after it."""
    by_condition: dict[tuple[str, str], dict[str, _Rule]] = {}
    for entry in subject.rules:
        by_condition.setdefault(entry.condition, {}).setdefault(entry.rule.policy, entry)
    for entries in by_condition.values():
        present = [entries[policy] for policy in _ORDER if policy in entries]
        for smaller, larger in pairwise(present):
            low = smaller.rule.condition.ttl_seconds or 0
            high = larger.rule.condition.ttl_seconds or 0
            if high < low:
                text = f"is {high}; must be {low} or more, as for {smaller.rule.policy}"
                yield Finding((larger.at[-1], "condition", "ttlSeconds"), text, high)


def _rule_list(job: JobSubject) -> Iterator[Problem]:
    at = (*job.at, "deletionStrategy", "deletionRules")
    good: list[_Rule] = []
    for index, entry in enumerate(job.spec.deletion_strategy.deletion_rules):
        subject = _Rule(job, entry, (*at, index))
        problems = list(run(_RULE_RULES, subject))
        yield from problems
        if not problems:
            good.append(subject)
    yield from run((unique, ttl_order), _RuleList(tuple(good), at))


# --- onSuccess and onFailure


@rule("rayjob.spec.3.5.1", "onSuccess and onFailure come together.")
def legacy_both(job: JobSubject) -> Findings:
    """One alone leaves the other case open."""
    for field in _LEGACY:
        if job.spec.deletion_strategy.raw.get(field) is None:
            yield Finding(
                f"deletionStrategy.{field}", f"must be set, too: {one_of(_LEGACY)} alone is not enough"
            )


@rule("rayjob.spec.3.5.2", "onSuccess and onFailure each have a policy.")
def legacy_policy(job: JobSubject) -> Findings:
    """It says what to delete."""
    for field, policy in _policies(job):
        if job.spec.deletion_strategy.raw.get(field) is not None and not policy:
            yield Finding(f"deletionStrategy.{field}.policy", "must be set")


@rule("rayjob.spec.3.5.3", "On an existing cluster no policy deletes the cluster or its workers.")
def legacy_selector(job: JobSubject) -> Findings:
    """It is not the job's."""
    for field, policy in _policies(job):
        if job.selects_cluster and policy in (DELETE_CLUSTER, DELETE_WORKERS):
            yield Finding(f"deletionStrategy.{field}.policy", f"{policy} {_NOT_OURS}", policy)


@rule("rayjob.spec.3.5.4", "With autoscaling no policy deletes the workers.")
def legacy_autoscaling(job: JobSubject) -> Findings:
    """They would come back."""
    for field, policy in _policies(job):
        if policy == DELETE_WORKERS and autoscaling_enabled(job.spec.ray_cluster_spec):
            yield Finding(f"deletionStrategy.{field}.policy", f"{DELETE_WORKERS} {_AUTOSCALED}", policy)


@rule("rayjob.spec.3.5.5", "DeleteNone and shutdownAfterJobFinishes exclude each other.")
def legacy_none(job: JobSubject) -> Findings:
    """One keeps the cluster, the other deletes it."""
    for field, policy in _policies(job):
        if policy == DELETE_NONE and job.spec.shutdown_after_job_finishes:
            text = f"{DELETE_NONE} cannot stand beside shutdownAfterJobFinishes, which deletes the cluster"
            yield Finding(f"deletionStrategy.{field}.policy", text, policy)


_LEGACY_RULES: Final[tuple[Check[JobSubject], ...]] = (
    legacy_both,
    legacy_policy,
    legacy_selector,
    legacy_autoscaling,
    legacy_none,
)


def check(job: JobSubject) -> Iterator[Problem]:
    """All of rule 3."""
    yield from ttl_without_shutdown(job)
    strategy = job.spec.deletion_strategy
    if not strategy:
        return
    yield from gate(job)
    if strategy.deletion_rules:
        yield from run((rules_with_shutdown, rules_with_legacy, _rule_list), job)
    elif _is_legacy(job):
        yield from run(_LEGACY_RULES, job)
    else:
        yield from something(job)
