"""``kuberay-op run``: the operator itself."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import click

from kuberay_op import __version__, logs
from kuberay_op.clock import SystemClock
from kuberay_op.config import FLAGS, SETTINGS, Config, Flag, Kind, bind_address, resolve
from kuberay_op.config.goflags import parse
from kuberay_op.controllers.raycluster.reconciler import RayClusterReconciler
from kuberay_op.kube.client import Client
from kuberay_op.metrics import Metrics
from kuberay_op.runtime.debug import Debug
from kuberay_op.runtime.leader import Leader, LeaseTimes, new_identity
from kuberay_op.runtime.manager import Manager
from kuberay_op.runtime.server import health_routes, metrics_routes, serving
from kuberay_op.runtime.shutdown import stop_on_signals

#: The Lease of the reference, so that it and we exclude each other.
LEASE: Final = "ray-operator-leader"

#: Flags of this command alone, with what they do and the field of ``LeaseTimes`` they fill.
LEASE_FLAGS: Final[Mapping[str, tuple[str, str]]] = {
    "leader-election-lease-seconds": (
        "lease",
        "Seconds after which a standby takes over from a silent leader.",
    ),
    "leader-election-renew-seconds": ("renew", "Seconds without renewal after which a leader stops working."),
    "leader-election-retry-seconds": ("retry", "Seconds between two attempts to get or renew the lease."),
}
EXTRA: Final = tuple(Flag(name, Kind.FLOAT) for name in LEASE_FLAGS)

_log = logs.get_logger("setup")


@click.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(arguments: tuple[str, ...]) -> None:
    """Run the operator until it gets SIGTERM or SIGINT.

    Takes the flags of KubeRay's operator, in Go's syntax; --help lists them.
    """
    if parse((*FLAGS, *EXTRA), arguments).help:
        click.echo(usage())
        return
    resolved = resolve(arguments, os.environ, lambda path: Path(path).read_text("utf-8"), extra=EXTRA)
    times = LeaseTimes(**{LEASE_FLAGS[flag][0]: seconds for flag, seconds in resolved.extra.items()})
    with logs.setup(resolved.config.log_settings()), asyncio.Runner(loop_factory=_loop_factory()) as runner:
        for warning in resolved.warnings:
            _log.warning(warning)
        runner.run(operate(resolved.config, times))


def usage() -> str:
    """The text of ``--help``."""
    lines = [
        "Usage: kuberay-op run [flags]",
        "",
        "Run the operator until it gets SIGTERM or SIGINT; a second signal ends it at once.",
        "Flags are written as in Go: -x, --x, --x=v; a boolean needs the = to be false.",
        "",
        "Exit codes: 0 after a signal, 1 when it cannot start or work.",
        "",
        "Flags:",
    ]
    for item in SETTINGS:
        if item.flag is not None and item.deprecated is None:
            default = "" if item.default in ("", (), None) else f" (default {_shown(item.default)})"
            lines += [f"  --{item.flag}", f"        {item.doc}{default}"]
    times = LeaseTimes()
    for flag, (field, text) in LEASE_FLAGS.items():
        lines += [f"  --{flag}", f"        {text} (default {getattr(times, field):g})"]
    return "\n".join(lines)


async def operate(config: Config, times: LeaseTimes) -> None:
    """Put the operator together from its configuration and run it until it is told to stop."""
    clock = SystemClock()
    rng = random.Random()  # noqa: S311 (for jitter, not for secrets)
    metrics = Metrics()
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
            election = await connect(qps=0)
            leader = Leader(
                election,
                name=LEASE,
                namespace=config.leader_election_namespace or election.namespace,
                identity=new_identity(rng),
                clock=clock,
                rng=rng,
                times=times,
                metrics=metrics,
            )
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
        RayClusterReconciler(manager, clock=clock, requeue=config.raycluster_requeue_seconds)

        debug = Debug(manager, clock=clock).routes() if config.enable_debug_endpoints else []
        servers = (
            (config.probe_addr, [*health_routes(manager.health), *debug], "--health-probe-bind-address"),
            (config.metrics_addr, metrics_routes(metrics), "--metrics-addr"),
        )
        for text, routes, option in servers:
            address = bind_address(text)
            if address is not None:
                await stack.enter_async_context(serving(address, routes, option=option))
        _log.info("feature gates", gates=config.gates.as_dict())
        _log.info(
            "starting kuberay-op",
            version=__version__,
            server=client.server,
            namespaces=list(config.watch_namespaces) or "all",
            controllers=list(manager.wirings),
            concurrency=config.reconcile_concurrency,
            leaderElection=f"{leader.namespace}/{leader.name}" if leader else "off",
            health=config.probe_addr,
            metrics=config.metrics_addr,
        )
        with stop_on_signals(stop):
            await manager.run()
    _log.info("stopped")


def _shown(default: object) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # late: not to be had on every system
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
