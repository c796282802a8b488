"""Our own kinds as resources of the API server."""

from __future__ import annotations

from typing import Final

from kuberay_op.kube.resource import Resource

RAY_CLUSTERS: Final = Resource("ray.io", "v1", "rayclusters", "RayCluster")
