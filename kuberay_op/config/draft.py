"""The configuration in the making: values, where they came from, and what is wrong with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value came from: ``where`` is ``--burst``, ``KUBECONFIG`` or ``config.yaml:3``."""

    kind: Literal["default", "flag", "env", "file"] = "default"
    where: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.where}".rstrip()


@dataclass(slots=True)
class Draft:
    """The configuration in the making."""

    values: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
