"""Structural schemas of the Kubernetes types inside our kinds: Pod templates, Services and a few more.

The data file is written by ``tools/kubernetes_schema.py`` from the OpenAPI documents of one pinned Kubernetes
version. Schemas of definitions refer to each other by name (``{"$def": name}``) and are unfolded here.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, Final

#: The data file, beside this module.
DATA: Final = "kube_schema.json"


@cache
def definitions() -> dict[str, Any]:
    """The definitions by name, as they stand in the data file."""
    data: dict[str, Any] = json.loads(files("kuberay_op.api").joinpath(DATA).read_bytes())
    found: dict[str, Any] = data["definitions"]
    return found


def definition_schema(name: str) -> dict[str, Any]:
    """The schema of one definition, with all references unfolded; a new dict every time."""
    schema: dict[str, Any] = _unfold(definitions()[name])
    return schema


def _unfold(node: Any) -> Any:
    if isinstance(node, list):
        return [_unfold(entry) for entry in node]
    if not isinstance(node, dict):
        return node
    if "$def" in node:
        rest = {key: _unfold(value) for key, value in node.items() if key != "$def"}
        return {**_unfold(definitions()[node["$def"]]), **rest}
    return {key: _unfold(value) for key, value in node.items()}
