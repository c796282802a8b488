"""Port names and numbers of Ray Pods and Services."""

from __future__ import annotations

from typing import Final

#: Ray Client.
CLIENT: Final = "client"
#: The global control store; workers join through it.
GCS: Final = "gcs-server"
#: The dashboard and the job API.
DASHBOARD: Final = "dashboard"
#: Prometheus metrics of Ray.
METRICS: Final = "metrics"
#: Serve's HTTP proxy.
SERVE: Final = "serve"
#: Listener of the Gateway in incremental upgrades.
GATEWAY_LISTENER: Final = "http"

#: Number of each named port when the user names none.
DEFAULTS: Final[dict[str, int]] = {CLIENT: 10001, GCS: 6379, DASHBOARD: 8265, METRICS: 8080, SERVE: 8000}

#: Where the dashboard agent of each node answers health checks; the port has no name.
DASHBOARD_AGENT: Final = 52365
#: Number of the Gateway's listener.
GATEWAY_LISTENER_PORT: Final = 80
#: appProtocol of every port of the Services we make.
APP_PROTOCOL: Final = "tcp"
#: Where a container reaches itself.
LOOPBACK: Final = "127.0.0.1"
