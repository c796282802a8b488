"""RayCluster: one head and groups of workers. Its spec is also part of RayJob and RayService."""

from __future__ import annotations

from typing import Final

from kuberay_op.api.fields import (
    Flag,
    Integer,
    Kube,
    KubeList,
    Nested,
    NestedList,
    Quantity,
    Text,
    TextList,
    TextMap,
    Time,
    TimeMap,
)
from kuberay_op.api.meta import Column, Condition, CustomResource
from kuberay_op.api.names import CONTROLLER
from kuberay_op.api.view import Rule, View

POD_TEMPLATE: Final = "io.k8s.api.core.v1.PodTemplateSpec"
SERVICE: Final = "io.k8s.api.core.v1.Service"
RESOURCES: Final = "io.k8s.api.core.v1.ResourceRequirements"
ENV_VAR: Final = "io.k8s.api.core.v1.EnvVar"

#: The value of ``managedBy`` that leaves the object to MultiKueue.
MULTIKUEUE: Final = "kueue.x-k8s.io/multikueue"


#: Once set, the field keeps its value; adding or removing it is not blocked.
IMMUTABLE: Final = Rule("self == oldSelf", "cannot be changed once it is set", lambda new, old: new == old)

MANAGED_BY_RULES: Final = (
    IMMUTABLE,
    Rule(
        f"self in ['{CONTROLLER}', '{MULTIKUEUE}']",
        f"must be '{CONTROLLER}' or '{MULTIKUEUE}'",
        lambda new, _: new in (CONTROLLER, MULTIKUEUE),
    ),
)


def managed_by() -> Text:
    """The field ``managedBy``, the same in three kinds."""
    return Text(
        "managedBy",
        f"Which controller takes care of the object: {CONTROLLER} (also when unset) or {MULTIKUEUE}. "
        "An object left to another controller is not touched.",
        rules=MANAGED_BY_RULES,
    )


class IngressOptions(View):
    """How the Ingress of the head routes."""

    host = Text("host", "Host name the Ingress answers to; any host when unset.")
    path = Text("path", "Path that leads to the dashboard; / when unset.")
    path_type = Text(
        "pathType",
        "How the path is matched; Prefix when unset.",
        choices=("Exact", "Prefix", "ImplementationSpecific"),
    )
    tls = KubeList("tls", "TLS certificates of the Ingress.", "io.k8s.api.networking.v1.IngressTLS")


class HeadGroupSpec(View):
    """The head of the cluster: one Pod that runs the control store, the dashboard and the job server."""

    template = Kube(
        "template",
        "Pod template of the head. Its first container is the Ray container.",
        POD_TEMPLATE,
        required=True,
    )
    ray_start_params = TextMap(
        "rayStartParams",
        "Flags for `ray start` on the head, without the leading dashes: dashboard-host: '0.0.0.0'.",
    )
    service_type = Text("serviceType", "Type of the head Service; ClusterIP when unset.")
    head_service = Kube(
        "headService",
        "A head Service of your own. It is merged with what Ray needs: ports and selector are added.",
        SERVICE,
    )
    enable_ingress = Flag("enableIngress", "Make an Ingress (on OpenShift a Route) for the dashboard.")
    ingress_options = Nested("ingressOptions", "How that Ingress routes.", IngressOptions)
    resources = TextMap(
        "resources",
        "Logical resources that Ray sees on the head, such as CPU: '0'. They override those in "
        "rayStartParams and do not change what the Pod requests.",
    )
    labels = TextMap("labels", "Labels of the Ray node, also put on the Pod. They override --labels.")


class ScaleStrategy(View):
    """Which workers of a group to remove first."""

    workers_to_delete = TextList(
        "workersToDelete",
        "Names of the worker Pods to delete. The Ray autoscaler writes them together with a lower "
        "replicas; names that no longer exist do no harm.",
    )


