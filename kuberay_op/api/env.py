"""Environment variables we set on, or recognise in, the containers of Ray Pods."""

from __future__ import annotations

from typing import Final

# --- core

#: Name of the RayCluster.
RAY_CLUSTER_NAME: Final = "RAY_CLUSTER_NAME"
#: Its namespace.
RAY_CLUSTER_NAMESPACE: Final = "RAY_CLUSTER_NAMESPACE"
#: Head Service, short name (older than FQ_RAY_IP).
RAY_IP: Final = "RAY_IP"
#: Head Service, full DNS name.
FQ_RAY_IP: Final = "FQ_RAY_IP"
#: Port of the control store.
RAY_PORT: Final = "RAY_PORT"
#: Where ``ray.init`` connects to.
RAY_ADDRESS: Final = "RAY_ADDRESS"
#: Name of the Pod: ties a Ray node to it.
RAY_CLOUD_INSTANCE_ID: Final = "RAY_CLOUD_INSTANCE_ID"
#: Name of the group: the autoscaler's node type.
RAY_NODE_TYPE_NAME: Final = "RAY_NODE_TYPE_NAME"
#: The ``ray start`` command we generated.
KUBERAY_GEN_RAY_START_CMD: Final = "KUBERAY_GEN_RAY_START_CMD"
#: The autoscaler command we generated; users may not set it.
KUBERAY_GEN_AUTOSCALER_START_CMD: Final = "KUBERAY_GEN_AUTOSCALER_START_CMD"
#: Open-file limit set before ``ray start``.
RAY_START_ULIMIT_OPEN_FILES: Final = "RAY_START_ULIMIT_OPEN_FILES"
#: Tells Ray's usage statistics that an operator runs it.
RAY_USAGE_STATS_KUBERAY_IN_USE: Final = "RAY_USAGE_STATS_KUBERAY_IN_USE"
#: Extra tags for the same statistics.
RAY_USAGE_STATS_EXTRA_TAGS: Final = "RAY_USAGE_STATS_EXTRA_TAGS"
#: Lets the dashboard show the disk of a Pod.
RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE: Final = "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE"
#: ``1`` or ``true`` in the head container chooses autoscaler v2.
RAY_ENABLE_AUTOSCALER_V2: Final = "RAY_enable_autoscaler_v2"

# --- GCS fault tolerance

#: Address of Redis.
RAY_REDIS_ADDRESS: Final = "RAY_REDIS_ADDRESS"
#: Password for Redis.
REDIS_PASSWORD: Final = "REDIS_PASSWORD"  # noqa: S105 - the name of a variable, not a secret
#: User for Redis.
REDIS_USERNAME: Final = "REDIS_USERNAME"
#: Key prefix of this cluster in Redis.
RAY_EXTERNAL_STORAGE_NAMESPACE: Final = "RAY_external_storage_namespace"
#: Storage of the control store; ``rocksdb`` when it is on a volume.
RAY_GCS_STORAGE: Final = "RAY_gcs_storage"
#: Folder of that storage.
RAY_GCS_STORAGE_PATH: Final = "RAY_gcs_storage_path"
#: How long a worker waits for a lost control store.
RAY_GCS_RPC_SERVER_RECONNECT_TIMEOUT_S: Final = "RAY_gcs_rpc_server_reconnect_timeout_s"
#: Value of the above for workers under fault tolerance.
WORKER_GCS_RECONNECT_TIMEOUT: Final = "600"

# --- timeouts of RayServices

#: How long a task waits to learn why a node died.
RAY_TIMEOUT_MS_TASK_WAIT_FOR_DEATH_INFO: Final = "RAY_timeout_ms_task_wait_for_death_info"
#: How long a request to the control store may take.
RAY_GCS_SERVER_REQUEST_TIMEOUT_SECONDS: Final = "RAY_gcs_server_request_timeout_seconds"
#: How long Serve waits for its key-value store.
RAY_SERVE_KV_TIMEOUT_S: Final = "RAY_SERVE_KV_TIMEOUT_S"

# --- job submitter

#: Where the submitter finds the dashboard.
RAY_DASHBOARD_ADDRESS: Final = "RAY_DASHBOARD_ADDRESS"
#: The job's submission id.
RAY_JOB_SUBMISSION_ID: Final = "RAY_JOB_SUBMISSION_ID"
#: Makes the submitter's log appear at once.
PYTHONUNBUFFERED: Final = "PYTHONUNBUFFERED"

# --- authentication

#: ``token`` when Ray asks for one.
RAY_AUTH_MODE: Final = "RAY_AUTH_MODE"
#: The token.
RAY_AUTH_TOKEN: Final = "RAY_AUTH_TOKEN"  # noqa: S105 - the name of a variable, not a secret
#: Lets the API server decide who may use Ray.
RAY_ENABLE_K8S_TOKEN_AUTH: Final = "RAY_ENABLE_K8S_TOKEN_AUTH"  # noqa: S105 - the name of a variable

# --- TLS

