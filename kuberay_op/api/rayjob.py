"""RayJob: run one command on a cluster, usually one made for it."""

from __future__ import annotations

from typing import Any, Final

from kuberay_op.api.fields import Flag, Integer, Kube, Nested, NestedList, Number, Text, TextMap, Time
from kuberay_op.api.meta import Column, Condition, CustomResource
from kuberay_op.api.raycluster import AGE, POD_TEMPLATE, RayClusterSpec, RayClusterStatus, managed_by
from kuberay_op.api.view import Rule, View

#: What can be deleted after a job.
DELETION_POLICIES: Final = ("DeleteCluster", "DeleteWorkers", "DeleteSelf", "DeleteNone")


def _has(value: Any, *names: str) -> bool:
    """CEL's ``has`` for any of the names: present, even if empty; the server has dropped nulls by then."""
    return any(value.get(name) is not None for name in names)


class SubmitterConfig(View):
    """The Kubernetes Job that submits."""

    backoff_limit = Integer("backoffLimit", "How often that Job may try again; 2 when unset.")


class DeletionPolicy(View):
    """What to delete after the job, in the old form."""

    policy = Text("policy", "What to delete.", choices=DELETION_POLICIES)


class DeletionCondition(View):
    """When a deletion rule applies: one of the two statuses, and a delay."""

    rules = (
        Rule(
            "!(has(self.jobStatus) && has(self.jobDeploymentStatus))",
            "give either jobStatus or jobDeploymentStatus, not both",
            lambda new, _: not (_has(new, "jobStatus") and _has(new, "jobDeploymentStatus")),
        ),
        Rule(
            "has(self.jobStatus) || has(self.jobDeploymentStatus)",
            "give jobStatus or jobDeploymentStatus",
            lambda new, _: _has(new, "jobStatus", "jobDeploymentStatus"),
        ),
    )

    job_status = Text("jobStatus", "How the Ray job ended.", choices=("SUCCEEDED", "FAILED"))
    job_deployment_status = Text("jobDeploymentStatus", "How the RayJob ended.", choices=("Failed",))
    ttl_seconds = Integer("ttlSeconds", "Seconds to wait after that.", default=0, minimum=0)


class DeletionRule(View):
    """One thing to delete, and when."""

    policy = Text("policy", "What to delete.", choices=DELETION_POLICIES, required=True)
    condition = Nested("condition", "When to delete it.", DeletionCondition, required=True)


class DeletionStrategy(View):
    """What to delete after the job: rules, or the two policies of the old form."""

    rules = (
        Rule(
            "!((has(self.onSuccess) || has(self.onFailure)) && has(self.deletionRules))",
            "give either deletionRules or onSuccess and onFailure, not both",
            lambda new, _: not (_has(new, "onSuccess", "onFailure") and _has(new, "deletionRules")),
        ),
        Rule(
            "(has(self.onSuccess) && has(self.onFailure)) || has(self.deletionRules)",
            "give deletionRules, or both onSuccess and onFailure",
            lambda new, _: (_has(new, "onSuccess") and _has(new, "onFailure")) or _has(new, "deletionRules"),
        ),
    )

    on_success = Nested(
        "onSuccess", "What to delete when the job succeeded.", DeletionPolicy, deprecated="use deletionRules."
    )
    on_failure = Nested(
        "onFailure", "What to delete when the job failed.", DeletionPolicy, deprecated="use deletionRules."
    )
    deletion_rules = NestedList(
        "deletionRules", "What to delete, and when.", DeletionRule, atomic=True, min_items=1
    )


