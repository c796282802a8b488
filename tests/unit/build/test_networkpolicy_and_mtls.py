"""Contract 02 §10 and §11.1: NetworkPolicies, and the objects of cert-manager."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.api.view import Json
from kuberay_op.build import mtls
from kuberay_op.build.networkpolicy import network_policies
from kuberay_op.config import Config
from kuberay_op.testing import make
from tests.unit.build.shapes import HOST, UID, cluster

PODS = {"podSelector": {"matchLabels": {"ray.io/cluster": "c"}}}
DNS: Json = {"ports": [{"port": 53, "protocol": "UDP"}]}


def policy(**config: Any) -> make.Part:
    return make.cluster(networkPolicy=config)


def test_none_unless_asked() -> None:
    assert network_policies(cluster(make.workers())) == []


def test_one_for_the_head_and_one_for_each_group() -> None:
    made = network_policies(cluster(policy(), make.workers(1, "a"), make.workers(1, "b")))
    common = {
        "ray.io/cluster": "c",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    assert [p["metadata"]["name"] for p in made] == ["c-head", "c-workers-a", "c-workers-b"]
    assert [p["metadata"]["labels"] for p in made] == [
        {**common, "ray.io/group": group} for group in ("headgroup", "a", "b")
    ]
    assert [p["metadata"]["ownerReferences"][0]["uid"] for p in made] == [UID] * 3
    assert [p["spec"]["podSelector"]["matchLabels"] for p in made] == [
        {"ray.io/cluster": "c", "ray.io/node-type": "head"},
        {"ray.io/cluster": "c", "ray.io/node-type": "worker", "ray.io/group": "a"},
        {"ray.io/cluster": "c", "ray.io/node-type": "worker", "ray.io/group": "b"},
    ]


@pytest.mark.parametrize(
    ("config", "types"),
    [
        ({}, ["Ingress", "Egress"]),
        ({"mode": "DenyAll"}, ["Ingress", "Egress"]),
        ({"mode": "DenyAllIngress"}, ["Ingress"]),
        ({"mode": "DenyAllEgress"}, ["Egress"]),
    ],
)
def test_modes(config: Json, types: list[str]) -> None:
    [head] = network_policies(cluster(policy(**config)))
    spec = {key: value for key, value in head["spec"].items() if key != "podSelector"}
    wanted: Json = {"policyTypes": types}
    if "Ingress" in types:
        wanted["ingress"] = [{"from": [PODS]}]
    if "Egress" in types:
        wanted["egress"] = [{"to": [PODS]}]  # §16.6 48: no rule for DNS
    assert spec == wanted


def test_rules_of_the_user() -> None:
    plain: Json = {"ports": [{"port": 1}]}
    explicit: Json = {"ports": [{"port": 1, "protocol": "TCP"}]}
    part = policy(
        head={"ingressRules": [plain], "egressRules": [DNS]},
        worker={"egressRules": [DNS]},
        workerGroups=[{"groupName": "b", "ingressRules": [plain]}],
    )
    head, a, b = network_policies(cluster(part, make.workers(1, "a"), make.workers(1, "b")))
    assert head["spec"]["ingress"] == [{"from": [PODS]}, explicit]
    assert head["spec"]["egress"] == [{"to": [PODS]}, DNS]
    assert (a["spec"]["ingress"], a["spec"]["egress"]) == ([{"from": [PODS]}], [{"to": [PODS]}, DNS])
    assert (b["spec"]["ingress"], b["spec"]["egress"]) == ([{"from": [PODS]}, explicit], [{"to": [PODS]}])


def job(api_version: str = "ray.io/v1") -> make.Part:
    return make.owned_by({"apiVersion": api_version, "kind": "RayJob", "metadata": {"name": "j"}})


MODE = make.labels({"ray.io/job-submission-mode": "K8sJobMode"})


def submitter(port: int) -> Json:
    labels = {"ray.io/originated-from-cr-name": "j", "ray.io/originated-from-crd": "RayJob"}
    return {
        "from": [{"podSelector": {"matchLabels": labels}}],
        "ports": [{"protocol": "TCP", "port": port}],
    }


@pytest.mark.parametrize(
    ("parts", "extra"),
    [
        ([MODE, job()], [submitter(8265)]),
        ([MODE, job(), make.head(rayStartParams={"dashboard-port": "9"})], [submitter(9)]),
        ([MODE, job("other.io/v1")], []),
        ([MODE], []),
        ([job()], []),
        ([make.labels({"ray.io/job-submission-mode": "HTTPMode"}), job()], []),
    ],
)
def test_the_submitter_may_reach_the_head(parts: list[make.Part], extra: list[Json]) -> None:
    head, worker = network_policies(cluster(policy(), make.workers(), *parts))
    assert head["spec"]["ingress"] == [{"from": [PODS]}, *extra]
    assert worker["spec"]["ingress"] == [{"from": [PODS]}]


# --- §11.1

CA_SECRET = "c-ca-secret-4b1a3a2c"
LEAF = {
    "duration": "2160h",
    "renewBefore": "360h",
    "usages": ["digital signature", "key encipherment", "server auth", "client auth"],
    "issuerRef": {"name": "ray-ca-issuer-c", "kind": "Issuer", "group": "cert-manager.io"},
}


@pytest.mark.parametrize(
    ("obj", "kind", "name", "component", "spec"),
    [
        (
            mtls.selfsigned_issuer(cluster()),
            "Issuer",
            "ray-selfsigned-issuer-c",
            "selfsigned-issuer",
            {"selfSigned": {}},
        ),
        (
            mtls.ca_certificate(cluster()),
            "Certificate",
            "ray-ca-certificate-c",
            "ca-certificate",
            {
                "secretName": CA_SECRET,
                "isCA": True,
                "commonName": "ray-ca-c",
                "privateKey": {"algorithm": "RSA", "size": 4096},
                "duration": "87600h",
                "renewBefore": "720h",
                "usages": ["cert sign", "crl sign"],
                "issuerRef": {
                    "name": "ray-selfsigned-issuer-c",
                    "kind": "Issuer",
                    "group": "cert-manager.io",
                },
            },
        ),
        (
            mtls.ca_issuer(cluster()),
            "Issuer",
            "ray-ca-issuer-c",
            "ca-issuer",
            {"ca": {"secretName": CA_SECRET}},
        ),
        (
            mtls.head_certificate(cluster(), Config(), ["10.0.0.2", "10.0.0.10", "10.0.0.2"]),
            "Certificate",
            "ray-head-cert-c",
            "head-certificate",
            {
                **LEAF,
                "secretName": "ray-head-secret-c",
                "dnsNames": [HOST, "localhost"],
                "ipAddresses": ["10.0.0.10", "10.0.0.2", "127.0.0.1"],
            },
        ),
        (
            mtls.worker_certificate(cluster(), []),
            "Certificate",
            "ray-worker-cert-c",
            "worker-certificate",
            {
                **LEAF,
                "secretName": "ray-worker-secret-c",
                "dnsNames": ["localhost"],
                "ipAddresses": ["127.0.0.1"],
            },
        ),
    ],
)
def test_objects_of_cert_manager(obj: Json, kind: str, name: str, component: str, spec: Json) -> None:
    assert (obj["apiVersion"], obj["kind"], obj["metadata"]["name"]) == ("cert-manager.io/v1", kind, name)
    assert obj["metadata"]["namespace"] == "ns"
    assert obj["metadata"]["labels"] == {
        "ray.io/cluster": "c",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
        "app.kubernetes.io/component": component,
    }
    assert obj["metadata"]["ownerReferences"][0]["uid"] == UID
    assert obj["spec"] == spec