#: ``1`` when Ray's own traffic is encrypted.
RAY_USE_TLS: Final = "RAY_USE_TLS"
#: File of the certificate.
RAY_TLS_SERVER_CERT: Final = "RAY_TLS_SERVER_CERT"
#: File of its key.
RAY_TLS_SERVER_KEY: Final = "RAY_TLS_SERVER_KEY"
#: File of the authority.
RAY_TLS_CA_CERT: Final = "RAY_TLS_CA_CERT"
#: The four the operator sets itself under mTLS, so that users may not.
TLS_RESERVED: Final = (RAY_USE_TLS, RAY_TLS_SERVER_CERT, RAY_TLS_SERVER_KEY, RAY_TLS_CA_CERT)

# --- history collector

#: IP of the Pod.
POD_IP: Final = "POD_IP"
#: ``Head`` or ``Worker``.
RAY_ROLE: Final = "RAY_ROLE"
#: Kind of the object the cluster was made for.
OWNER_KIND: Final = "OWNER_KIND"
#: Its name.
OWNER_NAME: Final = "OWNER_NAME"
#: Port on which the collector takes Ray's events.
EVENTS_PORT: Final = "EVENTS_PORT"
#: Folder in the bucket.
STORAGE_ROOT_DIR: Final = "STORAGE_ROOT_DIR"
#: How many log files are sent together.
LOG_BATCHING: Final = "LOG_BATCHING"
#: How often they are sent.
PUSH_INTERVAL: Final = "PUSH_INTERVAL"
#: Which storage: GCS, S3, AZUREBLOB or ALIYUNOSS.
STORAGE_BACKEND: Final = "STORAGE_BACKEND"
#: Bucket at Google.
GCS_BUCKET: Final = "GCS_BUCKET"
#: Bucket at Amazon or a compatible store.
S3_BUCKET: Final = "S3_BUCKET"
#: Address of a compatible store.
S3_ENDPOINT: Final = "S3_ENDPOINT"
#: Region of the bucket.
S3_REGION: Final = "S3_REGION"
#: Container at Azure.
AZURE_STORAGE_CONTAINER: Final = "AZURE_STORAGE_CONTAINER"
#: How to reach Azure, with the secret in it.
AZURE_STORAGE_CONNECTION_STRING: Final = "AZURE_STORAGE_CONNECTION_STRING"
#: How to reach Azure, without a secret.
AZURE_STORAGE_ACCOUNT_URL: Final = "AZURE_STORAGE_ACCOUNT_URL"
#: ``connection_string``, ``workload_identity`` or ``default``.
AZURE_STORAGE_AUTH_MODE: Final = "AZURE_STORAGE_AUTH_MODE"
#: Bucket at Alibaba.
OSS_BUCKET: Final = "OSS_BUCKET"
#: Address at Alibaba.
OSS_ENDPOINT: Final = "OSS_ENDPOINT"
#: Region at Alibaba.
OSS_REGION: Final = "OSS_REGION"
#: What the operator sets on the collector itself, so that users may not.
COLLECTOR_RESERVED: Final = (
    POD_IP,
    FQ_RAY_IP,
    RAY_CLUSTER_NAME,
    RAY_CLUSTER_NAMESPACE,
    RAY_ROLE,
    OWNER_KIND,
    OWNER_NAME,
    EVENTS_PORT,
)

# --- Ray events, for the collector

#: Makes Ray record events.
RAY_ENABLE_RAY_EVENT: Final = "RAY_enable_ray_event"
#: Makes workers send theirs to the node's aggregator.
RAY_ENABLE_CORE_WORKER_RAY_EVENT: Final = "RAY_enable_core_worker_ray_event_to_aggregator"
#: Where the aggregator sends them.
RAY_EVENTS_EXPORT_ADDR: Final = "RAY_DASHBOARD_AGGREGATOR_AGENT_EVENTS_EXPORT_ADDR"
#: Which of them it may send (older name).
RAY_EXPOSABLE_EVENT_TYPES: Final = "RAY_DASHBOARD_AGGREGATOR_AGENT_EXPOSABLE_EVENT_TYPES"
#: Which of them it may send.
RAY_HTTP_EXPOSABLE_EVENT_TYPES: Final = (
    "RAY_DASHBOARD_AGGREGATOR_AGENT_PUBLISHER_HTTP_ENDPOINT_EXPOSABLE_EVENT_TYPES"
)
#: The types sent unless the user chooses; order is part of the value.
DEFAULT_EVENT_TYPES: Final = (
    "TASK_DEFINITION_EVENT",
    "TASK_LIFECYCLE_EVENT",
    "ACTOR_TASK_DEFINITION_EVENT",
    "TASK_PROFILE_EVENT",
    "DRIVER_JOB_DEFINITION_EVENT",
    "DRIVER_JOB_LIFECYCLE_EVENT",
    "ACTOR_DEFINITION_EVENT",
    "ACTOR_LIFECYCLE_EVENT",
    "NODE_DEFINITION_EVENT",
    "NODE_LIFECYCLE_EVENT",
)
