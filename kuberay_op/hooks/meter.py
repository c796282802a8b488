"""Counts and times plugins' calls in the operator's metrics."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

from kuberay_op.metrics import Metrics


class PluginMeter:
    """Feeds ``kuberay_op_plugin_calls_total`` and ``kuberay_op_plugin_call_duration_seconds``."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        # Looking a labelled metric up costs more than counting, so the children are kept.
        self._calls: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}

    def called(self, plugin: str, hook: str, outcome: str, seconds: float) -> None:
        """One call ended: ``ok``, ``error`` or ``late``."""
        key = (plugin, hook, outcome)
        found = self._calls.get(key)
        if found is None:
            found = self._calls[key] = (
                self._metrics.counter("kuberay_op_plugin_calls_total", plugin, hook, outcome),
                self._metrics.histogram("kuberay_op_plugin_call_duration_seconds", plugin, hook),
            )
        count, duration = found
        count.inc()
        duration.observe(seconds)
