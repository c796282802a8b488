"""Ray Serve: its applications, through the dashboard, and the health of its proxy on a Pod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kuberay_op.ray import urls
from kuberay_op.ray.answers import Call, Fields, decode
from kuberay_op.ray.client import RayClient
from kuberay_op.ray.errors import RayError

#: An application that takes requests.
RUNNING: Final = "RUNNING"
#: Name of an application that has none.
DEFAULT_NAME: Final = "default"


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment of an application: ``UPDATING``, ``HEALTHY``, ``UNHEALTHY`` or what Ray invents next."""

    status: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Application:
    """A Serve application. ``config`` is what was submitted for it, if Ray tells."""

    status: str
    message: str = ""
    route_prefix: str = ""
    deployments: Mapping[str, Deployment] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ServeDetails:
    """All applications by name. Two are equal when nothing changed."""

    applications: Mapping[str, Application] = field(default_factory=dict)
    target_capacity: float | None = None

    @property
    def ready(self) -> bool:
        """Is there at least one application, and do all of them take requests?"""
        return bool(self.applications) and all(app.status == RUNNING for app in self.applications.values())


@dataclass(frozen=True, slots=True)
class ProxyHealth:
    """Does the Serve proxy of a Pod take requests, and if not, why."""

    healthy: bool
    reason: str = ""


class Serve:
    """The Serve instance of one cluster."""

    def __init__(self, client: RayClient) -> None:
        self._client = client

    async def details(self) -> ServeDetails:
        """State of all applications that came from a configuration; none when Serve does not run."""
        path = f"{urls.APPLICATIONS}?api_type=declarative"
        call = Call("serve_details", "read Serve applications", "GET", path)
        return serve_details(call, decode(call, await self._client.ask(call)))

    async def deploy(self, config: Mapping[str, Any]) -> None:
        """Submit the configuration of all applications; those not in it are removed. Ray answers at once.

        Sending the same again changes nothing.
        """
        await self._client.ask(
            Call("serve_deploy", "deploy Serve applications", "PUT", urls.APPLICATIONS, body=dict(config))
        )


async def proxy_health(client: RayClient | None) -> ProxyHealth:
    """Health of a Serve proxy; the client's endpoint is the Pod's serve port, None while it has no address.

    Never raises: only 200 is healthy, and everything else is a reason for "no".
    """
    if client is None:
        return ProxyHealth(healthy=False, reason="the Pod has no address yet")
    try:
        status = await client.probe(urls.PROXY_HEALTH)
    except RayError as error:
        return ProxyHealth(healthy=False, reason=str(error))
    return (
        ProxyHealth(healthy=True) if status == 200 else ProxyHealth(healthy=False, reason=f"status {status}")
    )


def serve_details(call: Call, value: Any) -> ServeDetails:
    """Applications from Ray's JSON; unknown fields are ignored, unknown states kept as they are."""
    answer = Fields(call, value)
    return ServeDetails(
        applications={
            name or DEFAULT_NAME: _application(call, name, item)
            for name, item in answer.object("applications").items()
        },
        target_capacity=answer.number("target_capacity"),
    )


def _application(call: Call, name: str, value: Any) -> Application:
    answer = Fields(call, value, where=f"application {name!r}")
    return Application(
        status=answer.text("status"),
        message=answer.text("message"),
        route_prefix=answer.text("route_prefix"),
        deployments={
            deployment: _deployment(call, f"deployment {deployment!r} of {name!r}", item)
            for deployment, item in answer.object("deployments").items()
        },
        config=answer.object("deployed_app_config"),
    )


def _deployment(call: Call, where: str, value: Any) -> Deployment:
    answer = Fields(call, value, where=where)
    return Deployment(status=answer.text("status"), message=answer.text("message"))