class WorkerGroupSpec(View):
    """A group of identical worker Pods."""

    group_name = Text("groupName", "Name of the group, unique within the cluster.", required=True)
    template = Kube(
        "template",
        "Pod template of the workers. Its first container is the Ray container.",
        POD_TEMPLATE,
        required=True,
    )
    replicas = Integer(
        "replicas",
        "How many replicas are wanted, between minReplicas and maxReplicas. With autoscaling the Ray "
        "autoscaler writes it.",
        default=0,
    )
    min_replicas = Integer("minReplicas", "The fewest replicas to keep.", default=0, required=True)
    max_replicas = Integer("maxReplicas", "The most replicas to have.", default=2147483647, required=True)
    num_of_hosts = Integer(
        "numOfHosts",
        "Pods per replica. More than one makes a replica a unit of several hosts, such as a TPU slice.",
        default=1,
    )
    priority = Integer(
        "priority",
        "Which group the autoscaler grows first; higher wins. Needs autoscaler v2 and Ray 2.56.0 or later.",
        default=0,
    )
    idle_timeout_seconds = Integer(
        "idleTimeoutSeconds",
        "Seconds a worker of this group may idle before the autoscaler removes it. Needs autoscaler v2.",
    )
    suspend = Flag(
        "suspend", "Delete all Pods of the group. Set by the DeleteWorkers policy of RayJob; do not set it."
    )
    ray_start_params = TextMap(
        "rayStartParams", "Flags for `ray start` on the workers, without the leading dashes."
    )
    resources = TextMap(
        "resources",
        "Logical resources that Ray sees on each worker. They override those in rayStartParams and do not "
        "change what the Pod requests.",
    )
    labels = TextMap("labels", "Labels of the Ray nodes, also put on the Pods. They override --labels.")
    scale_strategy = Nested("scaleStrategy", "Which workers to remove first.", ScaleStrategy)


class AutoscalerOptions(View):
    """The Ray autoscaler, a container beside the head."""

    resources = Kube(
        "resources", "Resources of the autoscaler container; 500m CPU and 512Mi memory when unset.", RESOURCES
    )
    image = Text("image", "Image of the autoscaler container; that of the Ray container when unset.")
    image_pull_policy = Text("imagePullPolicy", "When to pull that image: Always, IfNotPresent or Never.")
    security_context = Kube(
        "securityContext",
        "Security context of the autoscaler container.",
        "io.k8s.api.core.v1.SecurityContext",
    )
    idle_timeout_seconds = Integer(
        "idleTimeoutSeconds",
        "Seconds a worker may idle before it is removed; the autoscaler takes 60 itself.",
    )
    upscaling_mode = Text(
        "upscalingMode",
        "How fast to add workers: Default and Aggressive add as many as are wanted, Conservative at most as "
        "many as there are.",
        choices=("Default", "Aggressive", "Conservative"),
    )
    version = Text(
        "version", "Autoscaler to run; Ray chooses when unset (v2 from Ray 2.47.0).", choices=("v1", "v2")
    )
    env = KubeList("env", "Environment of the autoscaler container.", ENV_VAR)
    env_from = KubeList(
        "envFrom", "Sources of more environment for that container.", "io.k8s.api.core.v1.EnvFromSource"
    )
    volume_mounts = KubeList(
        "volumeMounts", "Volumes of the head Pod mounted into it.", "io.k8s.api.core.v1.VolumeMount"
    )
    command = TextList("command", "Command of the autoscaler container, in place of the generated one.")
    args = TextList("args", "Arguments of that command.")


class AuthOptions(View):
    """Token authentication of Ray."""

    mode = Text(
        "mode",
        "token asks every client for a token, which needs Ray 2.52.0 or later; disabled and unset do not.",
        choices=("disabled", "token"),
    )
    secret_name = Text(
        "secretName",
        "A Secret of your own that holds the token under the key auth_token. One is made when unset.",
    )
    enable_k8s_token_auth = Flag(
        "enableK8sTokenAuth",
        "Let the Kubernetes API server check the tokens. Callers need the verb ray:write on the cluster. "
        "Only for a RayCluster of its own, with Ray 2.55.0 or later.",
    )


class RedisCredential(View):
    """A user name or password of Redis."""

    value = Text(
        "value", "The text itself. Prefer valueFrom: this one can be read by all who see the object."
    )
    value_from = Kube("valueFrom", "Where the text comes from.", "io.k8s.api.core.v1.EnvVarSource")


