"""The deprecated version v1alpha1: the fields of December 2023, frozen.

Only its schema is needed, because the operator never reads or writes this version; the API server drops what
it does not know. Most fields are those of v1, taken over by reference.
"""

from __future__ import annotations

from kuberay_op.api import raycluster as rc
from kuberay_op.api import rayjob as rj
from kuberay_op.api import rayservice as rs
from kuberay_op.api.fields import Nested, NestedList, NestedMap, Text, TextMap, Time
from kuberay_op.api.meta import CustomResource
from kuberay_op.api.view import View


class AutoscalerOptions(View):
    """The Ray autoscaler, before it had versions."""

    resources = rc.AutoscalerOptions.resources
    image = rc.AutoscalerOptions.image
    image_pull_policy = rc.AutoscalerOptions.image_pull_policy
    security_context = rc.AutoscalerOptions.security_context
    idle_timeout_seconds = rc.AutoscalerOptions.idle_timeout_seconds
    upscaling_mode = rc.AutoscalerOptions.upscaling_mode
    env = rc.AutoscalerOptions.env
    env_from = rc.AutoscalerOptions.env_from
    volume_mounts = rc.AutoscalerOptions.volume_mounts


class HeadGroupSpec(View):
    """The head of the cluster."""

    template = rc.HeadGroupSpec.template
    ray_start_params = TextMap("rayStartParams", rc.HeadGroupSpec.ray_start_params.doc, required=True)
    service_type = rc.HeadGroupSpec.service_type
    head_service = rc.HeadGroupSpec.head_service
    enable_ingress = rc.HeadGroupSpec.enable_ingress


class WorkerGroupSpec(View):
    """A group of identical worker Pods."""

    group_name = rc.WorkerGroupSpec.group_name
    template = rc.WorkerGroupSpec.template
    replicas = rc.WorkerGroupSpec.replicas
    min_replicas = rc.WorkerGroupSpec.min_replicas
    max_replicas = rc.WorkerGroupSpec.max_replicas
    ray_start_params = TextMap("rayStartParams", rc.WorkerGroupSpec.ray_start_params.doc, required=True)
    scale_strategy = rc.WorkerGroupSpec.scale_strategy


class RayClusterSpec(View):
    """What the cluster should look like."""

    head_group_spec = Nested(
        "headGroupSpec", rc.RayClusterSpec.head_group_spec.doc, HeadGroupSpec, required=True
    )
    worker_group_specs = NestedList(
        "workerGroupSpecs", rc.RayClusterSpec.worker_group_specs.doc, WorkerGroupSpec
    )
    ray_version = rc.RayClusterSpec.ray_version
    enable_in_tree_autoscaling = rc.RayClusterSpec.enable_in_tree_autoscaling
    autoscaler_options = Nested(
        "autoscalerOptions", rc.RayClusterSpec.autoscaler_options.doc, AutoscalerOptions
    )
    suspend = rc.RayClusterSpec.suspend
    head_service_annotations = rc.RayClusterSpec.head_service_annotations


class HeadInfo(View):
    """Where the head is."""

    pod_ip = rc.HeadInfo.pod_ip
    service_ip = rc.HeadInfo.service_ip


class RayClusterStatus(View):
    """What the operator has seen of the cluster."""

    state = Text("state", "ready, suspended, failed or unhealthy.")
    reason = rc.RayClusterStatus.reason
    desired_cpu = rc.RayClusterStatus.desired_cpu
    desired_memory = rc.RayClusterStatus.desired_memory
    desired_gpu = rc.RayClusterStatus.desired_gpu
    desired_tpu = rc.RayClusterStatus.desired_tpu
    ready_worker_replicas = rc.RayClusterStatus.ready_worker_replicas
    available_worker_replicas = rc.RayClusterStatus.available_worker_replicas
    desired_worker_replicas = rc.RayClusterStatus.desired_worker_replicas
    min_worker_replicas = rc.RayClusterStatus.min_worker_replicas
    max_worker_replicas = rc.RayClusterStatus.max_worker_replicas
    last_update_time = rc.RayClusterStatus.last_update_time
    endpoints = rc.RayClusterStatus.endpoints
    head = Nested("head", rc.RayClusterStatus.head.doc, HeadInfo)
    observed_generation = rc.RayClusterStatus.observed_generation


class RayCluster(CustomResource):
    """A Ray cluster: one head and groups of workers."""

    KIND = rc.RayCluster.KIND
    PLURAL = rc.RayCluster.PLURAL
    VERSION = "v1alpha1"
    COLUMNS = rc.RayCluster.COLUMNS

    spec = Nested("spec", rc.RayCluster.spec.doc, RayClusterSpec)
    status = Nested("status", rc.RayCluster.status.doc, RayClusterStatus)


