"""The reference pages are those the code makes, and say something about everything there is."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from kuberay_op.config import SETTINGS
from kuberay_op.features import GATES, RETIRED
from kuberay_op.metrics import FAMILIES, OBJECT_FAMILIES

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("config_docs", ROOT / "tools" / "config_docs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_up_to_date(tool: ModuleType) -> None:
    stale = [path.name for path, text in tool.pages().items() if path.read_text("utf-8") != text]
    assert stale == [], "run tools/config_docs.py"


def test_a_stale_page_is_noticed(tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "FOLDER", tmp_path)
    monkeypatch.setattr("sys.argv", ["config_docs.py", "--check"])
    assert tool.main() == 1
    monkeypatch.setattr("sys.argv", ["config_docs.py"])
    assert tool.main() == 0
    monkeypatch.setattr("sys.argv", ["config_docs.py", "--check"])
    assert tool.main() == 0


def test_prose_and_script_agree_on_the_parts(tool: ModuleType) -> None:
    with pytest.raises(ValueError, match="differ in their parts"):
        tool.fill("metrics", tables="")


def test_everything_is_documented(tool: ModuleType) -> None:
    texts = {path.stem: text for path, text in tool.pages().items()}
    names = [name for item in SETTINGS for name in (item.flag, item.key, item.env) if name]
    assert [name for name in names if f"`{name}`" not in texts["configuration"]] == []
    gates = [*(gate.name for gate in GATES), *RETIRED]
    assert [name for name in gates if f"`{name}`" not in texts["feature-gates"]] == []
    metrics = [*FAMILIES, *OBJECT_FAMILIES]
    assert [name for name in metrics if f"`{name}`" not in texts["metrics"]] == []


def test_every_setting_has_a_source_and_a_sentence() -> None:
    for item in SETTINGS:
        assert item.flag or item.key or item.env, item.name
        assert item.doc.endswith("."), item.name
        assert (item.env is None) == (item.reading is None), item.name
