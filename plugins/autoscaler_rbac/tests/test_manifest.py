"""The manifest has no mistakes, and its examples come out as they say."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

from kuberay_op.declarative.examples import run_examples
from kuberay_op.declarative.lint import lint
from kuberay_op.declarative.manifest import read_manifest
from kuberay_op.features import Gates
from kuberay_op.loader.choose import Wanted
from kuberay_op.loader.load import load_plugins

MANIFEST: Final = Path(__file__).parent.parent / "src" / "kuberay_op_autoscaler_rbac" / "plugin.yaml"


def test_no_mistakes() -> None:
    assert lint(yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))) == []


def test_examples() -> None:
    ran = run_examples(read_manifest(MANIFEST))
    assert len(ran) == 5
    assert [result for result in ran if result.differences] == []


def test_it_is_on_by_default() -> None:
    assert load_plugins(Wanted(), Gates.default()).chosen.reasons["autoscaler-rbac"] == "on: default"
