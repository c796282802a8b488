"""Finding the programs of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from kuberay_op_local import paths
from kuberay_op_local.errors import LocalError

DEFAULT_KUBERNETES: Final = "1.36.3"


def resolve(
    tools: Sequence[str], *, kubernetes: str, folder: Path | None, say: Callable[[str], None]
) -> dict[str, Path]:
    """The path of each tool."""
    named = folder or (Path(text) if (text := os.environ.get("KUBERAY_OP_BINARIES")) else None)
    places = [place for place in (named, paths.cache_dir() / "bin" / kubernetes) if place]
    found: dict[str, Path] = {}
    for tool in tools:
        for place in places:
            if (place / tool).exists():
                found[tool] = place / tool
                break
        else:
            raise LocalError(f"{tool} not found")
    return found
