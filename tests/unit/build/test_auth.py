"""Contract 02 §6.9: token authentication."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.api.view import Json
from kuberay_op.build.auth import auth_secret, needs_secret, secret_name
from kuberay_op.testing import make
from tests.unit.build.shapes import cluster, container, gated, head, head_container, ray, variables, worker

AUTH = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_ENABLE_K8S_TOKEN_AUTH")
COLLECTOR = make.cluster(historyServerOptions={"collectorOptions": {"image": "x"}})
MOUNT = {"name": "ray-token", "mountPath": "/var/run/secrets/ray.io/serviceaccount", "readOnly": True}


def auth(**options: Any) -> make.Part:
    return make.cluster(authOptions=options)


def auth_variables(found: Json) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in variables(found) if name in AUTH]


def all_containers(*parts: make.Part) -> list[Json]:
    """Those of head and worker that talk to Ray."""
    config = gated("RayClusterHistoryServer")
    on_head = head(*parts, make.autoscaling(), COLLECTOR, config=config)
    on_worker = worker(*parts, COLLECTOR, config=config)
    names = ("autoscaler", "ray-history-collector")
    return [
        ray(on_head),
        *(container(on_head, name) for name in names),
        ray(on_worker),
        container(on_worker, "ray-history-collector"),
        on_worker["spec"]["initContainers"][0],
    ]


@pytest.mark.parametrize("options", [{}, {"mode": "disabled"}, {"secretName": "x"}])
def test_off(options: Json) -> None:
    assert [auth_variables(found) for found in all_containers(auth(**options))] == [[]] * 6


@pytest.mark.parametrize(("options", "secret"), [({}, "c"), ({"secretName": "mine"}, "mine")])
def test_with_a_secret(options: Json, secret: str) -> None:
    reference = {"secretKeyRef": {"name": secret, "key": "auth_token"}}
    wanted = [("RAY_AUTH_MODE", "token"), ("RAY_AUTH_TOKEN", reference)]
    found = all_containers(auth(mode="token", **options))
    assert [auth_variables(one) for one in found] == [wanted] * 6
    assert [MOUNT in one.get("volumeMounts", ()) for one in found] == [False] * 6


def test_with_tokens_of_kubernetes() -> None:
    part = auth(mode="token", enableK8sTokenAuth=True)
    wanted = [("RAY_AUTH_MODE", "token"), ("RAY_ENABLE_K8S_TOKEN_AUTH", "true")]
    found = all_containers(part)
    assert [auth_variables(one) for one in found] == [wanted] * 6
    assert [one["volumeMounts"].count(MOUNT) for one in found] == [1] * 6
    volume = {"name": "ray-token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    assert volume in head(part)["spec"]["volumes"]
    assert volume in worker(part)["spec"]["volumes"]


def test_variables_and_mounts_of_the_user_stay() -> None:
    own = [{"name": "RAY_AUTH_MODE", "value": "mine"}, {"name": "RAY_AUTH_TOKEN", "value": "t"}]
    found = auth_variables(ray(head(auth(mode="token"), head_container(env=own))))
    assert found == [("RAY_AUTH_MODE", "mine"), ("RAY_AUTH_TOKEN", "t")]
    mount = {"name": "ray-token", "mountPath": "/elsewhere"}
    pod = head(auth(mode="token", enableK8sTokenAuth=True), head_container(volumeMounts=[mount]))
    assert [m for m in ray(pod)["volumeMounts"] if m["name"] == "ray-token"] == [mount]


@pytest.mark.parametrize(
    ("options", "needed"),
    [
        (None, False),
        ({"mode": "disabled"}, False),
        ({"mode": "token"}, True),
        ({}, True),  # a trap of the contract: made, and used by nobody
        ({"mode": "token", "secretName": "mine"}, False),
        ({"mode": "token", "enableK8sTokenAuth": True}, False),
    ],
)
def test_whether_a_secret_is_made(options: Json | None, needed: bool) -> None:
    parts = [] if options is None else [auth(**options)]
    assert needs_secret(cluster(*parts)) is needed


def test_the_secret() -> None:
    made = auth_secret(cluster(auth(mode="token")))
    assert made["metadata"]["name"] == "c"
    assert made["metadata"]["labels"] == {"ray.io/cluster": "c"}
    assert made["metadata"]["ownerReferences"][0]["controller"] is True
    assert made.keys() == {"apiVersion", "kind", "metadata"}, "no token: a plan may be shown to anybody"


def test_the_secret_of_a_long_name() -> None:
    assert secret_name(cluster(name="a" * 3 + "1" * 50)) == "r" + "1" * 49
