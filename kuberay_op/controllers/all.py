"""Every controller on one manager: what the operator consists of, whoever runs it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from kuberay_op.api.predicates import on_openshift
from kuberay_op.clock import Clock
from kuberay_op.config import Config
from kuberay_op.controllers.mtls import MtlsController
from kuberay_op.controllers.networkpolicy import NetworkPolicyController
from kuberay_op.controllers.plugins import find_kinds
from kuberay_op.controllers.raycluster.reconciler import RayClusterReconciler
from kuberay_op.controllers.raycronjob.reconciler import RayCronJobReconciler
from kuberay_op.controllers.rayjob.reconciler import RayJobReconciler
from kuberay_op.controllers.resources import CERTIFICATES, RAY_JOBS, ROUTES
from kuberay_op.features import Gates
from kuberay_op.hooks.typed import Hooks
from kuberay_op.kube.client import Client
from kuberay_op.kube.discovery import Discovery
from kuberay_op.kube.errors import Forbidden, NotFound
from kuberay_op.logs import get_logger
from kuberay_op.metrics import Metrics
from kuberay_op.ray.client import Connector, Transport
from kuberay_op.ray.direct import DirectTransport
from kuberay_op.ray.limits import Gates as Breakers
from kuberay_op.ray.metrics import PublishedMetrics
from kuberay_op.ray.proxied import ProxiedTransport
from kuberay_op.runtime.manager import Manager

_log = get_logger("setup")


async def add_controllers(
    manager: Manager,
    *,
    hooks: Hooks,
    gates: Gates,
    clock: Clock,
    metrics: Metrics,
    requeue: float,
    config: Config | None = None,
    ray: Transport | None = None,
) -> None:
    """Declare the controllers, let plugins register and start, and have them told when all ends.

    ``gates`` count over those of ``config``, which is the default one when not given. ``ray`` is another way
    to Ray than the network.
    """
    await hooks.dispatcher.in_thread(lambda: hooks.register_metrics(metrics.registry))
    discovery = Discovery(manager.client, clock)
    settings = replace(config or Config(), gates=gates)
    kinds = await find_kinds(hooks, discovery)
    cert_manager = await _has_cert_manager(discovery) if gates.enabled("RayClusterMTLS") else None
    RayClusterReconciler(
        manager,
        clock=clock,
        requeue=requeue,
        hooks=hooks,
        config=settings,
        events=manager.events,
        metrics=metrics,
        rng=Random(),  # noqa: S311 (for names and pauses, not for secrets)
        kinds=kinds,
        routes=not settings.use_ingress_on_openshift and await _has_routes(discovery),
        cert_manager=cert_manager,
    )
    if await _serves_jobs(manager.client):
        direct = ray or DirectTransport()
        RayJobReconciler(
            manager,
            clock=clock,
            hooks=hooks,
            config=settings,
            events=manager.events,
            metrics=metrics,
            rng=Random(),  # noqa: S311 (for names and pauses, not for secrets)
            kinds=kinds,
            connector=_connector(manager, direct, clock, metrics),
        )
        if isinstance(direct, DirectTransport):
            manager.on_stop(direct.close)
    if gates.enabled("RayClusterNetworkPolicy"):
        NetworkPolicyController(manager, gates=gates, shared=kinds.served)
    if cert_manager:
        MtlsController(manager, config=settings, clock=clock, shared=kinds.served)
    if gates.enabled("RayCronJob"):
        RayCronJobReconciler(
            manager,
            clock=clock,
            hooks=hooks,
            config=settings,
            events=manager.events,
            metrics=metrics,
            rng=Random(),  # noqa: S311 (for pauses, not for secrets)
            kinds=kinds,
        )
    await hooks.started()
    manager.on_stop(hooks.stopping)


async def _serves_jobs(client: Client) -> bool:
    """Whether there are RayJobs to run. Not by discovery, which learns of a new CRD seconds later."""
    try:
        await client.request("GET", RAY_JOBS.path(), params={"limit": "1"})
    except NotFound:
        _log.warning(
            "the cluster does not serve RayJobs of ray.io/v1; they are run when the CRD is installed and the "
            "operator is started again"
        )
        return False
    except Forbidden:
        pass  # in all namespaces; those that are watched are another matter
    return True


def _connector(manager: Manager, direct: Transport, clock: Clock, metrics: Metrics) -> Connector:
    """The ways to all Ray clusters: one pool of connections, a breaker for each."""
    counted = PublishedMetrics(metrics)
    return Connector(
        direct=direct,
        proxied=ProxiedTransport(manager.client),
        gates=Breakers(clock=clock, rng=Random(), metrics=counted),  # noqa: S311 (for pauses)
        clock=clock,
        metrics=counted,
    )


async def _has_cert_manager(discovery: Discovery) -> bool:
    found = await discovery.serves(CERTIFICATES)
    if not found:
        _log.warning(
            "mutual TLS is on, but the cluster does not serve cert-manager.io/v1; clusters with tlsOptions "
            "are refused until it is installed and the operator is started again"
        )
    return found


async def _has_routes(discovery: Discovery) -> bool:
    return on_openshift(await discovery.groups()) and await discovery.serves(ROUTES)