class GcsEmbeddedStorage(View):
    """The volume on which an embedded control store keeps its state."""

    claim_name = Text(
        "claimName",
        "A PersistentVolumeClaim of your own, never changed or deleted by the operator. Excludes size, "
        "storageClassName and accessModes.",
    )
    size = Quantity("size", "Size of the claim that is made; 1Gi when unset.")
    storage_class_name = Text("storageClassName", "Storage class of that claim; the default one when unset.")
    access_modes = TextList("accessModes", "Access modes of that claim; ReadWriteOnce when unset.")
    sub_path = Text("subPath", "Folder of the volume to use.")
    deletion_policy = Text(
        "deletionPolicy",
        "What happens to the claim with the cluster: DeleteWithCluster (also when unset) or Retain.",
        choices=("DeleteWithCluster", "Retain"),
    )


class GcsFaultToleranceOptions(View):
    """Where the control store of Ray keeps its state, so that a new head can go on."""

    backend = Text(
        "backend",
        "Kind of storage; redis when unset.",
        choices=("redis", "rocksdb"),
        rules=(IMMUTABLE,),
    )
    redis_address = Text("redisAddress", "Address of Redis: redis:6379 or redis://host:port.")
    redis_username = Nested("redisUsername", "User name for Redis.", RedisCredential)
    redis_password = Nested("redisPassword", "Password for Redis.", RedisCredential)
    external_storage_namespace = Text(
        "externalStorageNamespace", "Prefix of all keys in Redis; the unique id of the cluster when unset."
    )
    storage = Nested("storage", "Volume for the rocksdb backend.", GcsEmbeddedStorage)


class UpgradeStrategy(View):
    """What happens to the Pods when the spec changes."""

    type = Text(
        "type",
        "Recreate deletes all Pods and makes new ones; None (also when unset) leaves running Pods alone.",
        choices=("Recreate", "None"),
    )


class CollectorOptions(View):
    """The container that collects logs and events for the history server."""

    image = Text("image", "Image of the collector; has to be given.")
    image_pull_policy = Text("imagePullPolicy", "When to pull that image: Always, IfNotPresent or Never.")
    resources = Kube("resources", "Resources of the collector container.", RESOURCES)
    env = KubeList("env", "Environment of the collector; STORAGE_BACKEND says where it writes.", ENV_VAR)


class HistoryServerOptions(View):
    """What is kept for the history server."""

    collector_options = Nested(
        "collectorOptions", "The collector container put beside Ray in every Pod.", CollectorOptions
    )


class NetworkPolicyRules(View):
    """Traffic to allow in addition to that within the cluster."""

    ingress_rules = KubeList(
        "ingressRules", "Traffic to let in.", "io.k8s.api.networking.v1.NetworkPolicyIngressRule"
    )
    egress_rules = KubeList(
        "egressRules", "Traffic to let out.", "io.k8s.api.networking.v1.NetworkPolicyEgressRule"
    )


class WorkerGroupNetworkPolicy(NetworkPolicyRules):
    """Traffic to allow for one worker group, in place of what holds for all workers."""

    group_name = Text("groupName", "Name of the worker group.", required=True)


class NetworkPolicyConfig(View):
    """NetworkPolicies of the cluster. Traffic within the cluster is always allowed; DNS has to be added."""

    mode = Text(
        "mode",
        "What is denied unless a rule allows it: DenyAll, DenyAllIngress or DenyAllEgress.",
        choices=("DenyAll", "DenyAllIngress", "DenyAllEgress"),
        default="DenyAll",
    )
    head = Nested("head", "Traffic to allow for the head.", NetworkPolicyRules)
    worker = Nested("worker", "Traffic to allow for all workers.", NetworkPolicyRules)
    worker_groups = NestedList(
        "workerGroups",
        "Traffic to allow for single worker groups; an entry replaces worker for its group.",
        WorkerGroupNetworkPolicy,
        map_keys=("groupName",),
    )


class TlsOptions(View):
    """Mutual TLS between the nodes of the cluster, with certificates from cert-manager."""

    enabled = Flag("enabled", "Turn mutual TLS on.")


