"""What the operator says about itself when it starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import MappingProxyType

import pytest

from kuberay_op import __version__, cli
from kuberay_op.commands.summary import Summary
from kuberay_op.config import resolve

FILE = """
apiVersion: config.ray.io/v1alpha1
kind: Configuration
qps: 50
defaultContainerEnvs: [{name: PASSWORD, value: hunter2}]
plugins: {mine: {options: {key: hunter3}}}
"""


def summary(*flags: str, file: str = "", **environ: str) -> Summary:
    read: Callable[[str], str] = lambda _: file  # noqa: E731 (nothing to name)
    return Summary(
        resolved=resolve(flags, environ, read),
        server="https://10.0.0.1",
        controllers=["raycluster", "networkpolicy"],
        plugins=MappingProxyType({"autoscaler-rbac": "on: default", "volcano": "off: default"}),
        leader_election="ns/ray-operator-leader",
        webhook="off",
    )


def test_nothing_special_is_said_in_few_words() -> None:
    assert summary().text() == "\n".join(
        [
            f"kuberay-op {__version__}",
            "  API server       https://10.0.0.1",
            "  namespaces       all",
            "  controllers      raycluster, networkpolicy; 8 objects at a time each",
            "  leader election  ns/ray-operator-leader",
            "  health           :8082",
            "  metrics          :8080",
            "  webhook          off",
            "  feature gates    as by default",
            "  plugins          autoscaler-rbac on: default",
            "                   volcano off: default",
            "  settings         as by default",
        ]
    )


def test_what_is_not_as_by_default_is_said_with_its_source() -> None:
    found = summary(
        "--feature-gates=RayCronJob=true,RayJobDeletionPolicy=true",
        "--watch-namespace=a,b",
        "-metrics-addr=0",
        "--qps=-1",
        ENABLE_WEBHOOKS="true",
        CLUSTER_DOMAIN="cluster.local",  # given, but nothing new
    )
    fields = found.fields()
    assert fields["namespaces"] == ["a", "b"]
    assert fields["changedGates"] == {"RayCronJob": "on (default: off; flag --feature-gates)"}
    assert fields["settings"] == {
        "metrics-addr": "0 (flag --metrics-addr)",
        "ENABLE_WEBHOOKS": "true (env ENABLE_WEBHOOKS)",
        "watch-namespace": "a,b (flag --watch-namespace)",
        "qps": "without limit (flag --qps)",
    }
    assert "  metrics          off\n" in found.text()
    assert json.loads(json.dumps(fields)) == fields


def test_values_that_may_be_secret_are_counted_only() -> None:
    found = summary("--config=c.yaml", file=FILE)
    assert found.fields()["settings"]["defaultContainerEnvs"] == "1 given (file c.yaml:5)"
    assert found.fields()["settings"]["qps"] == "50 (file c.yaml:4)"
    assert "hunter" not in f"{found.text()}{found.fields()}"


def test_manager_is_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["/manager", "-qps=x"])
    with pytest.raises(SystemExit) as caught:
        cli.manager()
    assert caught.value.code == 1
    assert capsys.readouterr().err == 'error: invalid value "x" for flag -qps: allowed is a number\n'


def test_manager_helps(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["/manager", "--help"])
    with pytest.raises(SystemExit) as caught:
        cli.manager()
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("Usage: manager run [FLAGS]")
