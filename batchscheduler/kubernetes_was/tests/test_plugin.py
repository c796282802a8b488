"""The manifest is right, and its examples come out as they say."""

from __future__ import annotations

from pathlib import Path

import yaml

from kuberay_op.declarative.examples import run_examples
from kuberay_op.declarative.lint import lint
from kuberay_op.declarative.manifest import read_manifest

(MANIFEST,) = (Path(__file__).parent.parent / "src").glob("*/plugin.yaml")


def test_the_manifest_has_no_mistakes() -> None:
    assert lint(yaml.safe_load(MANIFEST.read_text())) == []


def test_the_examples_come_out_as_they_say() -> None:
    ran = run_examples(read_manifest(MANIFEST))
    assert ran
    assert [result for result in ran if result.differences] == []