class RayJobSpec(View):
    """The command, the cluster to run it on, and what to do afterwards."""

    entrypoint = Text("entrypoint", "Command to run on the cluster, such as python my_script.py.")
    ray_cluster_spec = Nested("rayClusterSpec", "The cluster to make for the job.", RayClusterSpec)
    cluster_selector = TextMap(
        "clusterSelector", "An existing cluster to use instead: ray.io/cluster: name. No other key is read."
    )
    submission_mode = Text(
        "submissionMode",
        "How the job gets to Ray. K8sJobMode: a Kubernetes Job submits it. HTTPMode: the operator does. "
        "InteractiveMode: you do, and set jobId. SidecarMode: a container beside the head does.",
        default="K8sJobMode",
    )
    job_id = Text("jobId", "Submission id of the Ray job; generated when unset.")
    metadata = TextMap("metadata", "Metadata of the Ray job.")
    runtime_env_yaml = Text("runtimeEnvYAML", "Runtime environment of the Ray job, as YAML text.")
    entrypoint_num_cpus = Number("entrypointNumCpus", "CPUs to keep for the command itself.")
    entrypoint_num_gpus = Number("entrypointNumGpus", "GPUs to keep for the command itself.")
    entrypoint_resources = Text(
        "entrypointResources", "Other resources to keep for the command itself, as JSON text."
    )
    submitter_pod_template = Kube(
        "submitterPodTemplate",
        "Pod template of the submitter Job in K8sJobMode. Its first container submits.",
        POD_TEMPLATE,
    )
    submitter_config = Nested("submitterConfig", "Settings of the submitter Job.", SubmitterConfig)
    backoff_limit = Integer(
        "backoffLimit", "How often to try a failed job again, each time on a new cluster.", default=0
    )
    active_deadline_seconds = Integer(
        "activeDeadlineSeconds", "Seconds from the start until the job must have finished."
    )
    pre_running_deadline_seconds = Integer(
        "preRunningDeadlineSeconds", "Seconds from the start until the job must be running.", minimum=1
    )
    ttl_seconds_after_finished = Integer(
        "ttlSecondsAfterFinished",
        "Seconds to keep the cluster after the end, with shutdownAfterJobFinishes.",
        default=0,
    )
    shutdown_after_job_finishes = Flag(
        "shutdownAfterJobFinishes", "Delete the cluster after the job has finished."
    )
    suspend = Flag(
        "suspend",
        "Stop the job and delete its cluster; set to false again, the job starts from the beginning.",
    )
    managed_by = managed_by()
    deletion_strategy = Nested("deletionStrategy", "What to delete after the job.", DeletionStrategy)


class RayJobInfo(View):
    """What Ray says about the job."""

    start_time = Time("startTime", "When Ray started it.")
    end_time = Time("endTime", "When it ended.")


class RayJobStatus(View):
    """What the operator has seen of the job."""

    job_id = Text("jobId", "Submission id of the Ray job.")
    ray_cluster_name = Text("rayClusterName", "Name of the RayCluster the job runs on.")
    dashboard_url = Text("dashboardURL", "Where the dashboard of that cluster is.")
    job_status = Text(
        "jobStatus", "How far Ray is: PENDING, RUNNING, STOPPED, SUCCEEDED or FAILED; empty before."
    )
    job_deployment_status = Text(
        "jobDeploymentStatus",
        "How far the RayJob is: Initializing, Waiting, Running, Complete, Failed, ValidationFailed, "
        "Suspending, Suspended or Retrying; empty before.",
    )
    reason = Text("reason", "Why it failed, in one word.")
    message = Text("message", "More about that, for people.")
    start_time = Time("startTime", "When the RayJob began.")
    end_time = Time("endTime", "When it ended.")
    job_status_check_failure_start_time = Time(
        "jobStatusCheckFailureStartTime", "Since when the dashboard does not answer; unset while it does."
    )
    succeeded = Integer("succeeded", "Attempts that succeeded.", default=0)
    failed = Integer("failed", "Attempts that failed.", default=0)
    ray_job_info = Nested("rayJobInfo", "What Ray says about the job.", RayJobInfo)
    ray_cluster_status = Nested("rayClusterStatus", "Status of the cluster.", RayClusterStatus)
    observed_generation = Integer(
        "observedGeneration", "The generation of the spec this status belongs to.", bits=64
    )
    retry_time = Time("retryTime", "When the next attempt begins; only in jobDeploymentStatus Retrying.")
    conditions = NestedList(
        "conditions", "The state of the job, aspect by aspect.", Condition, map_keys=("type",)
    )


class RayJob(CustomResource):
    """A command to run on a Ray cluster."""

    KIND = "RayJob"
    PLURAL = "rayjobs"
    COLUMNS = (
        Column("job status", "string", ".status.jobStatus"),
        Column("deployment status", "string", ".status.jobDeploymentStatus"),
        Column("ray cluster name", "string", ".status.rayClusterName"),
        Column("start time", "string", ".status.startTime"),
        Column("end time", "string", ".status.endTime"),
        AGE,
    )

    spec = Nested("spec", "The command and the cluster to run it on.", RayJobSpec)
    status = Nested("status", "What the operator has seen.", RayJobStatus)
