#!/usr/bin/env python3
"""Write the reference pages on configuration, feature gates and metrics from their declarations.

``tools/config_docs.py`` writes them, ``tools/config_docs.py --check`` fails when a page is not up to date.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from kuberay_op.commands.config import table
from kuberay_op.config import SETTINGS, Kind, Setting, resolve
from kuberay_op.features import GATES, RETIRED
from kuberay_op.metrics import FAMILIES, OBJECT_FAMILIES, Family

#: The pages' prose; ``@name@`` stands for what is made from the code.
PROSE: Final = Path(__file__).parent / "pages"
FOLDER: Final = Path(__file__).parent.parent / "docs" / "reference"

MADE: Final = "<!-- Made by tools/config_docs.py from tools/pages and the declarations in the code. -->\n\n"

EXAMPLE: Final = """\
apiVersion: config.ray.io/v1alpha1
kind: Configuration
metricsAddr: ":8080"
reconcileConcurrency: 16
burst: 300
watchNamespace: team-a,team-b
logStdoutEncoder: console
defaultPodLabels:
  team: ml
headSidecarContainers:
  - name: fluentbit
    image: fluent/fluent-bit:1.9.6
"""

EXAMPLE_FLAGS: Final = ("--config", "config.yaml", "--feature-gates=RayCronJob=true", "--burst=5")

_SECTIONS: Final = {
    "controller_runtime_": "Controllers",
    "workqueue_": "Queues",
    "rest_client_": "Requests to the API server",
    "leader_election_": "Leadership",
    "kuberay_cluster_": "RayClusters, with `--enable-metrics`",
    "kuberay_job_": "RayJobs, with `--enable-metrics`",
    "kuberay_op_": "Of our own",
}


def fill(page: str, **parts: str) -> str:
    """The prose of a page with its parts put in; a part nobody asked for, or gave, is an error."""
    text = (PROSE / f"{page}.md").read_text("utf-8")
    wanted = set(re.findall(r"@(\w+)@", text))
    if wanted != set(parts):
        raise ValueError(f"{page}.md and this script differ in their parts: {sorted(wanted ^ set(parts))}")
    return re.sub(r"@(\w+)@", lambda match: parts[match[1]], text)


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table."""
    heads = list(head)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: str | None) -> str:
    """Text in code font; nothing for nothing."""
    return f"`{text}`" if text else ""


def default(setting: Setting) -> str:
    """The default as a user would write it; nothing when it is empty."""
    value: Any = setting.default
    if setting.name == "gates" or isinstance(value, tuple | Mapping) or value == "":
        return ""
    return code(value if isinstance(value, str) else json.dumps(value))


def kind(setting: Setting) -> str:
    """The type of a setting, in a word or two."""
    names = {Kind.TEXT: "string", Kind.BOOL: "bool", Kind.INT: "int", Kind.FLOAT: "float"}
    return names.get(setting.kind, setting.kind.value.removeprefix("a "))


def meaning(setting: Setting) -> str:
    """What a setting does, and that it is on its way out if it is."""
    return f"{setting.doc} Setting it {setting.deprecated}." if setting.deprecated else setting.doc


def configuration() -> str:
    """The page on configuration."""
    resolved = resolve(EXAMPLE_FLAGS, {}, lambda _: EXAMPLE)
    shown = [*(f"warning: {warning}" for warning in resolved.warnings), *table(resolved).splitlines()[:13]]
    return fill(
        "configuration",
        flags=" ".join(EXAMPLE_FLAGS),
        shown="\n".join(line.rstrip() for line in shown),
        example=EXAMPLE,
        flag_table=markdown(
            ["Flag", "Key in the file", "Type", "Default", "Meaning"],
            [
                [code(item.flag), code(item.key), kind(item), default(item), meaning(item)]
                for item in SETTINGS
                if item.flag
            ],
        ),
        file_table=markdown(
            ["Key", "Type", "Default", "Meaning"],
            [
                [code(item.key), kind(item), default(item), meaning(item)]
                for item in SETTINGS
                if item.key and not item.flag
            ],
        ),
        env_table=markdown(
            ["Variable", "Default", "Read as", "Meaning"],
            [
                [code(item.env), default(item), item.reading.value if item.reading else "", meaning(item)]
                for item in SETTINGS
                if item.env
            ],
        ),
    )


def feature_gates() -> str:
    """The page on feature gates."""
    return fill(
        "feature-gates",
        gate_table=markdown(
            ["Gate", "Stage", "Since", "Default", "Enables"],
            [[code(g.name), g.stage.value, g.since, json.dumps(g.default), g.doc] for g in GATES],
        ),
        retired_table=markdown(
            ["Gate", "Why it is gone"], [[code(name), f"{why}."] for name, why in RETIRED.items()]
        ),
    )


def bound(value: float) -> str:
    """A bound of a bucket, without rounding errors."""
    return str(int(value)) if value >= 1 and math.isclose(value, round(value)) else f"{value:.3g}"


def metrics() -> str:
    """The page on metrics."""

    def section(prefix: str, title: str) -> str:
        every = [*FAMILIES.values(), *OBJECT_FAMILIES.values()]
        families = [family for family in every if family.name.startswith(prefix)]
        head = ["Metric", "Type", "Labels", "Meaning"]
        return f"## {title}\n\n" + markdown(head, [row(family) for family in families])

    def row(family: Family) -> list[str]:
        return [code(family.name), family.kind, ", ".join(family.labels), family.doc]

    return fill(
        "metrics",
        tables="\n\n".join(section(prefix, title) for prefix, title in _SECTIONS.items()),
        bucket_table=markdown(
            ["Metric", "Bounds"],
            [
                [code(family.name), " ".join(bound(value) for value in family.buckets)]
                for family in FAMILIES.values()
                if family.buckets
            ],
        ),
    )


def pages() -> dict[Path, str]:
    """Every page and its text."""
    made = {"configuration": configuration(), "feature-gates": feature_gates(), "metrics": metrics()}
    return {FOLDER / f"{name}.md": MADE + text for name, text in made.items()}


def main() -> int:
    """Write the pages, or check them."""
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            sys.stderr.write(f"{path.name} is not up to date; run tools/config_docs.py\n")
        return 1 if stale else 0
    for path in stale:
        path.write_text(pages()[path], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
