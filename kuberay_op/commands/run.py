"""``kuberay-op run``: the operator itself."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, Final

import click

from kuberay_op import logs
from kuberay_op.clock import Clock, SystemClock
from kuberay_op.commands.flags import FlagsCommand, effective
from kuberay_op.commands.summary import Summary
from kuberay_op.config import Config, Resolved, bind_address
from kuberay_op.controllers.all import add_controllers
from kuberay_op.controllers.leftovers import leftovers
from kuberay_op.controllers.plugins import plugins_of
from kuberay_op.kube.client import Client
from kuberay_op.kube.discovery import Discovery
from kuberay_op.metrics import Metrics
from kuberay_op.runtime import memory
from kuberay_op.runtime.debug import Debug
from kuberay_op.runtime.leader import Leader, LeaseTimes, new_identity
from kuberay_op.runtime.manager import Manager
from kuberay_op.runtime.server import health_routes, metrics_routes, serving
from kuberay_op.runtime.shutdown import stop_on_signals
from kuberay_op.webhook.service import webhook_of

#: The Lease of the reference, so that it and we exclude each other.
LEASE: Final = "ray-operator-leader"

_log = logs.get_logger("setup")


@click.command(cls=FlagsCommand)
def run(argv: tuple[str, ...]) -> None:
    """Run the operator until it gets SIGTERM or SIGINT; a second signal ends it at once.

    Takes the flags of KubeRay's operator, in Go's syntax. Exit codes: 0 after a signal, 1 when it cannot
    start or work.
    """
    memory.tune()
    resolved = effective(argv, os.environ)
    config = resolved.config
    with logs.setup(config.log_settings()), asyncio.Runner(loop_factory=_loop_factory()) as runner:
        for warning in resolved.warnings:
            _log.warning(warning)
        runner.run(operate(resolved))


async def operate(resolved: Resolved) -> None:
    """Put the operator together from its configuration and run it until it is told to stop."""
    config = resolved.config
    clock = SystemClock()
    rng = random.Random()  # noqa: S311 (for jitter, not for secrets)
    metrics = Metrics()
    plugins = plugins_of(config, metrics)
    stop = asyncio.Event()
    async with AsyncExitStack() as stack:

        async def connect(**options: Any) -> Client:
            client = await Client.connect(
                config.kubeconfig or None, metrics=metrics, clock=clock, rng=rng, **options
            )
            return await stack.enter_async_context(client)

        leader = None
        if config.enable_leader_election:
            # A connection of its own: the lease must be renewed however busy the other one is.
            leader = _leader(config, await connect(qps=0), clock=clock, rng=rng, metrics=metrics)
        client = await connect(
            qps=config.qps if config.qps < float("inf") else 0,
            burst=config.burst,
            fence=leader.fence if leader else None,
        )
        manager = Manager(
            client,
            clock=clock,
            rng=rng,
            metrics=metrics,
            leader=leader,
            namespaces=config.watch_namespaces,
            concurrency=config.reconcile_concurrency,
            stop=stop,
        )
        manager.heartbeat.dump = True
        manager.on_filled = memory.settle
        await add_controllers(
            manager,
            hooks=plugins.hooks,
            gates=config.gates,
            clock=clock,
            metrics=metrics,
            requeue=config.raycluster_requeue_seconds,
            config=config,
        )

        debug = Debug(manager, clock=clock).routes() if config.enable_debug_endpoints else []
        servers = (
            (config.probe_addr, [*health_routes(manager.health), *debug], "--health-probe-bind-address"),
            (config.metrics_addr, metrics_routes(metrics), "--metrics-addr"),
        )
        for text, routes, option in servers:
            address = bind_address(text)
            if address is not None:
                await stack.enter_async_context(serving(address, routes, option=option))
        said = "off"
        address = bind_address(config.webhook_addr) if config.enable_webhooks else None
        if address is not None:
            # A connection of its own: a standby serves as well, and only a leader may use the other one.
            webhook, said = webhook_of(config, plugins.hooks, await connect(qps=0), clock)
            manager.health.ready["webhook"] = webhook.check
            await stack.enter_async_context(webhook.running(address, manager.supervisor))
        _say(
            Summary(
                resolved=resolved,
                server=client.server,
                controllers=list(manager.wirings),
                plugins=plugins.chosen.reasons,
                leader_election=f"{leader.namespace}/{leader.name}" if leader else "off",
                webhook=said,
            )
        )
        for left in await leftovers(client, Discovery(client, clock), plugins.off, config.watch_namespaces):
            _log.warning(left)
        with stop_on_signals(stop):
            await manager.run()
    _log.info("stopped")


def _leader(config: Config, client: Client, *, clock: Clock, rng: random.Random, metrics: Metrics) -> Leader:
    return Leader(
        client,
        name=LEASE,
        namespace=config.leader_election_namespace or client.namespace,
        identity=new_identity(rng),
        clock=clock,
        rng=rng,
        times=LeaseTimes(
            lease=config.leader_election_lease_seconds,
            renew=config.leader_election_renew_seconds,
            retry=config.leader_election_retry_seconds,
        ),
        metrics=metrics,
    )


def _say(summary: Summary) -> None:
    config = summary.resolved.config
    _log.info("feature gates", gates=str(config.gates))
    if config.log_stdout_encoder == "console":
        _log.info(f"starting {summary.text()}")
    else:
        _log.info("starting kuberay-op", **summary.fields())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # late: not to be had on every system
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
