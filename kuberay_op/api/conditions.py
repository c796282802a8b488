"""Condition types and their reasons, and the words of the status fields that are not conditions."""

from __future__ import annotations

from typing import Final

# --- values every condition shares

#: The condition holds.
TRUE: Final = "True"
#: The condition does not hold.
FALSE: Final = "False"
#: Nobody can say.
UNKNOWN: Final = "Unknown"

# --- RayCluster condition types

#: Every Pod was running and ready at least once.
RAYCLUSTER_PROVISIONED: Final = "RayClusterProvisioned"
#: The head Pod is ready.
HEAD_POD_READY: Final = "HeadPodReady"
#: A Pod could not be created or deleted.
REPLICA_FAILURE: Final = "ReplicaFailure"
#: The Pods are being deleted because the user asked to suspend.
RAYCLUSTER_SUSPENDING: Final = "RayClusterSuspending"
#: The cluster is suspended: it has no Pods.
RAYCLUSTER_SUSPENDED: Final = "RayClusterSuspended"

# --- conditions of ours on every kind

#: False while a plugin keeps the operator from doing all there is to do; the message names the plugin.
PLUGINS_AGREE: Final = "PluginsAgree"
#: A plugin raised, answered rubbish or was late.
PLUGIN_FAILED: Final = "PluginFailed"
#: A plugin asked to wait.
PLUGIN_WAITS: Final = "PluginWaits"
#: A plugin refused the object as it stands.
PLUGIN_REFUSES: Final = "PluginRefuses"
#: A plugin needs an API that the cluster lacks; everything else is done without it.
API_MISSING: Final = "ApiMissing"
#: No plugin objects.
ALL_AGREE: Final = "AllAgree"

# --- RayCluster condition reasons (the two suspend conditions use their own type)

#: Provisioned, for the first time.
ALL_PODS_READY_FIRST_TIME: Final = "AllPodRunningAndReadyFirstTime"
#: Not provisioned yet.
PODS_PROVISIONING: Final = "RayClusterPodsProvisioning"
#: There is no head Pod.
HEAD_POD_NOT_FOUND: Final = "HeadPodNotFound"
#: The head Pod is ready and gave no reason of its own.
HEAD_POD_RUNNING_AND_READY: Final = "HeadPodRunningAndReady"
#: The head Pod says nothing about its readiness.
REASON_UNKNOWN: Final = "Unknown"
#: All Pods should go, and one did not.
FAILED_DELETE_ALL_PODS: Final = "FailedDeleteAllPods"
#: The head Pod should go, and did not.
FAILED_DELETE_HEAD_POD: Final = "FailedDeleteHeadPod"
#: The head Pod could not be made.
FAILED_CREATE_HEAD_POD: Final = "FailedCreateHeadPod"
#: A worker Pod should go, and did not.
FAILED_DELETE_WORKER_POD: Final = "FailedDeleteWorkerPod"
#: A worker Pod could not be made.
FAILED_CREATE_WORKER_POD: Final = "FailedCreateWorkerPod"

# --- RayService condition types

#: The service has endpoints.
SERVICE_READY: Final = "Ready"
#: An active and a pending cluster exist.
UPGRADE_IN_PROGRESS: Final = "UpgradeInProgress"
#: An incremental upgrade is on its way back.
ROLLBACK_IN_PROGRESS: Final = "RollbackInProgress"
#: Owned objects are being deleted because the user asked to suspend.
SERVICE_SUSPENDING: Final = "Suspending"
#: The service is suspended: it owns nothing.
SERVICE_SUSPENDED: Final = "Suspended"

# --- RayService condition reasons

#: The first cluster is not ready yet.
INITIALIZING: Final = "Initializing"
#: The first cluster took longer than the annotation allows.
INITIALIZING_TIMEOUT: Final = "InitializingTimeout"
#: No Pod can serve.
ZERO_SERVE_ENDPOINTS: Final = "ZeroServeEndpoints"
#: At least one Pod can serve.
NON_ZERO_SERVE_ENDPOINTS: Final = "NonZeroServeEndpoints"
#: An upgrade is under way.
BOTH_CLUSTERS_EXIST: Final = "BothActivePendingClustersExist"
#: No upgrade is under way.
NO_PENDING_CLUSTER: Final = "NoPendingCluster"
#: Nothing serves yet.
NO_ACTIVE_CLUSTER: Final = "NoActiveCluster"
#: The object breaks a rule of ``kuberay_op.api.validation``.
VALIDATION_FAILED: Final = "ValidationFailed"
#: The wanted cluster changed while an upgrade was under way.
DESIRED_SPEC_CHANGED: Final = "DesiredClusterSpecChanged"
#: ``spec.suspend`` has just been seen.
SUSPEND_REQUESTED: Final = "SuspendRequested"
#: Owned objects still exist.
SUSPEND_IN_PROGRESS: Final = "SuspendInProgress"
#: Nothing is left.
SUSPEND_COMPLETE: Final = "SuspendComplete"
#: ``spec.suspend`` was taken back.
SERVICE_RESUMED: Final = "RayServiceResumed"

