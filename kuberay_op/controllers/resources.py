"""Our own kinds, and those of other projects that we make, as resources of the API server."""

from __future__ import annotations

from typing import Final

from kuberay_op.api import labels
from kuberay_op.kube.resource import Resource

RAY_CLUSTERS: Final = Resource("ray.io", "v1", "rayclusters", "RayCluster")
RAY_JOBS: Final = Resource("ray.io", "v1", "rayjobs", "RayJob")
RAY_CRON_JOBS: Final = Resource("ray.io", "v1", "raycronjobs", "RayCronJob")
ROUTES: Final = Resource("route.openshift.io", "v1", "routes", "Route")
ISSUERS: Final = Resource("cert-manager.io", "v1", "issuers", "Issuer")
CERTIFICATES: Final = Resource("cert-manager.io", "v1", "certificates", "Certificate")

#: Which Jobs concern us, whoever of us made them; there may be very many others.
OUR_JOBS: Final = f"{labels.CREATED_BY}={labels.COMPONENT}"
