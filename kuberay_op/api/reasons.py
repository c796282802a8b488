"""Reasons and actions of the events we write. Part of the wire contract: never rename one."""

from __future__ import annotations

from typing import Final

# --- RayCluster

#: The name breaks a rule.
INVALID_RAYCLUSTER_METADATA: Final = "InvalidRayClusterMetadata"
#: The spec breaks a rule, or asks for something the operator cannot give.
INVALID_RAYCLUSTER_SPEC: Final = "InvalidRayClusterSpec"
#: The status contradicts itself.
INVALID_RAYCLUSTER_STATUS: Final = "InvalidRayClusterStatus"
#: A head Pod was made.
CREATED_HEAD_POD: Final = "CreatedHeadPod"
#: A head Pod could not be made.
FAILED_TO_CREATE_HEAD_POD: Final = "FailedToCreateHeadPod"
#: A head Pod was deleted.
DELETED_HEAD_POD: Final = "DeletedHeadPod"
#: A head Pod could not be deleted.
FAILED_TO_DELETE_HEAD_POD: Final = "FailedToDeleteHeadPod"
#: A worker Pod was made.
CREATED_WORKER_POD: Final = "CreatedWorkerPod"
#: A worker Pod could not be made.
FAILED_TO_CREATE_WORKER_POD: Final = "FailedToCreateWorkerPod"
#: A worker Pod was deleted.
DELETED_WORKER_POD: Final = "DeletedWorkerPod"
#: A worker Pod could not be deleted.
FAILED_TO_DELETE_WORKER_POD: Final = "FailedToDeleteWorkerPod"
#: The Pods of a group could not be deleted together.
FAILED_TO_DELETE_WORKER_POD_COLLECTION: Final = "FailedToDeleteWorkerPodCollection"
#: A Pod was deleted, of whichever role.
DELETED_POD: Final = "DeletedPod"
#: A Pod could not be deleted, of whichever role.
FAILED_TO_DELETE_POD: Final = "FailedToDeletePod"
#: The Pods of a cluster could not be deleted together.
FAILED_TO_DELETE_POD_COLLECTION: Final = "FailedToDeletePodCollection"
#: The Job that empties Redis was made.
CREATED_REDIS_CLEANUP_JOB: Final = "CreatedRedisCleanupJob"
#: The Job that empties Redis could not be made.
FAILED_TO_CREATE_REDIS_CLEANUP_JOB: Final = "FailedToCreateRedisCleanupJob"
#: The clean-up took too long; the cluster goes without it.
FORCE_DELETED_STUCK_CLUSTER: Final = "ForceDeletedStuckCluster"

# --- RayJob

#: The name breaks a rule.
INVALID_RAYJOB_METADATA: Final = "InvalidRayJobMetadata"
#: The spec breaks a rule.
INVALID_RAYJOB_SPEC: Final = "InvalidRayJobSpec"
#: The status contradicts the spec.
INVALID_RAYJOB_STATUS: Final = "InvalidRayJobStatus"
#: The submitter Job was made.
CREATED_RAYJOB_SUBMITTER: Final = "CreatedRayJobSubmitter"
#: The submitter Job was deleted.
DELETED_RAYJOB_SUBMITTER: Final = "DeletedRayJobSubmitter"
#: The submitter Job could not be made.
FAILED_TO_CREATE_RAYJOB_SUBMITTER: Final = "FailedToCreateRayJobSubmitter"
#: The submitter Job could not be deleted.
FAILED_TO_DELETE_RAYJOB_SUBMITTER: Final = "FailedToDeleteRayJobSubmitter"
#: A RayCluster was made for the object.
CREATED_RAYCLUSTER: Final = "CreatedRayCluster"
#: A RayCluster of the object was changed.
UPDATED_RAYCLUSTER: Final = "UpdatedRayCluster"
#: A RayCluster of the object was deleted.
DELETED_RAYCLUSTER: Final = "DeletedRayCluster"
#: A RayCluster could not be made for the object.
FAILED_TO_CREATE_RAYCLUSTER: Final = "FailedToCreateRayCluster"
#: A RayCluster of the object could not be deleted.
FAILED_TO_DELETE_RAYCLUSTER: Final = "FailedToDeleteRayCluster"
#: A RayCluster of the object could not be changed.
FAILED_TO_UPDATE_RAYCLUSTER: Final = "FailedToUpdateRayCluster"
#: The RayCluster that clusterSelector names does not exist.
RAYCLUSTER_NOT_FOUND: Final = "RayClusterNotFound"
#: The job has ended, not by its own fault.
COMPLETED_RAYJOB: Final = "CompletedRayJob"
#: The job has failed for good.
FAILED_RAYJOB: Final = "FailedRayJob"
#: An attempt has failed, and there is another.
RETRYING_RAYJOB: Final = "RetryingRayJob"
#: The job is being suspended.
SUSPENDED_RAYJOB: Final = "SuspendedRayJob"
#: The job starts again after it was suspended.
RESUMED_RAYJOB: Final = "ResumedRayJob"

