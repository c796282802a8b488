"""Warnings about a job spec: what is allowed and will not do what it seems to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import orjson

from kuberay_op.api.labels import CLUSTER
from kuberay_op.api.problems import Problem, one_of, show
from kuberay_op.api.validation import warn_raycluster
from kuberay_op.api.validation.rayjob import HTTP_MODE, INTERACTIVE_MODE, K8S_JOB_MODE, SIDECAR_MODE
from kuberay_op.api.validation.rules import Check, Finding, Findings, run, warning
from kuberay_op.api.validation.subjects import JobSubject

MODES: Final = (K8S_JOB_MODE, HTTP_MODE, INTERACTIVE_MODE, SIDECAR_MODE)


@warning("warning.submission-mode", f"submissionMode is {one_of(MODES)}.")
def submission_mode(job: JobSubject) -> Findings:
    """The schema does not say so, and nothing submits the job."""
    mode = job.spec.submission_mode
    if mode and mode not in MODES:
        text = f"{show(mode)} is unknown and nothing will submit the job; use {one_of(MODES)}"
        yield Finding("submissionMode", text, mode)


@warning("warning.submitter", "submitterPodTemplate and submitterConfig are used in K8sJobMode only.")
def submitter(job: JobSubject) -> Findings:
    """The other modes have no submitter Job; SidecarMode refuses them."""
    mode = job.spec.submission_mode
    if mode in (HTTP_MODE, INTERACTIVE_MODE):
        for field in ("submitterPodTemplate", "submitterConfig"):
            if job.spec.raw.get(field) is not None:
                yield Finding(field, f"has no effect in {mode}")


@warning("warning.entrypoint", "A job that the operator submits has an entrypoint.")
def entrypoint(job: JobSubject) -> Findings:
    """Ray refuses a job without one. A submitter of the user's own may know what to run."""
    named = job.spec.entrypoint.strip() or job.spec.is_set("submitter_pod_template")
    if not named and job.spec.submission_mode != INTERACTIVE_MODE:
        yield Finding("entrypoint", "is empty: there is nothing to run")


@warning("warning.entrypoint-resources", "entrypointResources is JSON text with a mapping in it.")
def entrypoint_resources(job: JobSubject) -> Findings:
    """Otherwise the job is never submitted, and fails after a long wait."""
    text = job.spec.entrypoint_resources
    if text:
        try:
            good = isinstance(orjson.loads(text), dict)
        except ValueError:
            good = False
        if not good:
            yield Finding("entrypointResources", """must be JSON text such as '{"accelerator": 1}'""", text)


@warning("warning.selector-and-spec", "clusterSelector and rayClusterSpec are not used together.")
def selector_and_spec(job: JobSubject) -> Findings:
    """The selector wins."""
    if job.selects_cluster and job.spec.ray_cluster_spec:
        yield Finding("rayClusterSpec", "has no effect beside clusterSelector; remove one of the two")


@warning("warning.selector-keys", f"clusterSelector has the key {CLUSTER} only.")
def selector_keys(job: JobSubject) -> Findings:
    """No other key is read."""
    for key in job.spec.cluster_selector:
        if key != CLUSTER:
            yield Finding(("clusterSelector", key), f"is not read; only {CLUSTER} is", key)


RULES: Final[tuple[Check[JobSubject], ...]] = (
    submission_mode,
    submitter,
    entrypoint,
    entrypoint_resources,
    selector_and_spec,
    selector_keys,
)


def check(job: JobSubject) -> Iterator[Problem]:
    """All warnings about a job spec."""
    yield from run(RULES, job)
    if job.spec.ray_cluster_spec:
        yield from warn_raycluster.check_nested(job.cluster)