class RayJobSpec(View):
    """The command and the cluster to run it on."""

    entrypoint = Text("entrypoint", rj.RayJobSpec.entrypoint.doc, required=True)
    ray_cluster_spec = Nested("rayClusterSpec", rj.RayJobSpec.ray_cluster_spec.doc, RayClusterSpec)
    cluster_selector = rj.RayJobSpec.cluster_selector
    job_id = rj.RayJobSpec.job_id
    metadata = rj.RayJobSpec.metadata
    runtime_env_yaml = rj.RayJobSpec.runtime_env_yaml
    entrypoint_num_cpus = rj.RayJobSpec.entrypoint_num_cpus
    entrypoint_num_gpus = rj.RayJobSpec.entrypoint_num_gpus
    entrypoint_resources = rj.RayJobSpec.entrypoint_resources
    submitter_pod_template = rj.RayJobSpec.submitter_pod_template
    ttl_seconds_after_finished = rj.RayJobSpec.ttl_seconds_after_finished
    shutdown_after_job_finishes = rj.RayJobSpec.shutdown_after_job_finishes
    suspend = rj.RayJobSpec.suspend


class RayJobStatus(View):
    """What the operator has seen of the job."""

    job_id = rj.RayJobStatus.job_id
    ray_cluster_name = rj.RayJobStatus.ray_cluster_name
    dashboard_url = rj.RayJobStatus.dashboard_url
    job_status = rj.RayJobStatus.job_status
    job_deployment_status = rj.RayJobStatus.job_deployment_status
    message = rj.RayJobStatus.message
    start_time = rj.RayJobStatus.start_time
    end_time = rj.RayJobStatus.end_time
    ray_cluster_status = Nested("rayClusterStatus", rj.RayJobStatus.ray_cluster_status.doc, RayClusterStatus)
    observed_generation = rj.RayJobStatus.observed_generation


class RayJob(CustomResource):
    """A command to run on a Ray cluster."""

    KIND = rj.RayJob.KIND
    PLURAL = rj.RayJob.PLURAL
    VERSION = "v1alpha1"

    spec = Nested("spec", rj.RayJob.spec.doc, RayJobSpec)
    status = Nested("status", rj.RayJob.status.doc, RayJobStatus)


class RayServiceSpec(View):
    """The applications and the cluster that serves them."""

    ray_cluster_config = Nested("rayClusterConfig", rs.RayServiceSpec.ray_cluster_config.doc, RayClusterSpec)
    serve_config_v2 = rs.RayServiceSpec.serve_config_v2
    serve_service = rs.RayServiceSpec.serve_service
    service_unhealthy_second_threshold = rs.RayServiceSpec.service_unhealthy_second_threshold
    deployment_unhealthy_second_threshold = rs.RayServiceSpec.deployment_unhealthy_second_threshold


class ServeDeploymentStatus(View):
    """One deployment of an application."""

    status = rs.ServeDeploymentStatus.status
    message = rs.ServeDeploymentStatus.message
    health_last_update_time = Time("healthLastUpdateTime", "When it was last healthy.")


class AppStatus(View):
    """One Serve application."""

    status = rs.AppStatus.status
    message = rs.AppStatus.message
    serve_deployment_statuses = NestedMap(
        "serveDeploymentStatuses", rs.AppStatus.serve_deployment_statuses.doc, ServeDeploymentStatus
    )
    health_last_update_time = Time("healthLastUpdateTime", "When it was last healthy.")


class ClusterServiceStatus(View):
    """What one of the clusters of a service does."""

    application_statuses = NestedMap(
        "applicationStatuses", rs.ClusterServiceStatus.application_statuses.doc, AppStatus
    )
    ray_cluster_name = rs.ClusterServiceStatus.ray_cluster_name
    ray_cluster_status = Nested(
        "rayClusterStatus", rs.ClusterServiceStatus.ray_cluster_status.doc, RayClusterStatus
    )


class RayServiceStatus(View):
    """What the operator has seen of the service."""

    last_update_time = rs.RayServiceStatus.last_update_time
    service_status = rs.RayServiceStatus.service_status
    active_service_status = Nested(
        "activeServiceStatus", rs.RayServiceStatus.active_service_status.doc, ClusterServiceStatus
    )
    pending_service_status = Nested(
        "pendingServiceStatus", rs.RayServiceStatus.pending_service_status.doc, ClusterServiceStatus
    )
    observed_generation = rs.RayServiceStatus.observed_generation


class RayService(CustomResource):
    """Serve applications on a Ray cluster."""

    KIND = rs.RayService.KIND
    PLURAL = rs.RayService.PLURAL
    VERSION = "v1alpha1"

    spec = Nested("spec", rs.RayService.spec.doc, RayServiceSpec)
    status = Nested("status", rs.RayService.status.doc, RayServiceStatus)
