"""The API of Ray on Kubernetes: typed views of the four kinds, defaults, schemas, validation, names.

Pure and synchronous: nothing here talks to anything. See :mod:`kuberay_op.api.view` for how views work.
"""

from kuberay_op.api.meta import Condition, CustomResource, Metadata
from kuberay_op.api.problems import Problem
from kuberay_op.api.raycluster import RayCluster, RayClusterSpec, RayClusterStatus
from kuberay_op.api.raycronjob import RayCronJob
from kuberay_op.api.rayjob import RayJob, RayJobSpec
from kuberay_op.api.rayservice import RayService, RayServiceSpec
from kuberay_op.api.view import View

__all__ = [
    "Condition",
    "CustomResource",
    "Metadata",
    "Problem",
    "RayCluster",
    "RayClusterSpec",
    "RayClusterStatus",
    "RayCronJob",
    "RayJob",
    "RayJobSpec",
    "RayService",
    "RayServiceSpec",
    "View",
]
