"""Feature gates that plugins declare in their manifests.

They must be known before ``--feature-gates`` is read, and so before it is known which plugins are on: the
manifests of all that are installed are read, and nothing is imported.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kuberay_op.declarative.manifest import Gate
from kuberay_op.errors import Misconfigured
from kuberay_op.features import FeatureGate, Gates, Stage
from kuberay_op.loader.discover import discover


def known_gates(folders: Iterable[Path] = ()) -> Gates:
    """The operator's gates and those of all installed plugins, in their default states."""
    known = Gates.default()
    names = {gate.name for gate in known}
    added: dict[str, FeatureGate] = {}
    for plugin in discover(folders).values():
        try:
            gate = plugin.manifest().feature_gate
        except Misconfigured:
            continue  # reported when somebody switches it on
        # A gate that is there already is shared: with the operator, or with another plugin.
        if gate and gate.name not in names:
            added.setdefault(gate.name, _declared(gate))
    return known.with_gates(added.values())


def _declared(gate: Gate) -> FeatureGate:
    return FeatureGate(
        gate.name, Stage(gate.stage or Stage.ALPHA.value), gate.since, gate.default, gate.description
    )
