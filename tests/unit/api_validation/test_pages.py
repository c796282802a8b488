"""The pages about validation say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kuberay_op.api.validation import CATALOGUE
from kuberay_op.commands.validate import validate

DOCS = Path(__file__).parents[3] / "docs"


def test_every_rule_is_on_the_reference_page() -> None:
    text = (DOCS / "reference" / "validation.md").read_text("utf-8")
    rows = re.findall(r"^\| `([a-z0-9.-]+)` \| (.+) \|$", text, re.MULTILINE)
    assert dict(rows) == {info.id: info.summary for info in CATALOGUE.values()}
    assert len(rows) == len(CATALOGUE)


def test_the_example_of_the_how_to_is_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DOCS / "howto" / "validate-manifests.md").read_text("utf-8")
    found = re.search(
        r"^\$ cat cluster\.yaml\n(.*?)\n\n\$ kuberay-op validate -f cluster\.yaml\n(.*?)\n```",
        text,
        re.DOTALL | re.MULTILINE,
    )
    assert found
    monkeypatch.chdir(tmp_path)
    Path("cluster.yaml").write_text(found[1] + "\n")
    assert CliRunner().invoke(validate, ["-f", "cluster.yaml"]).output.strip() == found[2]