# --- batch schedulers

#: The scheduler has let go of the gang.
BATCH_SCHEDULER_CLEANED_UP: Final = "BatchSchedulerCleanedUp"
#: The scheduler could not be made to let go of the gang.
FAILED_TO_CLEANUP_BATCH_SCHEDULER: Final = "FailedToCleanupBatchScheduler"

# --- RayCronJob

#: The name, the schedule or the template breaks a rule.
INVALID_RAYCRONJOB_SPEC: Final = "InvalidRayCronJobSpec"
#: No RayJob is created because the user asked to suspend.
SUSPENDED_RAYCRONJOB: Final = "SuspendedRayCronJob"
#: A RayJob was made because it is time.
CREATED_RAYJOB: Final = "CreatedRayJob"
#: It is time, and the RayJob could not be made.
FAILED_TO_CREATE_RAYJOB: Final = "FailedToCreateRayJob"
#: A RayJob was deleted: another takes its place, or the history is long enough.
DELETED_RAYJOB: Final = "DeletedRayJob"
#: A RayJob could not be deleted.
FAILED_TO_DELETE_RAYJOB: Final = "FailedToDeleteRayJob"
#: Times of the schedule passed without a RayJob.
MISS_SCHEDULE: Final = "MissSchedule"
#: It is time, and an earlier RayJob must finish first.
JOB_ALREADY_ACTIVE: Final = "JobAlreadyActive"

# --- RayService

#: The name or an annotation breaks a rule.
INVALID_RAYSERVICE_METADATA: Final = "InvalidRayServiceMetadata"
#: The spec breaks a rule.
INVALID_RAYSERVICE_SPEC: Final = "InvalidRayServiceSpec"
#: The first cluster took longer than the annotation allows.
RAYSERVICE_INITIALIZING_TIMEOUT: Final = "RayServiceInitializingTimeout"
#: An upgrade cannot be taken back.
ROLLBACK_IMPOSSIBLE: Final = "RollbackImpossible"
#: The head Pod joined or left the serve Service.
UPDATED_HEAD_POD_SERVE_LABEL: Final = "UpdatedHeadPodServeLabel"
#: The head Pod could not join or leave the serve Service.
FAILED_TO_UPDATE_HEAD_POD_SERVE_LABEL: Final = "FailedToUpdateHeadPodServeLabel"
#: The Serve configuration was handed to Ray.
UPDATED_SERVE_APPLICATIONS: Final = "UpdatedServeApplications"
#: The Serve configuration could not be handed to Ray.
FAILED_TO_UPDATE_SERVE_APPLICATIONS: Final = "FailedToUpdateServeApplications"
#: A cluster's share of replicas was changed.
UPDATED_SERVE_TARGET_CAPACITY: Final = "UpdatedServeTargetCapacity"
#: A cluster's share of replicas could not be changed.
FAILED_TO_UPDATE_TARGET_CAPACITY: Final = "FailedToUpdateTargetCapacity"
#: The Gateway was made.
CREATED_GATEWAY: Final = "CreatedGateway"
#: The Gateway was changed.
UPDATED_GATEWAY: Final = "UpdatedGateway"
#: The Gateway was deleted.
DELETED_GATEWAY: Final = "DeletedGateway"
#: The Gateway could not be made.
FAILED_TO_CREATE_GATEWAY: Final = "FailedToCreateGateway"
#: The Gateway could not be changed.
FAILED_TO_UPDATE_GATEWAY: Final = "FailedToUpdateGateway"
#: The Gateway could not be deleted.
FAILED_TO_DELETE_GATEWAY: Final = "FailedToDeleteGateway"
#: The HTTPRoute was made.
CREATED_HTTPROUTE: Final = "CreatedHTTPRoute"
#: The HTTPRoute was changed.
UPDATED_HTTPROUTE: Final = "UpdatedHTTPRoute"
#: The HTTPRoute was deleted.
DELETED_HTTPROUTE: Final = "DeletedHTTPRoute"
#: The HTTPRoute could not be made.
FAILED_TO_CREATE_HTTPROUTE: Final = "FailedToCreateHTTPRoute"
#: The HTTPRoute could not be changed.
FAILED_TO_UPDATE_HTTPROUTE: Final = "FailedToUpdateHTTPRoute"
#: The HTTPRoute could not be deleted.
FAILED_TO_DELETE_HTTPROUTE: Final = "FailedToDeleteHTTPRoute"
#: A Service of the object was deleted.
DELETED_SERVICE: Final = "DeletedService"
#: A Service of the object could not be deleted.
FAILED_TO_DELETE_SERVICE: Final = "FailedToDeleteService"

# --- objects that several kinds have

