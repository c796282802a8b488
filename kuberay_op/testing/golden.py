"""Golden files: the expected output of a test, kept beside it and reviewed like code."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml


class Golden:
    """Compares with files in the folder ``golden/`` beside the test file."""

    def __init__(self, folder: Path, *, update: bool, command: str) -> None:
        self.folder = folder
        self.update = update
        self.command = command

    def check(self, name: str, value: Any) -> None:
        """Fail unless ``value`` is what the golden file ``name`` holds.

        Text is compared as it is. Anything else is written as JSON (``.json``) or YAML, keys sorted; a list
        in a YAML file becomes several documents.
        """
        path = self.folder / name
        text = render(name, value)
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"there is no golden file {path}; write it with: {self.command}", pytrace=False)
        expected = path.read_text(encoding="utf-8")
        if text != expected:
            lines = difflib.unified_diff(
                expected.splitlines(), text.splitlines(), f"golden/{name}", "this test", lineterm=""
            )
            shown = "\n".join(lines)
            pytest.fail(
                f"{path} differs; if the change is meant, write it with: {self.command}\n{shown}",
                pytrace=False,
            )


def render(name: str, value: Any) -> str:
    """The text of a golden file."""
    if isinstance(value, str):
        return value if value.endswith("\n") else value + "\n"
    if name.endswith(".json"):
        return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    # Through JSON first: subclasses of dict and list are written like plain ones.
    plain = json.loads(json.dumps(value))
    documents = plain if isinstance(plain, list) else [plain]
    return yaml.safe_dump_all(documents, sort_keys=True, allow_unicode=True, width=100)
