#!/usr/bin/env python3
"""Write the reference page on validation from the catalogue of rules.

``tools/validation_docs.py`` writes it, ``tools/validation_docs.py --check`` fails when it is not up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from kuberay_op.api.validation import CATALOGUE, RuleInfo

PROSE: Final = Path(__file__).parent / "pages" / "validation.md"
PAGE: Final = Path(__file__).parent.parent / "docs" / "reference" / "validation.md"

MADE: Final = "<!-- Made by tools/validation_docs.py from tools/pages and the rules in the code. -->\n\n"

#: Sections of the page, by the first words of the ids in them.
SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "RayCluster": (
        "raycluster.metadata",
        "raycluster.spec",
        "raycluster.tls",
        "raycluster.upgrade",
        "raycluster.status",
    ),
    "RayJob": ("rayjob.metadata", "rayjob.spec", "rayjob.status"),
    "RayService": ("rayservice.metadata", "rayservice.spec"),
    "RayCronJob": ("raycronjob.spec",),
    "Webhook": ("webhook",),
    "Warnings": ("warning",),
}


def _order(info: RuleInfo) -> tuple[int, tuple[tuple[int, str], ...]]:
    """Sections in the order above, then numbers as numbers."""
    prefixes = [prefix for group in SECTIONS.values() for prefix in group]
    place = next(index for index, prefix in enumerate(prefixes) if info.id.startswith(f"{prefix}."))
    return place, tuple((int(part), "") if part.isdigit() else (0, part) for part in info.id.split("."))


def _table(rules: Iterable[RuleInfo]) -> list[str]:
    return [
        "| Rule | What must hold |",
        "|---|---|",
        *(f"| `{rule.id}` | {rule.summary} |" for rule in rules),
    ]


def page() -> str:
    """The whole page."""
    lines = [MADE.strip(), "", PROSE.read_text("utf-8").strip(), ""]
    rules = sorted(CATALOGUE.values(), key=_order)
    for title, prefixes in SECTIONS.items():
        chosen = [rule for rule in rules if any(rule.id.startswith(f"{prefix}.") for prefix in prefixes)]
        lines += [f"## {title}", "", *_table(chosen), ""]
    return "\n".join(lines)


def main() -> int:
    """Write the page, or with ``--check`` say whether it is up to date."""
    text = page()
    if "--check" in sys.argv[1:]:
        if PAGE.read_text("utf-8") == text:
            return 0
        sys.stderr.write(f"{PAGE} is not up to date; run tools/validation_docs.py\n")
        return 1
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