# --- RayCluster status.state

#: Every Pod runs.
STATE_READY: Final = "ready"
#: No Pod exists, as asked.
STATE_SUSPENDED: Final = "suspended"

# --- RayService status.serviceStatus

#: Mirror of Ready=True; empty otherwise.
SERVICE_RUNNING: Final = "Running"

# --- RayJob status.jobStatus, as Ray words it

#: Ray has not seen the job yet.
JOB_NEW: Final = ""
#: Submitted, not started.
JOB_PENDING: Final = "PENDING"
#: Started.
JOB_RUNNING: Final = "RUNNING"
#: Ended by a user.
JOB_STOPPED: Final = "STOPPED"
#: Ended well.
JOB_SUCCEEDED: Final = "SUCCEEDED"
#: Ended badly.
JOB_FAILED: Final = "FAILED"
#: The job will not change any more.
TERMINAL_JOB_STATUSES: Final = frozenset({JOB_STOPPED, JOB_SUCCEEDED, JOB_FAILED})

# --- RayJob status.jobDeploymentStatus

#: Nothing has been done yet.
DEPLOYMENT_NEW: Final = ""
#: The cluster is being made.
DEPLOYMENT_INITIALIZING: Final = "Initializing"
#: InteractiveMode: the user has not named a job yet.
DEPLOYMENT_WAITING: Final = "Waiting"
#: The job was handed to Ray.
DEPLOYMENT_RUNNING: Final = "Running"
#: The job ended; how it ended is in jobStatus.
DEPLOYMENT_COMPLETE: Final = "Complete"
#: The job could not be run to its end.
DEPLOYMENT_FAILED: Final = "Failed"
#: The object breaks a rule of ``kuberay_op.api.validation``.
DEPLOYMENT_VALIDATION_FAILED: Final = "ValidationFailed"
#: The cluster is being deleted, as asked.
DEPLOYMENT_SUSPENDING: Final = "Suspending"
#: The cluster is gone, as asked.
DEPLOYMENT_SUSPENDED: Final = "Suspended"
#: The cluster is being replaced for another attempt.
DEPLOYMENT_RETRYING: Final = "Retrying"
#: The controller has nothing left to run. ValidationFailed is not in it: an edit starts the job anew.
TERMINAL_DEPLOYMENT_STATUSES: Final = frozenset({DEPLOYMENT_COMPLETE, DEPLOYMENT_FAILED})

# --- RayJob status.reason

#: The submitter gave up.
SUBMISSION_FAILED: Final = "SubmissionFailed"
#: activeDeadlineSeconds passed.
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
#: preRunningDeadlineSeconds passed before the job ran.
PRE_RUNNING_DEADLINE_EXCEEDED: Final = "PreRunningDeadlineExceeded"
#: The user's program failed.
APP_FAILED: Final = "AppFailed"
#: Ray says the job ended, the submitter did not follow in time.
TRANSITION_GRACE_PERIOD_EXCEEDED: Final = "JobDeploymentStatusTransitionGracePeriodExceeded"
#: The dashboard could not be asked for too long.
STATUS_CHECK_TIMEOUT_EXCEEDED: Final = "JobStatusCheckTimeoutExceeded"

# --- Serve, as Ray words it

#: The application has not been deployed.
APP_NOT_STARTED: Final = "NOT_STARTED"
#: The application is being deployed.
APP_DEPLOYING: Final = "DEPLOYING"
#: The application serves.
APP_RUNNING: Final = "RUNNING"
#: The application could not be deployed.
APP_DEPLOY_FAILED: Final = "DEPLOY_FAILED"
#: The application is going away.
APP_DELETING: Final = "DELETING"
#: The application was running and is not healthy now.
APP_UNHEALTHY: Final = "UNHEALTHY"
#: The deployment is changing.
SERVE_DEPLOYMENT_UPDATING: Final = "UPDATING"
#: The deployment serves.
SERVE_DEPLOYMENT_HEALTHY: Final = "HEALTHY"
#: The deployment does not serve.
SERVE_DEPLOYMENT_UNHEALTHY: Final = "UNHEALTHY"
