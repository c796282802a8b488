"""Contract 02 §7: the autoscaler's container."""

from __future__ import annotations

import pytest

from kuberay_op.api.view import Json
from kuberay_op.config import Config
from kuberay_op.testing import make
from tests.unit.build.shapes import container, flags, gated, head, ray, variables

START = (
    "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME) --cluster-namespace $(RAY_CLUSTER_NAMESPACE)"
)
VARIABLES = [
    ("RAY_CLUSTER_NAME", "metadata.labels['ray.io/cluster']"),
    ("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
    ("RAY_HEAD_POD_NAME", "metadata.name"),
    ("KUBERAY_CRD_VER", "v1"),
    ("KUBERAY_GEN_AUTOSCALER_START_CMD", START),
]


def test_there_is_none_without_autoscaling() -> None:
    pod = head(make.cluster(autoscalerOptions={"image": "x"}))
    assert [c["name"] for c in pod["spec"]["containers"]] == ["ray-head"]
    assert "no-monitor" not in flags(pod)


def test_the_container_by_default() -> None:
    pod = head(make.autoscaling())
    found = container(pod, "autoscaler")
    amounts = {"cpu": "500m", "memory": "512Mi"}
    expected = {
        "name": "autoscaler",
        "image": make.IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/bash", "-c", "--"],
        "args": [START],
        "resources": {"limits": amounts, "requests": amounts},
        "volumeMounts": [{"name": "ray-logs", "mountPath": "/tmp/ray"}],
    }
    assert {key: value for key, value in found.items() if key != "env"} == expected
    assert variables(found) == VARIABLES
    assert flags(pod)["no-monitor"] is True


def test_a_login_shell() -> None:
    found = container(head(make.autoscaling(), config=Config(enable_login_shell=True)), "autoscaler")
    assert found["command"] == ["/bin/bash", "-cl", "--"]


OVERRIDES: list[Json] = [
    {"image": "mine:1"},
    {"imagePullPolicy": "Always"},
    {"command": ["/bin/sh"]},
    {"args": ["-c", "x"]},
    {"resources": {"limits": {"cpu": "1"}}},
    {"resources": {}},
    {"securityContext": {"runAsUser": 1}},
]


@pytest.mark.parametrize("override", OVERRIDES)
def test_what_options_replace(override: Json) -> None:
    found = container(head(make.autoscaling(**override)), "autoscaler")
    usual = container(head(make.autoscaling()), "autoscaler")
    assert found == {**usual, **override}


@pytest.mark.parametrize("override", [{"command": []}, {"args": []}])
def test_an_empty_command_replaces_nothing(override: Json) -> None:
    assert container(head(make.autoscaling(**override)), "autoscaler") == container(
        head(make.autoscaling()), "autoscaler"
    )


def test_what_options_add() -> None:
    mount = {"name": "mine", "mountPath": "/mine"}
    pod = head(
        make.autoscaling(
            env=[{"name": "A", "value": "1"}], envFrom=[{"secretRef": {"name": "s"}}], volumeMounts=[mount]
        ),
        make.cluster(authOptions={"mode": "token"}, tlsOptions={"enabled": True}),
        config=gated("RayClusterMTLS"),
    )
    found = container(pod, "autoscaler")
    assert [name for name, _ in variables(found)][5:] == [
        "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY",
        "RAY_TLS_CA_CERT", "A",
    ]  # fmt: skip
    assert found["envFrom"] == [{"secretRef": {"name": "s"}}]
    assert [m["name"] for m in found["volumeMounts"]] == ["ray-tls", "mine", "ray-logs"]


@pytest.mark.parametrize(("version", "wanted"), [("v1", "false"), ("v2", "true"), (None, None)])
def test_the_version_is_told_to_ray(version: str | None, wanted: str | None) -> None:
    found = dict(variables(ray(head(make.autoscaling(version)))))
    assert found.get("RAY_enable_autoscaler_v2") == wanted
