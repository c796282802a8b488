"""The rules of a RayJob, and of the template of a RayCronJob; rule 3 is in ``deletion.py``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kuberay_op.api import conditions, labels
from kuberay_op.api.podtemplate import restart_policy
from kuberay_op.api.predicates import k8s_auth_enabled
from kuberay_op.api.problems import Path, Problem, show
from kuberay_op.api.rayjob import RayJob
from kuberay_op.api.validation import deletion
from kuberay_op.api.validation.primitives import yaml_mapping_problem
from kuberay_op.api.validation.raycluster import cluster_spec
from kuberay_op.api.validation.rules import Check, Finding, Findings, rule, run
from kuberay_op.api.validation.subjects import JobSubject

K8S_JOB_MODE: Final = "K8sJobMode"
HTTP_MODE: Final = "HTTPMode"
INTERACTIVE_MODE: Final = "InteractiveMode"
SIDECAR_MODE: Final = "SidecarMode"


@dataclass(frozen=True, slots=True)
class RayJobStatusSubject:
    """A whole RayJob, for the rule about its status."""

    obj: RayJob
    at: Path = ()


@rule("rayjob.status.1", "Only a job in InteractiveMode is in jobDeploymentStatus Waiting.")
def waiting(subject: RayJobStatusSubject) -> Findings:
    """Nobody else waits for a user to name a job."""
    mode, status = subject.obj.spec.submission_mode, subject.obj.status.job_deployment_status
    if status == conditions.DEPLOYMENT_WAITING and mode != INTERACTIVE_MODE:
        text = f"is Waiting, which only {INTERACTIVE_MODE} allows; submissionMode is {show(mode)}"
        yield Finding("status.jobDeploymentStatus", text, status)


# --- the spec, in order; 3 is in deletion.py


@rule("rayjob.spec.1", "suspend needs shutdownAfterJobFinishes.")
def suspend_without_shutdown(job: JobSubject) -> Findings:
    """To suspend is to delete the cluster."""
    if job.spec.suspend and not job.spec.shutdown_after_job_finishes:
        yield Finding("suspend", "needs shutdownAfterJobFinishes to be true", True)


@rule("rayjob.spec.2", "ttlSecondsAfterFinished is not negative.")
def ttl(job: JobSubject) -> Findings:
    """It is a time to wait."""
    seconds = job.spec.ttl_seconds_after_finished
    if seconds is not None and seconds < 0:
        yield Finding("ttlSecondsAfterFinished", f"is {show(seconds)}; must be 0 or more", seconds)


@rule("rayjob.spec.4", "suspend is not for a job on an existing cluster.")
def suspend_with_selector(job: JobSubject) -> Findings:
    """That cluster is not the job's to delete."""
    if job.spec.suspend and job.selects_cluster:
        yield Finding(
            "suspend", "cannot be true beside clusterSelector: that cluster is not ours to stop", True
        )


@rule("rayjob.spec.5", "A job has a rayClusterSpec or a clusterSelector.")
def cluster_given(job: JobSubject) -> Findings:
    """It must run somewhere."""
    if not job.spec.ray_cluster_spec and not job.selects_cluster:
        yield Finding("rayClusterSpec", "must be set, unless clusterSelector names an existing cluster")


@rule("rayjob.spec.6.1", f"clusterSelector names the cluster under the key {labels.CLUSTER}.")
def selector_key(job: JobSubject) -> Findings:
    """No other key is read."""
    if job.selects_cluster and not job.spec.cluster_selector.get(labels.CLUSTER):
        yield Finding(("clusterSelector", labels.CLUSTER), "must be the name of an existing RayCluster")


@rule("rayjob.spec.6.2", "SidecarMode is not for a job on an existing cluster.")
def selector_sidecar(job: JobSubject) -> Findings:
    """The head Pod is there already and cannot get another container."""
    if job.selects_cluster and job.spec.submission_mode == SIDECAR_MODE:
        yield Finding("submissionMode", "SidecarMode cannot be used with clusterSelector", SIDECAR_MODE)


@rule("rayjob.spec.6.3", "backoffLimit is not for a job on an existing cluster.")
def selector_backoff(job: JobSubject) -> Findings:
    """Every attempt needs a new cluster."""
    limit = job.spec.backoff_limit or 0
    if job.selects_cluster and limit > 0:
        text = f"is {show(limit)}; must be 0 beside clusterSelector: each attempt needs a new cluster"
        yield Finding("backoffLimit", text, limit)


