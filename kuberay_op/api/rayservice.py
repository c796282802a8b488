"""RayService: Ray Serve applications on a cluster of their own, upgraded without a gap."""

from __future__ import annotations

from kuberay_op.api.fields import Flag, Integer, Kube, Nested, NestedList, NestedMap, Text, Time
from kuberay_op.api.meta import Column, Condition, CustomResource
from kuberay_op.api.raycluster import SERVICE, RayClusterSpec, RayClusterStatus, managed_by
from kuberay_op.api.view import View


class ClusterUpgradeOptions(View):
    """How traffic moves to the new cluster, step by step."""

    max_surge_percent = Integer(
        "maxSurgePercent", "How much more capacity than usual the new cluster may add at a time.", default=100
    )
    step_size_percent = Integer(
        "stepSizePercent", "How much of the traffic moves in one step.", required=True
    )
    interval_seconds = Integer("intervalSeconds", "Seconds between two steps.", required=True)
    gateway_class_name = Text("gatewayClassName", "Gateway class that routes the traffic.", required=True)


class RayServiceUpgradeStrategy(View):
    """What happens when the cluster part of the spec changes."""

    type = Text(
        "type",
        "NewCluster makes a new cluster and then switches; NewClusterWithIncrementalUpgrade moves traffic "
        "step by step; None keeps the old cluster.",
    )
    cluster_upgrade_options = Nested(
        "clusterUpgradeOptions",
        "The steps of NewClusterWithIncrementalUpgrade. Needs the feature gate RayServiceIncrementalUpgrade.",
        ClusterUpgradeOptions,
    )


class RayServiceSpec(View):
    """The applications and the cluster that serves them."""

    ray_cluster_config = Nested("rayClusterConfig", "The cluster that serves.", RayClusterSpec, required=True)
    serve_config_v2 = Text("serveConfigV2", "The Serve applications: the config of Ray Serve, as YAML text.")
    serve_service = Kube("serveService", "A template for the Service in front of the applications.", SERVICE)
    upgrade_strategy = Nested(
        "upgradeStrategy", "What happens when the cluster part changes.", RayServiceUpgradeStrategy
    )
    ray_cluster_deletion_delay_seconds = Integer(
        "rayClusterDeletionDelaySeconds",
        "Seconds to keep a cluster that is no longer used; 60 when unset.",
        minimum=0,
    )
    exclude_head_pod_from_serve_svc = Flag(
        "excludeHeadPodFromServeSvc", "Send no requests to the head, only to workers."
    )
    suspend = Flag("suspend", "Delete everything the service owns until this is false again.")
    managed_by = managed_by()
    service_unhealthy_second_threshold = Integer(
        "serviceUnhealthySecondThreshold", "Has no effect.", deprecated="remove it."
    )
    deployment_unhealthy_second_threshold = Integer(
        "deploymentUnhealthySecondThreshold", "Has no effect.", deprecated="remove it."
    )


class ServeDeploymentStatus(View):
    """One deployment of an application."""

    status = Text("status", "UPDATING, HEALTHY or UNHEALTHY.")
    message = Text("message", "What Serve says about it.")


class AppStatus(View):
    """One Serve application."""

    status = Text("status", "NOT_STARTED, DEPLOYING, RUNNING, DEPLOY_FAILED, DELETING or UNHEALTHY.")
    message = Text("message", "What Serve says about it.")
    serve_deployment_statuses = NestedMap(
        "serveDeploymentStatuses", "Its deployments by name.", ServeDeploymentStatus
    )


class ClusterServiceStatus(View):
    """What one of the (at most two) clusters of a service does."""

    application_statuses = NestedMap("applicationStatuses", "The applications by name.", AppStatus)
    target_capacity = Integer("targetCapacity", "Percent of its capacity this cluster should offer.")
    traffic_routed_percent = Integer("trafficRoutedPercent", "Percent of the traffic it gets.")
    last_traffic_migrated_time = Time("lastTrafficMigratedTime", "When traffic last moved.")
    ray_cluster_name = Text("rayClusterName", "Name of the RayCluster.")
    ray_cluster_status = Nested("rayClusterStatus", "Status of the RayCluster.", RayClusterStatus)


class RayServiceStatus(View):
    """What the operator has seen of the service."""

    conditions = NestedList(
        "conditions", "The state of the service, aspect by aspect.", Condition, map_keys=("type",)
    )
    last_update_time = Time("lastUpdateTime", "When this status was last written.")
    service_status = Text(
        "serviceStatus", "Running when the service is ready.", deprecated="see the condition Ready."
    )
    active_service_status = Nested("activeServiceStatus", "The cluster that serves.", ClusterServiceStatus)
    pending_service_status = Nested(
        "pendingServiceStatus", "The cluster that will serve next.", ClusterServiceStatus
    )
    num_serve_endpoints = Integer("numServeEndpoints", "Pods that take requests.")
    observed_generation = Integer(
        "observedGeneration", "The generation of the spec this status belongs to.", bits=64
    )


class RayService(CustomResource):
    """Serve applications on a Ray cluster, upgraded without a gap."""

    KIND = "RayService"
    PLURAL = "rayservices"
    COLUMNS = (
        Column("service status", "string", ".status.serviceStatus"),
        Column("num serve endpoints", "string", ".status.numServeEndpoints"),
    )

    spec = Nested("spec", "The applications and the cluster that serves them.", RayServiceSpec)
    status = Nested("status", "What the operator has seen.", RayServiceStatus)
