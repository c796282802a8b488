"""Contract 02 §8 and §9.2–§9.3: Services, Ingress, Route."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.api.view import Json
from kuberay_op.build.ingress import head_ingress
from kuberay_op.build.pod import head_pod
from kuberay_op.build.route import head_route
from kuberay_op.build.service import head_ports, head_service, headless_service, serve_service
from kuberay_op.config import Config
from kuberay_op.errors import Invalid
from kuberay_op.testing import make
from tests.unit.build.shapes import UID, cluster, head_container, head_template

FIVE = {
    "ray.io/cluster": "c",
    "ray.io/node-type": "head",
    "ray.io/identifier": "c-head",
    "app.kubernetes.io/name": "kuberay",
    "app.kubernetes.io/created-by": "kuberay-operator",
}
DEFAULT_PORTS = {"client": 10001, "gcs-server": 6379, "dashboard": 8265, "metrics": 8080, "serve": 8000}


def declared(*entries: Json) -> make.Part:
    return head_container(ports=list(entries))


# --- §8.1 ports


@pytest.mark.parametrize(
    ("entries", "wanted"),
    [
        ([], DEFAULT_PORTS),
        ([{"name": "dashboard", "containerPort": 1}], {"dashboard": 1, "metrics": 8080}),
        ([{"containerPort": 7, "protocol": "UDP"}], {"7-port": 7, "metrics": 8080}),
        ([{"name": "metrics", "containerPort": 9}], {"metrics": 9}),
        ([{"name": "a", "containerPort": 1}, {"name": "a", "containerPort": 2}], {"a": 2, "metrics": 8080}),
    ],
)
def test_ports(entries: list[Json], wanted: dict[str, int]) -> None:
    found = cluster(declared(*entries), make.head(rayStartParams={"dashboard-port": "1234"}))
    assert head_ports(found) == wanted


# --- §8.2 the head Service


def test_the_head_service() -> None:
    service = head_service(cluster(), Config())
    assert service["metadata"] == {
        "name": "c-head-svc",
        "namespace": "ns",
        "labels": FIVE,
        "ownerReferences": [
            {
                "apiVersion": "ray.io/v1",
                "kind": "RayCluster",
                "name": "c",
                "uid": UID,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert service["spec"] == {
        "selector": FIVE,
        "ports": [
            {"name": name, "port": port, "appProtocol": "tcp"} for name, port in sorted(DEFAULT_PORTS.items())
        ],
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
    }


@pytest.mark.parametrize(
    ("kind", "switch", "headless"),
    [
        ("", False, True),
        ("ClusterIP", False, True),
        ("NodePort", False, False),
        ("LoadBalancer", False, False),
        ("", True, False),
        ("ClusterIP", True, False),
    ],
)
def test_when_it_is_headless(kind: str, switch: bool, headless: bool) -> None:
    part = make.head(**({"serviceType": kind} if kind else {}))
    spec = head_service(cluster(part), Config(enable_head_cluster_ip_service=switch))["spec"]
    assert spec.get("type", "") == kind
    assert (spec.get("clusterIP"), spec.get("publishNotReadyAddresses")) == (
        ("None", True) if headless else (None, None)
    )


def test_annotations_of_the_head_service() -> None:
    part = make.cluster(headServiceAnnotations={"a": "b"})
    assert head_service(cluster(part), Config())["metadata"]["annotations"] == {"a": "b"}


def test_the_application_of_the_template_shows_in_labels_and_selector() -> None:
    part = head_template(labels={"app.kubernetes.io/name": "mine", "x": "y"})
    service = head_service(cluster(part), Config())
    wanted = {**FIVE, "app.kubernetes.io/name": "mine"}
    assert service["metadata"]["labels"] == wanted
    assert service["spec"]["selector"] == wanted


OVERRIDES: list[make.Part] = [
    head_template(labels={"ray.io/identifier": "mine"}),
    head_template(labels={"app.kubernetes.io/created-by": "mine"}),
    make.head(labels={"app.kubernetes.io/name": "mine"}),
    head_template(labels={"ray.io/cluster": "mine", "ray.io/node-type": "mine"}),
]


@pytest.mark.parametrize("part", OVERRIDES)
def test_the_selector_finds_the_head_whatever_the_user_calls_it(part: make.Part) -> None:
    """Decided (§16.3 28): the labels by which clients find the Service stay, the selector follows the Pod."""
    found = cluster(part)
    service = head_service(found, Config())
    pod = head_pod(found, Config())["metadata"]["labels"]
    assert service["metadata"]["labels"] == FIVE
    assert service["spec"]["selector"].items() <= pod.items()
    assert service["spec"]["selector"].keys() == FIVE.keys()


USER: Json = {
    "metadata": {
        "name": "mine",
        "namespace": "other",
        "labels": {"x": "y", "ray.io/cluster": "other"},
        "annotations": {"a": "user", "b": "user"},
    },
    "spec": {
        "type": "NodePort",
        "selector": {"mine": "true"},
        "ports": [{"name": "extra", "port": 1}],
        "externalTrafficPolicy": "Local",
    },
}


def test_a_head_service_of_the_user() -> None:
    parts = (make.head(headService=USER, serviceType="LoadBalancer"), declared({"containerPort": 7}))
    found = cluster(*parts, make.cluster(headServiceAnnotations={"a": "cluster"}))
    service = head_service(found, Config())
    assert service["metadata"]["name"] == "mine"
    assert service["metadata"]["namespace"] == "ns"
    assert service["metadata"]["labels"] == {"x": "y", **FIVE}
    assert service["metadata"]["annotations"] == {"a": "cluster", "b": "user"}
    assert service["spec"] == {
        "type": "NodePort",
        "selector": FIVE,
        "externalTrafficPolicy": "Local",
        "ports": [
            {"name": "extra", "port": 1},
            {"name": "7-port", "port": 7, "appProtocol": "tcp"},
            {"name": "metrics", "port": 8080, "appProtocol": "tcp"},
        ],
    }


@pytest.mark.parametrize("own", [{}, {"spec": {}}, {"metadata": {}}])
def test_an_empty_head_service_of_the_user_gets_our_name_and_type_but_is_not_headless(own: Json) -> None:
    service = head_service(cluster(make.head(headService=own, serviceType="ClusterIP")), Config())
    assert service["metadata"]["name"] == "c-head-svc"
    assert service["spec"]["type"] == "ClusterIP"
    assert "clusterIP" not in service["spec"]


# --- §8.3 hosts of a replica


@pytest.mark.parametrize("hosts", [0, 1])
def test_no_headless_service_for_single_hosts(hosts: int) -> None:
    assert headless_service(cluster(make.workers(1, numOfHosts=hosts))) is None


def test_the_headless_service() -> None:
    service = headless_service(cluster(make.workers(1), make.workers(1, "b", numOfHosts=2)))
    assert service is not None
    assert service["metadata"]["name"] == "c-headless"
    assert service["metadata"]["labels"] == {"ray.io/headless-worker-svc": "c"}
    assert service["spec"] == {
        "type": "ClusterIP",
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {"ray.io/cluster": "c", "ray.io/node-type": "worker"},
    }


# --- §8.4 Serve

SERVE = make.annotations({"ray.io/enable-serve-service": "true"})


@pytest.mark.parametrize("value", ["True", "yes", ""])
def test_no_serve_service_unless_exactly_asked(value: str) -> None:
    assert serve_service(cluster(make.annotations({"ray.io/enable-serve-service": value}))) is None


def test_the_serve_service() -> None:
    service = serve_service(cluster(SERVE, make.head(serviceType="NodePort")))
    assert service is not None
    assert service["metadata"]["name"] == "c-serve-svc"
    assert service["metadata"]["labels"] == {
        "ray.io/originated-from-cr-name": "c",
        "ray.io/originated-from-crd": "RayCluster",
        "ray.io/serve": "c-serve",
    }
    assert service["spec"] == {
        "type": "NodePort",
        "selector": {"ray.io/cluster": "c"},
        "ports": [{"name": "serve", "port": 8000}],
    }


def test_which_ports_serve() -> None:
    names = ("serve-grpc", "serve", "server", "serve2")
    entries = [{"name": name, "containerPort": 9000 + i} for i, name in enumerate(names)]
    service = serve_service(cluster(SERVE, declared(*entries)))
    assert service is not None
    assert service["spec"] == {
        "selector": {"ray.io/cluster": "c"},
        "ports": [{"name": "serve", "port": 9001}, {"name": "serve-grpc", "port": 9000}],
    }


def test_no_port_serves() -> None:
    with pytest.raises(Invalid, match="no port of the head's Ray container is named 'serve'"):
        serve_service(cluster(SERVE, declared({"name": "dashboard", "containerPort": 1})))


# --- §9.2 Ingress

FOUR = {key: value for key, value in FIVE.items() if key != "ray.io/node-type"}


def ingress_spec(*parts: make.Part) -> Json:
    spec: Json = head_ingress(cluster(*parts))["spec"]
    return spec


def rule(path: str = "/", kind: str = "Prefix", name: str = "c-head-svc", port: int = 8265) -> Json:
    backend = {"service": {"name": name, "port": {"number": port}}}
    return {"http": {"paths": [{"path": path, "pathType": kind, "backend": backend}]}}


def options(**fields: Any) -> make.Part:
    return make.head(ingressOptions=fields)


TLS = [{"hosts": ["h"], "secretName": "s"}]


@pytest.mark.parametrize(
    ("part", "wanted"),
    [
        (make.cluster(), {"rules": [rule()]}),
        (options(host="h"), {"rules": [{"host": "h", **rule()}]}),
        (options(path="/x", pathType="Exact"), {"rules": [rule("/x", "Exact")]}),
        (options(tls=TLS), {"rules": [rule()], "tls": TLS}),
        (declared({"name": "dashboard", "containerPort": 1}), {"rules": [rule(port=1)]}),
        (declared({"name": "other", "containerPort": 1}), {"rules": [rule()]}),
        (make.head(headService={"metadata": {"name": "mine"}}), {"rules": [rule(name="mine")]}),
        (
            make.annotations({"kubernetes.io/ingress.class": "nginx"}),
            {"rules": [rule()], "ingressClassName": "nginx"},
        ),
    ],
)
def test_the_ingress(part: make.Part, wanted: Json) -> None:
    assert ingress_spec(part) == wanted


def test_metadata_of_the_ingress() -> None:
    notes = {
        "kubernetes.io/ingress.class": "nginx",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",  # decided (§16.4 34): not passed on
        "nginx/x": "y",
    }
    metadata = head_ingress(cluster(make.annotations(notes)))["metadata"]
    assert metadata["name"] == "c-head-ingress"
    assert metadata["labels"] == FOUR
    assert metadata["annotations"] == {"nginx/x": "y"}
    assert metadata["ownerReferences"][0]["uid"] == UID


def test_a_long_name_loses_its_beginning() -> None:
    assert head_ingress(cluster(name="a" * 53))["metadata"]["name"] == "a" * 37 + "-head-ingress"


# --- §9.3 Route


def test_the_route() -> None:
    notes = {"kubernetes.io/ingress.class": "nginx", "x": "y"}
    route = head_route(cluster(make.annotations(notes), declared({"name": "dashboard", "containerPort": 1})))
    assert route["apiVersion"] == "route.openshift.io/v1"
    assert route["metadata"]["name"] == "c-head-route"
    assert route["metadata"]["labels"] == FOUR
    assert route["metadata"]["annotations"] == notes
    assert route["spec"] == {
        "to": {"kind": "Service", "name": "c-head-svc", "weight": 100},
        "port": {"targetPort": 1},
        "wildcardPolicy": "None",
    }


@pytest.mark.parametrize(
    ("namespace", "name"),
    [("ns", "a" * 49), ("n" * 40, "a" * 11), ("n" * 60, "a")],  # §16.4 35: always a name
)
def test_the_name_of_a_route_leaves_room_for_the_namespace(namespace: str, name: str) -> None:
    found = head_route(cluster(make.namespace(namespace), name="a" * 53))
    assert found["metadata"]["name"] == name
