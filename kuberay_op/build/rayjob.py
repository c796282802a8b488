"""What a RayJob makes besides its submitter: a RayCluster, and a Service that leads to its head."""

from __future__ import annotations

from kuberay_op.api import annotations as notes
from kuberay_op.api import labels, names
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.rayjob import RayJob
from kuberay_op.api.validation.rayjob import SIDECAR_MODE
from kuberay_op.api.view import Json
from kuberay_op.build import service
from kuberay_op.build.metadata import owner_reference
from kuberay_op.build.submitter import sidecar
from kuberay_op.config import Config
from kuberay_op.frozen import thaw


def job_cluster(job: RayJob, config: Config) -> Json:
    """The RayCluster of the present attempt, under the name that the status has for it."""
    obj: Json = {
        "apiVersion": "ray.io/v1",
        "kind": RayCluster.KIND,
        "metadata": {
            "name": job.status.ray_cluster_name,
            "namespace": job.namespace,
            "labels": {
                **job.metadata.labels,
                labels.ORIGINATED_FROM_NAME: job.name,
                labels.ORIGINATED_FROM_KIND: job.KIND,
                labels.JOB_SUBMISSION_MODE: job.spec.submission_mode,
            },
            "annotations": dict(job.metadata.annotations),
            "ownerReferences": [owner_reference(job.raw)],
        },
        "spec": thaw(job.spec.ray_cluster_spec.raw),
    }
    if job.spec.submission_mode == SIDECAR_MODE:
        obj["metadata"]["annotations"][notes.DISABLE_PROVISIONED_HEAD_RESTART] = "true"
        pod = obj["spec"]["headGroupSpec"]["template"]["spec"]
        pod["containers"].append(sidecar(job, RayCluster(obj), config))
        pod["restartPolicy"] = "Never"  # or the whole head would restart when the job is done
    return obj


def job_head_service(job: RayJob, cluster: RayCluster, config: Config) -> Json:
    """The Service that leads to the head of whichever cluster the job runs on now."""
    obj = service.head_service(cluster, config)
    # Of the annotations only those of the user's own Service: the others are for the cluster's.
    own = (cluster.spec.head_group_spec.head_service.get("metadata") or {}).get("annotations")
    obj["metadata"].pop("annotations", None)
    obj["metadata"] |= {
        **({"annotations": dict(own)} if own else {}),
        "name": names.head_service(job.name),
        "namespace": job.namespace,
        "labels": {
            labels.ORIGINATED_FROM_NAME: job.name,
            labels.ORIGINATED_FROM_KIND: job.KIND,
            labels.NODE_TYPE: labels.HEAD,
            labels.IDENTIFIER: names.identifier(job.name, labels.HEAD),
        },
        "ownerReferences": [owner_reference(job.raw)],
    }
    return obj
