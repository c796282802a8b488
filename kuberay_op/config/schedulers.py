"""Which batch scheduler the configuration asks for, checked before anything starts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kuberay_op.config.model import Config
from kuberay_op.errors import Misconfigured
from kuberay_op.hints import nearest

#: The names the reference knows; plugins add to them.
BATCH_SCHEDULERS: Final = ("kai-scheduler", "scheduler-plugins", "volcano", "yunikorn")

#: What the old switch stands for.
LEGACY: Final = "volcano"

#: The scheduler of the gate ``KubernetesWAS``; it cannot be chosen by name.
WORKLOAD_AWARE: Final = "kubernetes-was-v1alpha2"


def scheduler_name(name: str, *, legacy: bool, workload_aware: bool) -> str:
    """What the three ways to ask for a scheduler come to, "" for none; they exclude each other."""
    if workload_aware:
        if name or legacy:
            raise Misconfigured(
                "the feature gate KubernetesWAS excludes batch-scheduler and enable-batch-scheduler; "
                "turn off the gate or leave out both"
            )
        return WORKLOAD_AWARE
    if name and legacy:
        raise Misconfigured(
            f"batch-scheduler ({name!r}) and enable-batch-scheduler are both set; use batch-scheduler alone"
        )
    return LEGACY if legacy else name


def batch_scheduler(config: Config, known: Iterable[str] = BATCH_SCHEDULERS) -> str | None:
    """The name of the scheduler to use, or None for none.

    Raises ``Misconfigured`` when the settings contradict each other or name one that is not ``known``.
    """
    names = sorted(set(known))
    name = scheduler_name(
        config.batch_scheduler,
        legacy=config.enable_batch_scheduler,
        workload_aware=config.gates.enabled("KubernetesWAS"),
    )
    if name and name == config.batch_scheduler and name not in names:
        near = nearest(name, names)
        hint = f"; did you mean {near}?" if near else ""
        raise Misconfigured(f"batch-scheduler is {name!r}; allowed is one of {', '.join(names)}{hint}")
    return name or None
