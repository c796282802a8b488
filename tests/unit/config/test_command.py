"""``kuberay-op config show`` and ``config check``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from kuberay_op.commands.config import config
from kuberay_op.config import FLAGS, SETTINGS

HEADER = "apiVersion: config.ray.io/v1alpha1\nkind: Configuration\n"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in SETTINGS:
        if setting.env:
            monkeypatch.delenv(setting.env, raising=False)


def call(*argv: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(config, argv, env=env, prog_name="kuberay-op config")


def rows(result: Result) -> dict[str, list[str]]:
    """The cells behind the first, by the first."""
    assert result.exit_code == 0, result.output
    return {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines() if line}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "c.yaml"
    path.write_text(
        HEADER
        + "burst: 300\nmetricsAdr: x\ndefaultContainerEnvs:\n- {name: REDIS_PASSWORD, value: hunter2}\n"
        + "headSidecarContainers: [{name: a, env: [{name: API_TOKEN, value: hunter2}]}]\n"
    )
    return path


def test_show_prints_every_setting_and_gate_with_its_source(file: Path) -> None:
    result = call(
        *("show", "-config", str(file), "--feature-gates=RayCronJob=true", "-zap-devel"),
        env={"CLUSTER_DOMAIN": "k8s"},
    )
    shown = rows(result)
    assert shown["--burst"] == ["file", f"{file}:3", "300"]
    assert shown["--zap-devel"] == ["flag", "--zap-devel", "true"]
    assert shown["CLUSTER_DOMAIN"] == ["env", "CLUSTER_DOMAIN", "k8s"]
    assert shown["--qps"] == ["default", "100.0"]
    assert shown["--kubeconfig"] == ["default", "-"]
    assert shown["RayCronJob"] == ["alpha", "since", "1.6", "flag", "--feature-gates", "true"]
    assert shown["KubernetesWAS"][-2:] == ["default", "false"]
    assert len(shown) == len(SETTINGS) - 1 + 2 + 11
    assert "metricsAdr is unknown" in result.stderr
    assert "warning" not in result.stdout


@pytest.mark.parametrize("output", ["text", "json", "yaml"])
def test_show_hides_secrets(file: Path, output: str) -> None:
    result = call("show", "--config", str(file), "--output", output)
    assert result.exit_code == 0
    assert "hunter2" not in result.output
    assert "REDIS_PASSWORD" in result.output


def test_show_as_data(file: Path) -> None:
    as_json: dict[str, Any] = json.loads(call("show", f"-config={file}", "-output=json").stdout)
    as_yaml: dict[str, Any] = yaml.safe_load(call("show", f"-config={file}", "-output=yaml").stdout)
    assert as_json == as_yaml
    (burst,) = (item for item in as_json["settings"] if item["name"] == "burst")
    assert burst == {
        "name": "burst",
        "value": 300,
        "source": "file",
        "where": f"{file}:3",
        "flag": "burst",
        "key": "burst",
        "env": None,
    }
    assert as_json["featureGates"][0]["stage"] == "beta"
    assert len(as_json["warnings"]) == 1


def test_show_without_a_limit_and_with_namespaces() -> None:
    shown = rows(call("show", "--qps=-1", "--watch-namespace=a,b"))
    assert shown["--qps"][-1] == "unlimited"
    assert shown["--watch-namespace"][-1] == "a,b"


def test_flags_with_one_dash_are_not_taken_for_short_options() -> None:
    shown = rows(call("show", "-health-probe-bind-address", ":1", "-watch-namespace=h", "--", "-h"))
    assert shown["--health-probe-bind-address"][-1] == ":1"


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["-brust=1"], "did you mean -burst?"),
        (["--batch-scheduler=nope"], "batch-scheduler is 'nope'"),
        (["--strict", "x"], "'x' is no flag"),
        (["--config=/nonexistent"], "cannot be read: No such file or directory"),
    ],
)
def test_show_fails_when_the_operator_would(argv: list[str], says: str) -> None:
    result = call("show", *argv)
    assert result.exit_code == 1
    assert says in str(result.exception)


def test_show_refuses_other_forms() -> None:
    result = call("show", "-output=xml")
    assert result.exit_code == 2
    assert "--output is 'xml'; allowed is one of text, json, yaml" in result.stderr


@pytest.mark.parametrize("argument", ["-h", "-help", "--help"])
def test_help_lists_every_flag(argument: str) -> None:
    result = call("show", argument)
    assert result.exit_code == 0
    for flag in (*(f"--{flag.name}" for flag in FLAGS), "--output"):
        assert flag in result.stdout


def test_check_says_what_is_odd(file: Path) -> None:
    result = call("check", str(file))
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == f"{file}: right"
    assert f"warning: {file}:4: metricsAdr is unknown" in result.stdout


def test_check_fails_with_every_mistake(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(HEADER + "burst: 300.5\nreconcileConcurrency: true\nmetricsAdr: x\n")
    result = call("check", str(path))
    assert result.exit_code == 1
    assert [line.split(" ")[0] for line in result.stdout.splitlines()] == ["error:", "error:", "warning:"]
    report = json.loads(call("check", "--output=json", str(path)).stdout)
    assert (len(report["problems"]), len(report["warnings"])) == (2, 1)


def test_check_counts_warnings_when_strict(file: Path) -> None:
    result = call("check", "--strict", str(file))
    assert result.exit_code == 1
    assert result.stdout.startswith("error: ")


def test_check_looks_at_the_batch_scheduler(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(HEADER + "batchScheduler: default\n")
    result = call("check", str(path))
    assert result.exit_code == 1
    assert "batch-scheduler is 'default'" in result.stdout
