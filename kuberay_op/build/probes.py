"""Probes of the Ray container: whether Ray on this node is alive, and whether it is ready."""

from __future__ import annotations

import re
from typing import Final

from kuberay_op.api import ports
from kuberay_op.api import probes as numbers
from kuberay_op.api.versions import parse_version
from kuberay_op.api.view import Json
from kuberay_op.build.draft import Draft

#: From here on one address answers for the whole node.
_ONE_ADDRESS_SINCE: Final = parse_version("2.53.0")

_PORT: Final = re.compile(r"[+-]?[0-9]+")
_MAX_INT32: Final = 2**31 - 1

#: Seconds that wget waits. Longer than some of the probes may take as a whole; clients see these commands.
_RAYLET_SECONDS: Final = 2
_OTHER_SECONDS: Final = 10


def add_probes(draft: Draft) -> None:
    """Give the Ray container the probes it lacks, unless the operator is told not to."""
    if not draft.config.enable_probes_injection:
        return
    if draft.ray.get("livenessProbe") is None:
        draft.ray["livenessProbe"] = _liveness(draft)
    if draft.ray.get("readinessProbe") is None:
        draft.ray["readinessProbe"] = _readiness(draft)


def dashboard_port(params: dict[str, str]) -> int:
    """Port of the dashboard, from the flags of ``ray start``."""
    return _port(params, "dashboard-port", ports.DEFAULTS[ports.DASHBOARD])


def _liveness(draft: Draft) -> Json:
    return {
        "initialDelaySeconds": numbers.LIVENESS_INITIAL_DELAY,
        "timeoutSeconds": numbers.HEAD_LIVENESS_TIMEOUT if draft.is_head else numbers.LIVENESS_TIMEOUT,
        "periodSeconds": numbers.LIVENESS_PERIOD,
        "successThreshold": numbers.LIVENESS_SUCCESSES,
        "failureThreshold": numbers.LIVENESS_FAILURES,
        **_check(draft),
    }


def _readiness(draft: Draft) -> Json:
    # The head of a RayService is asked about Serve by the operator itself, workers by their probe.
    serves = draft.made_for == "RayService" and not draft.is_head
    failures = numbers.SERVE_READINESS_FAILURES if serves else numbers.READINESS_FAILURES
    return {
        "initialDelaySeconds": numbers.READINESS_INITIAL_DELAY,
        "timeoutSeconds": numbers.HEAD_READINESS_TIMEOUT if draft.is_head else numbers.READINESS_TIMEOUT,
        "periodSeconds": numbers.READINESS_PERIOD,
        "successThreshold": numbers.READINESS_SUCCESSES,
        "failureThreshold": failures,
        **(_script(_raylet(draft), _serve(draft)) if serves else _check(draft)),
    }


def _check(draft: Draft) -> Json:
    """What both probes ask when nothing is served."""
    if _has_one_address(draft.cluster.spec.ray_version):
        return {"httpGet": {"path": numbers.NODE_PATH, "port": _agent_port(draft)}}
    return _script(_raylet(draft), _gcs(draft)) if draft.is_head else _script(_raylet(draft))


def _has_one_address(version: str) -> bool:
    try:
        return parse_version(version) >= _ONE_ADDRESS_SINCE
    except ValueError:
        return False


def _script(*commands: str) -> Json:
    return {"exec": {"command": ["bash", "-c", " && ".join(commands)]}}


def _raylet(draft: Draft) -> str:
    return _ask(_RAYLET_SECONDS, _agent_port(draft), numbers.RAYLET_PATH)


def _gcs(draft: Draft) -> str:
    return _ask(_OTHER_SECONDS, dashboard_port(draft.params), numbers.GCS_PATH)


def _serve(draft: Draft) -> str:
    named = (p["containerPort"] for p in draft.ray.get("ports") or () if p.get("name") == ports.SERVE)
    return _ask(_OTHER_SECONDS, next(named, ports.DEFAULTS[ports.SERVE]), numbers.SERVE_PATH)


def _ask(seconds: int, port: int, path: str) -> str:
    return f"wget --tries 1 -T {seconds} -q -O- http://localhost:{port}/{path} | grep success"


def _agent_port(draft: Draft) -> int:
    return _port(draft.params, "dashboard-agent-listen-port", ports.DASHBOARD_AGENT)


def _port(params: dict[str, str], flag: str, default: int) -> int:
    """The number a flag has, unless it has none or one that is too large to be read."""
    text = params.get(flag, "")
    number = int(text) if len(text) <= 20 and _PORT.fullmatch(text) else _MAX_INT32 + 1
    return number if -_MAX_INT32 - 1 <= number <= _MAX_INT32 else default