@rule("rayjob.spec.7", "backoffLimit is not for InteractiveMode.")
def interactive_backoff(job: JobSubject) -> Findings:
    """Only the user could submit again."""
    limit = job.spec.backoff_limit or 0
    if job.spec.submission_mode == INTERACTIVE_MODE and limit > 0:
        yield Finding("backoffLimit", f"is {show(limit)}; must be 0 in {INTERACTIVE_MODE}", limit)


@rule("rayjob.spec.8.1", "SidecarMode has no submitterPodTemplate.")
def sidecar_template(job: JobSubject) -> Findings:
    """There is no submitter Pod."""
    if job.spec.submission_mode == SIDECAR_MODE and job.spec.is_set("submitter_pod_template"):
        yield Finding("submitterPodTemplate", "cannot be used in SidecarMode, which has no submitter Pod")


@rule("rayjob.spec.8.2", "SidecarMode has no submitterConfig.")
def sidecar_config(job: JobSubject) -> Findings:
    """There is no submitter Job."""
    if job.spec.submission_mode == SIDECAR_MODE and job.spec.submitter_config:
        yield Finding("submitterConfig", "cannot be used in SidecarMode, which has no submitter Job")


@rule("rayjob.spec.8.3", "In SidecarMode the head Pod does not restart its containers.")
def sidecar_restart(job: JobSubject) -> Findings:
    """The submitter would submit again."""
    policy = restart_policy(job.cluster.head.template)
    if job.spec.submission_mode == SIDECAR_MODE and policy not in ("", "Never"):
        text = f"is {show(policy)}; SidecarMode needs Never (or nothing)"
        yield Finding("rayClusterSpec.headGroupSpec.template.spec.restartPolicy", text, policy)


@rule("rayjob.spec.9", "Authentication by Kubernetes is for a RayCluster of its own only.")
def no_k8s_auth(job: JobSubject) -> Findings:
    """The submitter has no token that Kubernetes would accept."""
    if k8s_auth_enabled(job.spec.ray_cluster_spec):
        text = "is not supported in a RayJob; use mode token alone"
        yield Finding("rayClusterSpec.authOptions.enableK8sTokenAuth", text, True)


def cluster(job: JobSubject) -> Iterator[Problem]:
    """The rules of a cluster spec; looked at even when clusterSelector makes it useless."""
    if job.spec.ray_cluster_spec:
        yield from cluster_spec(job.cluster)


@rule("rayjob.spec.10", "runtimeEnvYAML is YAML text with a mapping in it.")
def runtime_env(job: JobSubject) -> Findings:
    """Ray expects one."""
    problem = yaml_mapping_problem(job.spec.runtime_env_yaml)
    if problem:  # the text itself may hold secrets and is not shown
        yield Finding("runtimeEnvYAML", problem)


@rule("rayjob.spec.11", "activeDeadlineSeconds is positive.")
def active_deadline(job: JobSubject) -> Findings:
    """A job without time cannot run."""
    seconds = job.spec.active_deadline_seconds
    if seconds is not None and seconds <= 0:
        yield Finding("activeDeadlineSeconds", f"is {show(seconds)}; must be 1 or more", seconds)


@rule("rayjob.spec.12", "preRunningDeadlineSeconds is positive.")
def pre_running_deadline(job: JobSubject) -> Findings:
    """A job without time cannot start."""
    seconds = job.spec.pre_running_deadline_seconds
    if seconds is not None and seconds <= 0:
        yield Finding("preRunningDeadlineSeconds", f"is {show(seconds)}; must be 1 or more", seconds)


@rule("rayjob.spec.13", "backoffLimit is not negative.")
def backoff(job: JobSubject) -> Findings:
    """It is a number of attempts."""
    limit = job.spec.backoff_limit
    if limit is not None and limit < 0:
        yield Finding("backoffLimit", f"is {show(limit)}; must be 0 or more", limit)


SPEC_RULES: Final[tuple[Check[JobSubject], ...]] = (
    suspend_without_shutdown,
    ttl,
    deletion.check,  # 3
    suspend_with_selector,
    cluster_given,
    selector_key,
    selector_sidecar,
    selector_backoff,
    interactive_backoff,
    sidecar_template,
    sidecar_config,
    sidecar_restart,
    no_k8s_auth,
    cluster,
    runtime_env,
    active_deadline,
    pre_running_deadline,
    backoff,
)


def job_spec(job: JobSubject) -> Iterator[Problem]:
    """Every mistake in a job spec, wherever it stands."""
    yield from run(SPEC_RULES, job)
