"""Writes Grafana dashboards, ``monitoring/dashboards``, from the panels in ``monitoring/boards.yaml``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import yaml

MONITORING: Final = Path(__file__).parent.parent / "monitoring"
WIDTH: Final = 24
HEIGHT: Final = 8
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
DATASOURCE: Final = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
NAMESPACE: Final = {
    "name": "namespace",
    "label": "Namespace",
    "type": "query",
    "datasource": SOURCE,
    "query": 'label_values({__name__=~"kuberay_.*_info"}, namespace)',
    "refresh": 2,
    "includeAll": True,
    "allValue": ".*",
    "multi": True,
    "current": {"text": "All", "value": "$__all"},
}

#: The reference's board of the operator has this uid, so links to it go on working.
UIDS: Final = {"operator": "kuberay_operator"}

Json = dict[str, Any]


def panel_json(panel: Json, number: int, x: int, y: int, width: int) -> Json:
    """A panel as Grafana stores it."""
    kind = panel.get("kind", "timeseries")
    table = {"format": "table", "instant": True} if kind == "table" else {}
    targets = [
        {"refId": chr(ord("A") + index), "expr": query, "legendFormat": legend, "datasource": SOURCE, **table}
        for index, (legend, query) in enumerate(panel["queries"].items())
    ]
    return {
        "id": number,
        "type": kind,
        "title": panel["title"],
        "description": panel["about"],
        "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": width, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel["unit"], "min": 0}, "overrides": []},
        "options": {},
        "targets": targets,
    }


def board_json(name: str, board: Json) -> Json:
    """A dashboard as Grafana imports it."""
    panels: list[Json] = []
    for y, row in enumerate(board["rows"]):
        width = WIDTH // len(row)
        for x, panel in enumerate(row):
            panels.append(panel_json(panel, len(panels) + 1, x * width, y * HEIGHT, width))
    by_namespace = "$namespace" in json.dumps(panels)
    return {
        "uid": UIDS.get(name, f"kuberay-{name}"),
        "title": board["title"],
        "tags": ["kuberay"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [DATASOURCE, NAMESPACE] if by_namespace else [DATASOURCE]},
        "panels": panels,
    }


def main() -> None:
    """Write one file for each board."""
    folder = MONITORING / "dashboards"
    folder.mkdir(exist_ok=True)
    for name, board in yaml.safe_load((MONITORING / "boards.yaml").read_text("utf-8")).items():
        (folder / f"{name}.json").write_text(json.dumps(board_json(name, board), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
