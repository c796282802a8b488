"""Every controller on one manager: what the operator consists of, whoever runs it."""

from __future__ import annotations

from kuberay_op.clock import Clock
from kuberay_op.controllers.plugins import find_kinds
from kuberay_op.controllers.raycluster.reconciler import RayClusterReconciler
from kuberay_op.features import Gates
from kuberay_op.hooks.typed import Hooks
from kuberay_op.kube.discovery import Discovery
from kuberay_op.metrics import Metrics
from kuberay_op.runtime.manager import Manager


async def add_controllers(
    manager: Manager, *, hooks: Hooks, gates: Gates, clock: Clock, metrics: Metrics, requeue: float
) -> None:
    """Declare the controllers, let plugins register and start, and have them told when all ends."""
    await hooks.dispatcher.in_thread(lambda: hooks.register_metrics(metrics.registry))
    kinds = await find_kinds(hooks, Discovery(manager.client, clock))
    RayClusterReconciler(
        manager,
        clock=clock,
        requeue=requeue,
        hooks=hooks,
        gates=gates,
        events=manager.events,
        kinds=kinds,
    )
    await hooks.started()
    manager.on_stop(hooks.stopping)
