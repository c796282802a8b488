"""Every setting of the operator, declared once: ``Config``.

A field's declaration says where its value may come from (flag, key of the configuration file, environment
variable), what it is by default and what it does. Flags, file keys, the output of ``kuberay-op config show``
and the reference page are all made from these declarations (``SETTINGS``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from kuberay_op.config.settings import Kind, Reading, declared, setting
from kuberay_op.features import Gates
from kuberay_op.logs import Encoder, LogSettings, parse_level

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The effective configuration. Immutable; ``kuberay_op.config.resolve`` makes it."""

    # Serving
    metrics_addr: str = setting(
        ":8080",
        Kind.TEXT,
        "Address of the metrics server (`/metrics`), as `host:port`; `0` turns it off.",
        flag="metrics-addr",
        key="metricsAddr",
    )
    probe_addr: str = setting(
        ":8082",
        Kind.TEXT,
        "Address of the health server (`/healthz`, `/readyz`), as `host:port`; `0` turns it off.",
        flag="health-probe-bind-address",
        key="probeAddr",
    )
    enable_metrics: bool = setting(
        False,
        Kind.BOOL,
        "Publish the `kuberay_*` metrics about clusters, jobs and services.",
        flag="enable-metrics",
        key="enableMetrics",
    )
    enable_debug_endpoints: bool = setting(
        False,
        Kind.BOOL,
        "Serve `/debug` beside the health server: queues, last passes, tasks, memory. Not in the reference.",
        flag="enable-debug-endpoints",
        key="enableDebugEndpoints",
    )
    enable_webhooks: bool = setting(
        False,
        Kind.BOOL,
        "Serve the validating webhooks.",
        env=("ENABLE_WEBHOOKS", Reading.EXACTLY_TRUE),
    )

    # Working
    enable_leader_election: bool = setting(
        True,
        Kind.BOOL,
        "Let only one of several operators act at a time.",
        flag="enable-leader-election",
        key="enableLeaderElection",
    )
    leader_election_namespace: str = setting(
        "",
        Kind.TEXT,
        "Namespace of the lease; empty is the namespace the operator's Pod is in.",
        flag="leader-election-namespace",
        key="leaderElectionNamespace",
    )
    leader_election_lease_seconds: float = setting(
        15.0,
        Kind.FLOAT,
        "Seconds after which a standby takes over from a silent leader. Not in the reference.",
        flag="leader-election-lease-seconds",
        key="leaderElectionLeaseSeconds",
    )
    leader_election_renew_seconds: float = setting(
        10.0,
        Kind.FLOAT,
        "Seconds without renewal after which a leader stops working. Not in the reference.",
        flag="leader-election-renew-seconds",
        key="leaderElectionRenewSeconds",
    )
    leader_election_retry_seconds: float = setting(
        2.0,
        Kind.FLOAT,
        "Seconds between two attempts to get or renew the lease. Not in the reference.",
        flag="leader-election-retry-seconds",
        key="leaderElectionRetrySeconds",
    )
    reconcile_concurrency: int = setting(
        8,
        Kind.INT,
        "Objects each controller works on at the same time; 0 is the default. The reference's default is 1.",
        flag="reconcile-concurrency",
        key="reconcileConcurrency",
    )
    watch_namespaces: tuple[str, ...] = setting(
        (),
        Kind.TEXT,
        "Namespaces to look at, separated by commas, without blanks; empty is all.",
        flag="watch-namespace",
        key="watchNamespace",
    )
    gates: Gates = setting(  # noqa: RUF009 - the field function of this dataclass
        Gates.default(),
        Kind.TEXT,
        "Feature gates, as `A=true,B=false`.",
        flag="feature-gates",
    )

    # Talking to Kubernetes and Ray
    kubeconfig: str = setting(
        "",
        Kind.TEXT,
        "Kubeconfig file. When empty: that of the Pod, else `~/.kube/config`.",
        flag="kubeconfig",
        env=("KUBECONFIG", Reading.TEXT),
    )
    qps: float = setting(
        100.0,
        Kind.FLOAT,
        "Requests per second to the API server; 0 is 5, below 0 is without limit.",
        flag="qps",
        key="qps",
    )
    burst: int = setting(
        200,
        Kind.INT,
        "Requests that may go out at once before `qps` counts; 0 is 10.",
        flag="burst",
        key="burst",
    )
    use_kubernetes_proxy: bool = setting(
        False,
        Kind.BOOL,
        "Reach Ray through the API server's proxy rather than directly.",
        flag="use-kubernetes-proxy",
        key="useKubernetesProxy",
    )
    cluster_domain: str = setting(
        "cluster.local",
        Kind.TEXT,
        "DNS domain of the Kubernetes cluster.",
        env=("CLUSTER_DOMAIN", Reading.TEXT),
    )

    # Batch schedulers
    batch_scheduler: str = setting(
        "",
        Kind.TEXT,
        "Batch scheduler: `volcano`, `yunikorn`, `kai-scheduler`, `scheduler-plugins`, or one a plugin adds.",
        flag="batch-scheduler",
        key="batchScheduler",
    )
    enable_batch_scheduler: bool = setting(
        False,
        Kind.BOOL,
        "Old way to choose Volcano.",
        flag="enable-batch-scheduler",
        key="enableBatchScheduler",
        deprecated="is deprecated; choose the batch scheduler volcano by name instead",
    )

    # Plugins
    plugins: Mapping[str, Mapping[str, Any]] = setting(
        _NOTHING,
        Kind.PLUGINS,
        "Plugins by name, each with `enabled` (true when not given) and `options`. Not in the reference.",
        key="plugins",
    )
    enable_plugins: str = setting(
        "",
        Kind.TEXT,
        "Plugins to switch on, separated by commas; with a `-` before the name, off. Not in the reference.",
        flag="plugins",
    )
    plugin_folders: str = setting(
        "",
        Kind.TEXT,
        "Folders of YAML plugins, separated by commas. Not in the reference.",
        flag="plugin-folders",
        key="pluginFolders",
    )

    # What Pods get
    head_sidecar_containers: tuple[Mapping[str, Any], ...] = setting(
        (), Kind.CONTAINERS, "Containers added to every head Pod.", key="headSidecarContainers"
    )
    worker_sidecar_containers: tuple[Mapping[str, Any], ...] = setting(
        (), Kind.CONTAINERS, "Containers added to every worker Pod.", key="workerSidecarContainers"
    )
    default_container_envs: tuple[Mapping[str, Any], ...] = setting(
        (), Kind.VARIABLES, "Environment variables for every Ray container.", key="defaultContainerEnvs"
    )
    default_pod_annotations: Mapping[str, str] = setting(
        _NOTHING,
        Kind.LABELS,
        "Annotations for every Ray Pod; the object's own win.",
        key="defaultPodAnnotations",
    )
    default_pod_labels: Mapping[str, str] = setting(
        _NOTHING, Kind.LABELS, "Labels for every Ray Pod; the object's own win.", key="defaultPodLabels"
    )
    enable_init_container_injection: bool = setting(
        True,
        Kind.BOOL,
        "Let worker Pods wait for the head in an init container.",
        env=("ENABLE_INIT_CONTAINER_INJECTION", Reading.FALSE),
    )
    enable_probes_injection: bool = setting(
        True,
        Kind.BOOL,
        "Give Ray containers liveness and readiness probes.",
        env=("ENABLE_PROBES_INJECTION", Reading.FALSE),
    )
    enable_login_shell: bool = setting(
        False,
        Kind.BOOL,
        "Start Ray in a login shell (`bash -l`).",
        env=("ENABLE_LOGIN_SHELL", Reading.TRUE),
    )
    enable_deterministic_head_pod_name: bool = setting(
        False,
        Kind.BOOL,
        "Give the head Pod a fixed name.",
        env=("ENABLE_DETERMINISTIC_HEAD_POD_NAME", Reading.TRUE),
    )

    # RayCluster
    enable_gcs_ft_redis_cleanup: bool = setting(
        True,
        Kind.BOOL,
        "Clean up Redis when a fault-tolerant RayCluster is deleted.",
        env=("ENABLE_GCS_FT_REDIS_CLEANUP", Reading.FALSE),
    )
    raycluster_requeue_seconds: int = setting(
        300,
        Kind.INT,
        "Seconds after which a RayCluster is looked at again although nothing happened; 0 or less is never.",
        env=("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", Reading.SECONDS),
    )
    enable_random_pod_delete: bool = setting(
        False,
        Kind.BOOL,
        "Delete random worker Pods when scaling down, even with the autoscaler.",
        env=("ENABLE_RANDOM_POD_DELETE", Reading.TRUE),
    )
    enable_head_cluster_ip_service: bool = setting(
        False,
        Kind.BOOL,
        "Give the head Service a cluster IP rather than none.",
        env=("ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE", Reading.TRUE),
    )
    use_ingress_on_openshift: bool = setting(
        False,
        Kind.BOOL,
        "On OpenShift, make an Ingress rather than a Route.",
        env=("USE_INGRESS_ON_OPENSHIFT", Reading.TRUE),
    )

    # RayJob and RayService
    delete_rayjob_after_job_finishes: bool = setting(
        False,
        Kind.BOOL,
        "Delete the RayJob itself, not only its cluster, once it has finished and its time is up.",
        key="deleteRayJobAfterJobFinishes",
        env=("DELETE_RAYJOB_CR_AFTER_JOB_FINISHES", Reading.TRUE),
    )
    rayjob_transition_grace_seconds: int = setting(
        300,
        Kind.INT,
        "Seconds a finished Ray job may take to show in the RayJob's deployment status.",
        env=("RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS", Reading.SECONDS),
    )
    rayjob_status_check_timeout_seconds: int = setting(
        300,
        Kind.INT,
        "Seconds for which the status of a Ray job may be unknown before the RayJob fails.",
        env=("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", Reading.POSITIVE_SECONDS),
    )
    enable_zero_downtime: bool = setting(
        True,
        Kind.BOOL,
        "Upgrade a RayService by a second cluster when it does not say how.",
        env=("ENABLE_ZERO_DOWNTIME", Reading.FALSE),
    )

    # Logging
    log_stdout_encoder: Encoder = setting(  # noqa: RUF009 - the field function of this dataclass
        "json",
        Kind.TEXT,
        "Lines on stderr (whatever the name says) as `json` or `console`.",
        flag="log-stdout-encoder",
        key="logStdoutEncoder",
        flag_over_file=True,
    )
    log_file: str = setting("", Kind.TEXT, "Log to this file as well.", flag="log-file-path", key="logFile")
    log_file_encoder: Encoder = setting(  # noqa: RUF009 - the field function of this dataclass
        "json",
        Kind.TEXT,
        "Lines in the file as `json` or `console`.",
        flag="log-file-encoder",
        key="logFileEncoder",
        flag_over_file=True,
    )
    zap_devel: bool = setting(
        False,
        Kind.BOOL,
        "Development: debug level, stack traces from warnings on, nothing sampled.",
        flag="zap-devel",
    )
    zap_log_level: str = setting(
        "info",
        Kind.TEXT,
        "`debug`, `info`, `warn`, `error`, `panic` or a number above 0; with `zap-devel`, `debug`.",
        flag="zap-log-level",
    )
    zap_stacktrace_level: str = setting(
        "error",
        Kind.TEXT,
        "Stack traces from this level on: `info`, `warn`, `error`, `panic`; with `zap-devel`, `warn`.",
        flag="zap-stacktrace-level",
    )
    zap_encoder: str = setting(
        "",
        Kind.TEXT,
        "Accepted for old manifests.",
        flag="zap-encoder",
        deprecated="has no effect; use --log-stdout-encoder",
    )
    zap_time_encoding: str = setting(
        "",
        Kind.TEXT,
        "Accepted for old manifests.",
        flag="zap-time-encoding",
        deprecated="has no effect; timestamps are always ISO 8601",
    )

    # Webhook
    webhook_addr: str = setting(
        ":9443",
        Kind.TEXT,
        "Address of the webhook server, as `host:port`. Not in the reference, where it is fixed.",
        flag="webhook-bind-address",
        key="webhookAddr",
    )
    webhook_cert_dir: str = setting(
        "",
        Kind.TEXT,
        "Folder with the webhook's `tls.crt` and `tls.key`, as cert-manager renews them. When empty: "
        "`/tmp/k8s-webhook-server/serving-certs` if it has them, else the operator makes its own. "
        "Not in the reference.",
        flag="webhook-cert-dir",
        key="webhookCertDir",
    )
    webhook_secret_name: str = setting(
        "kuberay-webhook-ca",
        Kind.TEXT,
        "Secret in the operator's namespace for the authority of certificates that it makes itself. "
        "Not in the reference.",
        flag="webhook-secret-name",
        key="webhookSecretName",
    )
    webhook_configurations: str = setting(
        "kuberay-validating-webhook-configuration",
        Kind.TEXT,
        "Webhook configurations that are told to trust that authority, separated by commas. "
        "Not in the reference.",
        flag="webhook-configurations",
        key="webhookConfigurations",
    )

    # This configuration itself
    config: str = setting(
        "",
        Kind.TEXT,
        "Configuration file. With it, flags that have a key in the file are ignored.",
        flag="config",
    )
    strict: bool = setting(
        False,
        Kind.BOOL,
        "Do not start with anything to warn about in the configuration. Not in the reference.",
        flag="strict",
    )
    forced_cluster_upgrade: bool = setting(
        False,
        Kind.BOOL,
        "Accepted for old manifests.",
        flag="forced-cluster-upgrade",
        deprecated="is deprecated and has no effect",
    )

    def log_settings(self) -> LogSettings:
        """How to log."""
        return LogSettings(
            encoder=self.log_stdout_encoder,
            file=Path(self.log_file) if self.log_file else None,
            file_encoder=self.log_file_encoder,
            level=parse_level(self.zap_log_level),
            stacktrace_level=parse_level(self.zap_stacktrace_level),
            sampling=not self.zap_devel,
        )


#: All declarations, in the order in which they are documented and shown.
SETTINGS: Final = declared(Config)
