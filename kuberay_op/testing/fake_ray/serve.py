"""Serve of a fake cluster. Applications live by the clock, as jobs do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kuberay_op.clock import Clock
from kuberay_op.testing.fake_ray.http import Reply, json_reply, text_reply

DEPLOYMENT_STATUS = {"DEPLOYING": "UPDATING", "RUNNING": "HEALTHY", "DELETING": "UPDATING"}


@dataclass(frozen=True, slots=True)
class AppScript:
    """How deploying goes: so many seconds ``DEPLOYING`` (None: until told), then the outcome."""

    deploying: float | None = 0.0
    outcome: str = "RUNNING"
    message: str = ""
    deleting: float = 0.0


@dataclass(slots=True)
class FakeApp:
    """A deployed application. ``forced`` is a status that a test gave it."""

    config: dict[str, Any]
    script: AppScript
    deployed: float
    forced: tuple[str, str] | None = None
    deleted: float | None = None

    def state(self, now: float) -> tuple[str, str] | None:
        """Status and message; None once it is gone."""
        if self.deleted is not None:
            return ("DELETING", "") if now < self.deleted + self.script.deleting else None
        if self.forced is not None:
            return self.forced
        if self.script.deploying is None or now < self.deployed + self.script.deploying:
            return "DEPLOYING", ""
        return self.script.outcome, self.script.message

    def to_json(self, name: str, state: tuple[str, str]) -> dict[str, Any]:
        """As Serve describes an application."""
        status, message = state
        deployments = [item["name"] for item in self.config.get("deployments") or ()] or ["Ingress"]
        return {
            "name": name,
            "route_prefix": self.config.get("route_prefix", "/"),
            "docs_path": None,
            "status": status,
            "message": message,
            "last_deployed_time_s": self.deployed,
            "deployed_app_config": self.config,
            "deployments": {
                item: {"name": item, "status": DEPLOYMENT_STATUS.get(status, "UNHEALTHY"), "message": message}
                for item in deployments
            },
        }


@dataclass(slots=True)
class FakeServe:
    """All applications of one cluster.

    ``script`` is for deployments to come; ``scripts`` by application name go before it. ``proxy`` is the
    status code of the Serve proxy's health: 200, or 503 while it starts or drains.
    """

    clock: Clock
    script: AppScript = field(default_factory=AppScript)
    scripts: dict[str, AppScript] = field(default_factory=dict)
    apps: dict[str, FakeApp] = field(default_factory=dict)
    target_capacity: float | None = None
    proxy: int = 200
    installed: bool = True
    puts: int = 0

    def force(self, name: str, status: str, message: str = "") -> None:
        """Give an application this status until it is deployed again."""
        self.apps[name].forced = (status, message)

    def put(self, body: Any) -> Reply:
        """Take a configuration: what changed is deployed anew, what is missing is deleted."""
        if not self.installed:
            return text_reply(501, "Serve dependencies are not installed.")
        complaint = _complaint(body)
        if complaint:
            return text_reply(400, complaint)
        self.puts += 1
        now = self.clock.monotonic()
        resized = body.get("target_capacity") != self.target_capacity
        self.target_capacity = body.get("target_capacity")
        wanted = {app["name"]: app for app in body["applications"]}
        for name, app in self.apps.items():
            if name not in wanted and app.deleted is None:
                app.deleted = now
        for name, config in wanted.items():
            known = self.apps.get(name)
            if known is None or known.deleted is not None or known.config != config or resized:
                self.apps[name] = FakeApp(config, self.scripts.get(name, self.script), now)
        return Reply(200)

    def details(self) -> Reply:
        """All applications there are."""
        if not self.installed:
            return text_reply(501, "Serve dependencies are not installed.")
        now = self.clock.monotonic()
        states = {name: app.state(now) for name, app in self.apps.items()}
        self.apps = {name: app for name, app in self.apps.items() if states[name] is not None}
        return json_reply(
            {
                "controller_info": {},
                "proxy_location": "EveryNode",
                "proxies": {},
                "deploy_mode": "MULTI_APP",
                "applications": {
                    name: self.apps[name].to_json(name, state)
                    for name, state in states.items()
                    if state is not None
                },
                "target_capacity": self.target_capacity,
            }
        )

    def health(self) -> Reply:
        """Health of the proxy."""
        return text_reply(self.proxy, "success" if self.proxy == 200 else "This proxy takes no requests.")


def _complaint(body: Any) -> str:
    """What Serve would dislike about a configuration; empty when nothing."""
    if not isinstance(body, dict) or not isinstance(body.get("applications"), list):
        return _field_required("applications", body)
    for index, app in enumerate(body["applications"]):
        for name in ("name", "import_path"):
            if not isinstance(app, dict) or not isinstance(app.get(name), str):
                return _field_required(f"applications.{index}.{name}", app)
    return ""


def _field_required(where: str, value: Any) -> str:
    """In the form of the checks that Serve uses, which quote what was sent."""
    return (
        f"1 validation error for ServeDeploySchema\n{where}\n  Field required "
        f"[type=missing, input_value={value!r}, input_type={type(value).__name__}]"
    )