class RayClusterSpec(View):
    """What the cluster should look like."""

    head_group_spec = Nested("headGroupSpec", "The head of the cluster.", HeadGroupSpec, required=True)
    worker_group_specs = NestedList("workerGroupSpecs", "The groups of workers.", WorkerGroupSpec)
    ray_version = Text(
        "rayVersion", "Version of Ray in the images, such as 2.52.0. It decides which commands are used."
    )
    enable_in_tree_autoscaling = Flag(
        "enableInTreeAutoscaling", "Run the Ray autoscaler, which adds and removes workers by demand."
    )
    autoscaler_options = Nested("autoscalerOptions", "Settings of the autoscaler.", AutoscalerOptions)
    suspend = Flag("suspend", "Delete all Pods, head included, until this is false again.")
    managed_by = managed_by()
    head_service_annotations = TextMap("headServiceAnnotations", "Annotations for the head Service.")
    gcs_fault_tolerance_options = Nested(
        "gcsFaultToleranceOptions",
        "Keep the state of the control store outside the head, so that it survives the loss of the head.",
        GcsFaultToleranceOptions,
    )
    auth_options = Nested("authOptions", "Token authentication of Ray.", AuthOptions)
    upgrade_strategy = Nested(
        "upgradeStrategy", "What happens to the Pods when the spec changes.", UpgradeStrategy
    )
    history_server_options = Nested(
        "historyServerOptions",
        "What is kept for the history server. Needs the feature gate RayClusterHistoryServer.",
        HistoryServerOptions,
    )
    network_policy = Nested(
        "networkPolicy",
        "NetworkPolicies around the cluster. Needs the feature gate RayClusterNetworkPolicy.",
        NetworkPolicyConfig,
    )
    tls_options = Nested(
        "tlsOptions", "Mutual TLS inside the cluster. Needs the feature gate RayClusterMTLS.", TlsOptions
    )


class HeadInfo(View):
    """Where the head is."""

    pod_ip = Text("podIP", "IP address of the head Pod.")
    pod_name = Text("podName", "Name of the head Pod.")
    service_ip = Text("serviceIP", "IP address of the head Service.")
    service_name = Text("serviceName", "Name of the head Service.")


class RayClusterStatus(View):
    """What the operator has seen of the cluster."""

    state = Text(
        "state", "ready, suspended or failed; empty until first ready.", deprecated="see conditions instead."
    )
    reason = Text("reason", "Why the cluster is in this state.")
    desired_cpu = Quantity("desiredCPU", "CPUs that head and wanted workers request together.")
    desired_memory = Quantity("desiredMemory", "Memory that head and wanted workers request together.")
    desired_gpu = Quantity("desiredGPU", "GPUs that head and wanted workers request together.")
    desired_tpu = Quantity("desiredTPU", "TPUs that head and wanted workers request together.")
    ready_worker_replicas = Integer("readyWorkerReplicas", "Worker Pods that run and are ready.")
    available_worker_replicas = Integer("availableWorkerReplicas", "Worker Pods that run.")
    desired_worker_replicas = Integer("desiredWorkerReplicas", "Worker Pods that are wanted.")
    min_worker_replicas = Integer("minWorkerReplicas", "The fewest worker Pods over all groups.")
    max_worker_replicas = Integer("maxWorkerReplicas", "The most worker Pods over all groups.")
    last_update_time = Time("lastUpdateTime", "When this status was last written.", nullable=True)
    state_transition_times = TimeMap("stateTransitionTimes", "When each state was last entered.")
    endpoints = TextMap("endpoints", "Port of the head Service by name.")
    head = Nested("head", "Where the head is.", HeadInfo)
    conditions = NestedList(
        "conditions", "The state of the cluster, aspect by aspect.", Condition, map_keys=("type",)
    )
    observed_generation = Integer(
        "observedGeneration", "The generation of the spec this status belongs to.", bits=64
    )


AGE: Final = Column("age", "date", ".metadata.creationTimestamp")


class RayCluster(CustomResource):
    """A Ray cluster: one head and groups of workers."""

    KIND = "RayCluster"
    PLURAL = "rayclusters"
    COLUMNS = (
        Column("desired workers", "integer", ".status.desiredWorkerReplicas"),
        Column("available workers", "integer", ".status.availableWorkerReplicas"),
        Column("cpus", "string", ".status.desiredCPU"),
        Column("memory", "string", ".status.desiredMemory"),
        Column("gpus", "string", ".status.desiredGPU"),
        Column("tpus", "string", ".status.desiredTPU", priority=1),
        Column("status", "string", ".status.state"),
        AGE,
        Column("head pod IP", "string", ".status.head.podIP", priority=1),
        Column("head service IP", "string", ".status.head.serviceIP", priority=1),
    )

    spec = Nested("spec", "What the cluster should look like.", RayClusterSpec)
    status = Nested("status", "What the operator has seen.", RayClusterStatus)
