"""Objects that depend on what the owner has already."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kuberay_op.declarative.manifest import API_VERSION, parse_manifest
from kuberay_op.declarative.plugin import DeclarativePlugin
from kuberay_op.frozen import freeze
from kuberay_op.hooks import Scope

MANIFEST: dict[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": "Plugin",
    "name": "keeper",
    "summary": "Keep a note for as long as a container needs it.",
    "objects": [
        {
            "name": "the note",
            "when": 'owner.spec.wanted or (children.ConfigMap and "reader" in containers)',
            "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "note"}},
        }
    ],
}


@pytest.mark.parametrize(
    ("wanted", "kinds", "container", "made"),
    [
        (True, (), "other", 1),
        (False, ("ConfigMap",), "reader", 1),
        (False, ("ConfigMap",), "other", 0),
        (False, (), "reader", 0),
    ],
)
def test_children_and_containers(wanted: bool, kinds: tuple[str, ...], container: str, made: int) -> None:
    plugin = DeclarativePlugin(parse_manifest(MANIFEST, "test"))
    assert plugin.mistakes() == []
    pods = [{"spec": {"containers": [{"name": "ray"}, {"name": container}]}}, {"spec": {}}]
    scope = Scope(
        owner=freeze({"kind": "RayCluster", "metadata": {"name": "c"}, "spec": {"wanted": wanted}}),
        now=datetime.now(UTC),
        gate=lambda _: False,
        children=freeze({"Pod": pods, **{kind: [{"kind": kind}] for kind in kinds}}),
    )
    assert len(list(plugin.kuberay_extra_objects(scope=scope, options={}))) == made
