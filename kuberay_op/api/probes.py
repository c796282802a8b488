"""Numbers and paths of the probes we add to Ray containers, and of the operator's own health requests."""

from __future__ import annotations

from typing import Final

# --- readiness

#: Seconds before the first readiness probe.
READINESS_INITIAL_DELAY: Final = 10
#: Seconds a readiness probe of a worker may take.
READINESS_TIMEOUT: Final = 2
#: Seconds a readiness probe of the head may take.
HEAD_READINESS_TIMEOUT: Final = 5
#: Seconds between readiness probes.
READINESS_PERIOD: Final = 5
#: Good answers in a row that make a Pod ready.
READINESS_SUCCESSES: Final = 1
#: Bad answers in a row that make a Pod unready.
READINESS_FAILURES: Final = 10
#: The same for workers that serve: they must leave the Service at once.
SERVE_READINESS_FAILURES: Final = 1

# --- liveness

#: Seconds before the first liveness probe.
LIVENESS_INITIAL_DELAY: Final = 30
#: Seconds a liveness probe of a worker may take.
LIVENESS_TIMEOUT: Final = 2
#: Seconds a liveness probe of the head may take.
HEAD_LIVENESS_TIMEOUT: Final = 5
#: Seconds between liveness probes.
LIVENESS_PERIOD: Final = 5
#: Good answers in a row that make a container alive.
LIVENESS_SUCCESSES: Final = 1
#: Bad answers in a row that restart a container.
LIVENESS_FAILURES: Final = 120

# --- paths

#: The raylet's health, on the dashboard agent's port.
RAYLET_PATH: Final = "api/local_raylet_healthz"
#: The control store's health, on the dashboard's port.
GCS_PATH: Final = "api/gcs_healthz"
#: The Serve proxy's health, on the serve port.
SERVE_PATH: Final = "-/healthz"
#: Health of a whole node.
NODE_PATH: Final = "/api/healthz"

# --- HTTP requests of the operator

#: Seconds the control store's health answer may take.
GCS_TIMEOUT: Final = 10
#: Seconds a request to Ray may take when it goes directly.
CLIENT_TIMEOUT: Final = 2
#: Seconds a request to Ray may take through the API server's proxy.
PROXY_CLIENT_TIMEOUT: Final = 10
