"""The data file with Kubernetes' types is what the tool makes of the pinned Kubernetes version."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from kuberay_op.testing.go_modules import ModuleUnavailableError

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """tools/kubernetes_schema.py as a module."""
    spec = importlib.util.spec_from_file_location(
        "kubernetes_schema", ROOT / "tools" / "kubernetes_schema.py"
    )
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_data_file_is_up_to_date(tool: ModuleType) -> None:
    try:
        text = tool.render()
    except ModuleUnavailableError as error:
        pytest.skip(f"the Go module of Kubernetes cannot be had here: {error}")
    assert text == tool.OUTPUT.read_text(), "run `make generate`"


def test_every_definition_is_needed_and_there(tool: ModuleType) -> None:
    definitions = json.loads(tool.OUTPUT.read_text())["definitions"]
    needed = set(tool.wanted())
    waiting = list(needed)
    while waiting:
        text = json.dumps(definitions[waiting.pop()])
        for part in text.split('"$def": "')[1:]:
            name = part.partition('"')[0]
            if name not in needed:
                needed.add(name)
                waiting.append(name)
    assert needed == set(definitions)
