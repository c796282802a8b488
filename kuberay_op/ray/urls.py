"""Where Ray is found: directly, or through the API server's proxy. Pure text work."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from kuberay_op.api import ports, probes
from kuberay_op.ray.errors import BadRequest

#: The job API; Ray insists on the trailing slash.
JOBS: Final = "/api/jobs/"
#: Serve's applications, all at once; Ray insists on the trailing slash.
APPLICATIONS: Final = "/api/serve/applications/"
#: Version of Ray and of its job API.
VERSION: Final = "/api/version"
#: Health of the control store.
GCS_HEALTH: Final = f"/{probes.GCS_PATH}"
#: Health of a Serve proxy.
PROXY_HEALTH: Final = f"/{probes.SERVE_PATH}"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address that paths are added to: a URL, or a path of the API server when ``proxied``."""

    base: str
    proxied: bool = False

    def url(self, path: str) -> str:
        """The address of ``path``, which starts with a slash."""
        return self.base + path

    def __str__(self) -> str:
        return f"{self.base} (through the API server)" if self.proxied else self.base


def service_address(service: str, namespace: str, port: int, *, domain: str) -> str:
    """``host:port`` of a Service inside the cluster, as ``status.dashboardURL`` has it (no scheme)."""
    return f"{service}.{namespace}.svc.{domain}:{port}"


def direct(address: str) -> Endpoint:
    """Ray at ``host:port``, by plain HTTP; an address that has a scheme keeps it."""
    base = address if "://" in address else f"http://{address}"
    return Endpoint(base.rstrip("/"))


def proxied_service(namespace: str, service: str, port: str = ports.DASHBOARD) -> Endpoint:
    """A Service's named port through the API server: the dashboard of the cluster, unless told otherwise."""
    return Endpoint(f"/api/v1/namespaces/{namespace}/services/{service}:{port}/proxy", proxied=True)


def direct_pod(ip: str, port: int) -> Endpoint | None:
    """A Pod's port; None while the Pod has no address, because an empty host would be the operator itself."""
    if not ip:
        return None
    host = f"[{ip}]" if ipaddress.ip_address(ip).version == 6 else ip
    return Endpoint(f"http://{host}:{port}")


def proxied_pod(namespace: str, pod: str, port: int) -> Endpoint:
    """A Pod's port through the API server."""
    return Endpoint(f"/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy", proxied=True)


def job(job_id: str, action: str = "") -> str:
    """Path of one job, or of ``action`` on it (``stop``, ``logs``).

    Ids come from users: whatever is in them stays one segment of the path. The three that cannot be one are
    refused here, because ``/api/jobs/`` would list all jobs instead.
    """
    if job_id in {"", ".", ".."}:
        raise BadRequest(
            f"job id {job_id!r} cannot be used: Ray's API has no address for it; choose another id"
        )
    return f"{JOBS}{quote(job_id, safe='')}" + (f"/{action}" if action else "")