#: The Ingress was made.
CREATED_INGRESS: Final = "CreatedIngress"
#: The Ingress was changed.
UPDATED_INGRESS: Final = "UpdatedIngress"
#: The Ingress could not be made.
FAILED_TO_CREATE_INGRESS: Final = "FailedToCreateIngress"
#: The Ingress could not be changed.
FAILED_TO_UPDATE_INGRESS: Final = "FailedToUpdateIngress"
#: A Service was made.
CREATED_SERVICE: Final = "CreatedService"
#: A Service was changed.
UPDATED_SERVICE: Final = "UpdatedService"
#: A Service could not be made.
FAILED_TO_CREATE_SERVICE: Final = "FailedToCreateService"
#: A Service could not be changed.
FAILED_TO_UPDATE_SERVICE: Final = "FailedToUpdateService"
#: The OpenShift Route was made.
CREATED_ROUTE: Final = "CreatedRoute"
#: The OpenShift Route could not be made.
FAILED_TO_CREATE_ROUTE: Final = "FailedToCreateRoute"
#: The autoscaler's ServiceAccount was made.
CREATED_SERVICE_ACCOUNT: Final = "CreatedServiceAccount"
#: The autoscaler's ServiceAccount could not be made.
FAILED_TO_CREATE_SERVICE_ACCOUNT: Final = "FailedToCreateServiceAccount"
#: The volume claim of the control store was made.
CREATED_PVC: Final = "CreatedPVC"
#: The volume claim of the control store could not be made.
FAILED_TO_CREATE_PVC: Final = "FailedToCreatePVC"
#: The autoscaler's Role was made.
CREATED_ROLE: Final = "CreatedRole"
#: The autoscaler's Role could not be made.
FAILED_TO_CREATE_ROLE: Final = "FailedToCreateRole"
#: The autoscaler's RoleBinding was made.
CREATED_ROLE_BINDING: Final = "CreatedRoleBinding"
#: The autoscaler's RoleBinding could not be made.
FAILED_TO_CREATE_ROLE_BINDING: Final = "FailedToCreateRoleBinding"
#: The ServiceAccount the head Pod names does not exist.
AUTOSCALER_SERVICE_ACCOUNT_NOT_FOUND: Final = "AutoscalerServiceAccountNotFound"
#: A NetworkPolicy was made.
CREATED_NETWORK_POLICY: Final = "CreatedNetworkPolicy"
#: A NetworkPolicy was changed.
UPDATED_NETWORK_POLICY: Final = "UpdatedNetworkPolicy"
#: A NetworkPolicy was deleted.
DELETED_NETWORK_POLICY: Final = "DeletedNetworkPolicy"
#: A NetworkPolicy could not be made.
FAILED_TO_CREATE_NETWORK_POLICY: Final = "FailedToCreateNetworkPolicy"
#: A NetworkPolicy could not be changed.
FAILED_TO_UPDATE_NETWORK_POLICY: Final = "FailedToUpdateNetworkPolicy"
#: A NetworkPolicy could not be deleted.
FAILED_TO_DELETE_NETWORK_POLICY: Final = "FailedToDeleteNetworkPolicy"
#: A NetworkPolicy of that name exists and is not ours.
NETWORK_POLICY_NAME_COLLISION: Final = "NetworkPolicyNameCollision"
#: Policies are in force that keep Pods from resolving names.
NETWORK_POLICY_WITHOUT_DNS: Final = "NetworkPolicyWithoutDNS"

# --- mTLS

#: All certificates are there.
MTLS_PKI_READY: Final = "MTLSPKIReady"
#: cert-manager has not issued a certificate yet.
MTLS_CERTS_NOT_READY: Final = "MTLSCertsNotReady"
#: A certificate or issuer could not be written.
MTLS_FAILED_TO_RECONCILE: Final = "MTLSFailedToReconcile"
#: A certificate was changed.
MTLS_CERTIFICATES_UPDATED: Final = "MTLSCertificatesUpdated"
#: A certificate runs out soon.
MTLS_CERTIFICATE_EXPIRING_SOON: Final = "MTLSCertificateExpiringSoon"

# --- actions: what the operator was doing when it wrote the event

#: Making an object.
ACTION_CREATE: Final = "Create"
#: Deleting an object.
ACTION_DELETE: Final = "Delete"
#: Changing an object.
ACTION_UPDATE: Final = "Update"
#: Checking the custom resource.
ACTION_VALIDATE: Final = "Validate"
#: Working on the custom resource as a whole.
ACTION_RECONCILE: Final = "Reconcile"
#: Tidying up after an object.
ACTION_CLEANUP: Final = "Cleanup"
#: Suspending the custom resource.
ACTION_SUSPEND: Final = "Suspend"

# --- plugins

#: A plugin raised, answered rubbish or was late; nothing was written for the object.
PLUGIN_FAILED: Final = "PluginFailed"
#: A plugin asked to wait.
PLUGIN_WAITS: Final = "PluginWaits"
#: A plugin refused the object as it stands.
PLUGIN_REFUSES: Final = "PluginRefuses"
#: A plugin has something to say about the object, which is not refused.
PLUGIN_WARNS: Final = "PluginWarns"
#: A plugin needs an API that the cluster lacks; everything else is done without it.
API_MISSING: Final = "ApiMissing"
#: A finalizer was released: its plugin is done, has given up, or is not there any more.
FINALIZER_RELEASED: Final = "FinalizerReleased"
