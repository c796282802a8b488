"""The values in ``cases/``, and what the charts make of them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from tests.charts.helm import Json, rendered

FOLDER: Final = Path(__file__).parent / "cases"
CHARTS: Final = {"kuberay-operator": "operator", "ray-cluster": "ray-cluster"}


@cache
def cases(chart: str) -> dict[str, Json]:
    """All values of a chart by name."""
    found: dict[str, Json] = yaml.safe_load((FOLDER / f"{CHARTS[chart]}.yaml").read_text("utf-8"))
    return found


@cache
def objects(chart: str, case: str) -> str:
    """What comes of a case, as JSON: it is cached, and must not be changed."""
    return json.dumps(rendered(chart, cases(chart)[case]))


def objects_of(chart: str, case: str) -> list[Json]:
    """The objects of a case."""
    found: list[Json] = json.loads(objects(chart, case))
    return found


class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # chosen at run time
    """Writes texts of several lines as such."""


def _lines(dumper: Any, value: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


Dumper.add_representer(str, _lines)


def _rules(found: list[Json]) -> list[Json]:
    """The rules of the operator's own ClusterRole."""
    for each in found:
        if each["kind"] == "ClusterRole" and each["metadata"]["name"] == "kuberay-operator":
            rules: list[Json] = each["rules"]
            return rules
    return []


@cache
def text(chart: str, case: str) -> str:
    """The objects as text for comparing: one after the other by kind and name, keys sorted."""

    def key(obj: Json) -> tuple[str, str, str]:
        return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]

    found = sorted(objects_of(chart, case), key=key)
    for each in found:
        # The operator's rules follow from the code, which another test compares; here, what values change.
        if each["kind"] in ("ClusterRole", "Role") and each["metadata"]["name"].endswith("-operator"):
            usual = _rules(objects_of(chart, "default"))
            each["rules"] = {
                "more": [rule for rule in each["rules"] if rule not in usual],
                "fewer": [rule for rule in usual if rule not in each["rules"]],
            }
        # Dashboards are compared where they are made; here, that they are there.
        if each["kind"] == "ConfigMap" and "-dashboard-" in each["metadata"]["name"]:
            each["data"] = {name: json.loads(board)["title"] for name, board in each["data"].items()}
    return "---\n".join(yaml.dump(each, Dumper=Dumper, sort_keys=True, width=110) for each in found)
