"""Alerts and dashboards: Prometheus understands them, alerts fire when they should, no metric is left out."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kuberay_op.metrics.families import FAMILIES, OBJECT_FAMILIES

MONITORING = Path(__file__).parents[2] / "monitoring"

#: Published by others than the families of the operator: Prometheus, Ray, the process, plugins, RayServices.
OTHERS = {
    "up",
    "ray_gcs_availability_30d",
    "ray_gcs_update_resource_usage_time_bucket",
    "ray_gcs_update_resource_usage_time_count",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "kuberay_op_redis_cleanups_total",
    "kuberay_service_info",
    "kuberay_service_condition_ready",
    "kuberay_service_condition_upgrade_in_progress",
}

METRIC = re.compile(r"\b(?:up|(?:ray|process|kuberay|workqueue|rest_client|controller_runtime|leader)_\w+)\b")


def promtool(*arguments: str, stdin: str | None = None) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed; Debian has it in the package prometheus")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, input=stdin)
    assert done.returncode == 0, done.stdout + done.stderr


def alerts() -> dict[str, dict[str, Any]]:
    return {
        rule["alert"]: rule
        for path in MONITORING.glob("rules/*.yaml")
        for group in yaml.safe_load(path.read_text("utf-8"))["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }


def queries() -> list[str]:
    """All queries of the dashboards, with Grafana's variables filled in."""
    found = [
        target["expr"]
        for path in MONITORING.glob("dashboards/*.json")
        for panel in json.loads(path.read_text("utf-8"))["panels"]
        for target in panel["targets"]
    ]
    return [query.replace("$__rate_interval", "5m").replace("$namespace", ".*") for query in found]


def metrics_in(text: str) -> set[str]:
    """The names of metrics in a query; labels and words of the language look different."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\bby \([^)]*\)|\bon \([^)]*\)|\"[^\"]*\"", " ", text)
    return {
        re.sub(r"_(bucket|count|sum)$", "", name) if name not in OTHERS else name
        for name in METRIC.findall(bare)
        if name not in {"ray_io_cluster"}
    }


@pytest.mark.parametrize("path", sorted(MONITORING.glob("tests/*.yaml")), ids=lambda path: path.stem)
def test_alerts_fire_when_they_should(path: Path) -> None:
    promtool("test", "rules", str(path))


def test_every_alert_has_a_test_that_fires_and_one_that_does_not() -> None:
    fired: set[str] = set()
    quiet: set[str] = set()
    for path in MONITORING.glob("tests/*.yaml"):
        for story in yaml.safe_load(path.read_text("utf-8"))["tests"]:
            for check in story.get("alert_rule_test", ()):
                (fired if check.get("exp_alerts") else quiet).add(check["alertname"])
    assert fired == alerts().keys()
    assert quiet == alerts().keys()


def test_every_alert_says_how_bad_it_is_and_what_to_do() -> None:
    for name, rule in alerts().items():
        assert rule["labels"]["severity"] in ("critical", "warning", "info"), name
        assert rule["annotations"].keys() == {"summary", "description"}, name


def test_prometheus_understands_every_query_of_the_dashboards(tmp_path: Path) -> None:
    rules = [{"record": f"panel_{number}", "expr": query} for number, query in enumerate(queries())]
    path = tmp_path / "queries.yaml"
    path.write_text(json.dumps({"groups": [{"name": "dashboards", "rules": rules}]}))
    promtool("check", "rules", str(path))


def test_every_metric_is_on_a_dashboard_and_nothing_else() -> None:
    shown = set().union(*map(metrics_in, queries()))
    published = FAMILIES.keys() | OBJECT_FAMILIES.keys()
    assert published - shown == set(), "on no dashboard"
    assert shown - published - OTHERS == set(), "nobody publishes these"


def test_alerts_ask_for_metrics_that_there_are() -> None:
    asked = set().union(*(metrics_in(rule["expr"]) for rule in alerts().values()))
    assert asked - FAMILIES.keys() - OBJECT_FAMILIES.keys() - OTHERS == set()


def test_dashboards_have_places_of_their_own() -> None:
    uids = []
    for path in MONITORING.glob("dashboards/*.json"):
        board = json.loads(path.read_text("utf-8"))
        uids.append(board["uid"])
        places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
        assert len(places) == len(set(places)), path.name
        assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in board["panels"])
    assert len(uids) == len(set(uids)) == 4
    assert "kuberay_operator" in uids
