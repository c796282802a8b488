"""What is on and why, told once at start-up: lines for people, fields for machines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kuberay_op import __version__
from kuberay_op.config import SETTINGS, Resolved
from kuberay_op.logs import redact

#: Shown in lines of their own.
_ELSEWHERE: Final = frozenset({"gates"})


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything that somebody asks who looks at a running operator for the first time."""

    resolved: Resolved
    server: str
    controllers: Sequence[str]
    #: Why each installed plugin is on or off.
    plugins: Mapping[str, str]
    leader_election: str
    webhook: str

    def fields(self) -> dict[str, Any]:
        """For a line of JSON."""
        config = self.resolved.config
        return {
            "version": __version__,
            "server": self.server,
            "namespaces": list(config.watch_namespaces) or "all",
            "controllers": list(self.controllers),
            "concurrency": config.reconcile_concurrency,
            "leaderElection": self.leader_election,
            "health": config.probe_addr,
            "metrics": config.metrics_addr,
            "webhook": self.webhook,
            "changedGates": self._gates(),
            "plugins": dict(self.plugins),
            "settings": self._settings(),
        }

    def text(self) -> str:
        """For people."""
        fields = self.fields()
        rows: list[tuple[str, Sequence[str]]] = [
            ("API server", [self.server]),
            ("namespaces", [_joined(fields["namespaces"])]),
            ("controllers", [f"{_joined(self.controllers)}; {fields['concurrency']} objects at a time each"]),
            ("leader election", [self.leader_election]),
            ("health", [_address(fields["health"])]),
            ("metrics", [_address(fields["metrics"])]),
            ("webhook", [self.webhook]),
            (
                "feature gates",
                [f"{name} {state}" for name, state in self._gates().items()] or ["as by default"],
            ),
            ("plugins", [f"{name} {reason}" for name, reason in self.plugins.items()] or ["none installed"]),
            (
                "settings",
                [f"{name} = {value}" for name, value in self._settings().items()] or ["as by default"],
            ),
        ]
        width = max(len(name) for name, _ in rows)
        lines = [f"kuberay-op {__version__}"]
        for name, values in rows:
            lines += [
                f"  {name if first else '':<{width}}  {value}"
                for first, value in zip([True] + [False] * len(values), values, strict=False)
            ]
        return "\n".join(lines)

    def _gates(self) -> dict[str, str]:
        """Gates that are not as by default, and who says so."""
        gates, source = self.resolved.config.gates, self.resolved.sources["gates"]
        return {
            gate.name: f"{_on(gates.enabled(gate.name))} (default: {_on(gate.default)}; {source})"
            for gate in gates
            if gates.enabled(gate.name) != gate.default
        }

    def _settings(self) -> dict[str, str]:
        """Settings that were given, each with where; secrets are taken out."""
        return {
            setting.flag or setting.key or setting.env or setting.name: f"{_value(value)} ({source})"
            for setting in SETTINGS
            if setting.name not in _ELSEWHERE
            and (source := self.resolved.sources[setting.name]).kind != "default"
            and (value := getattr(self.resolved.config, setting.name)) != setting.default
        }


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return "without limit" if math.isinf(value) else f"{value:g}"
    if isinstance(value, tuple) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    if isinstance(value, tuple | Mapping):
        return f"{len(value)} given"  # values of variables and options may be secret
    return str(redact(value))


def _joined(names: Sequence[str] | str) -> str:
    return names if isinstance(names, str) else ", ".join(names) or "none"


def _address(text: str) -> str:
    return "off" if text == "0" else text


def _on(state: bool) -> str:
    return "on" if state else "off"
