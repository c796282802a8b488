"""Mutual TLS: the objects of cert-manager that give a cluster its own authority and certificates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kuberay_op.api import labels, names
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.view import Json
from kuberay_op.build import metadata
from kuberay_op.config import Config

API_VERSION: Final = "cert-manager.io/v1"
COMPONENT: Final = "app.kubernetes.io/component"

_LEAF_USAGES: Final = ("digital signature", "key encipherment", "server auth", "client auth")


def selfsigned_issuer(cluster: RayCluster) -> Json:
    """The issuer of the authority's own certificate."""
    name = names.selfsigned_issuer(cluster.name)
    return _object(cluster, "Issuer", name, "selfsigned-issuer", {"selfSigned": {}})


def ca_certificate(cluster: RayCluster) -> Json:
    """The authority's certificate: ten years, renewed a month early."""
    spec: Json = {
        "secretName": names.ca_secret(cluster.name, cluster.metadata.uid),
        "isCA": True,
        "commonName": f"ray-ca-{cluster.name}",
        "privateKey": {"algorithm": "RSA", "size": 4096},
        "duration": "87600h",
        "renewBefore": "720h",
        "usages": ["cert sign", "crl sign"],
        "issuerRef": _issuer(names.selfsigned_issuer(cluster.name)),
    }
    return _object(cluster, "Certificate", names.ca_certificate(cluster.name), "ca-certificate", spec)


def ca_issuer(cluster: RayCluster) -> Json:
    """The issuer that signs with that authority."""
    spec: Json = {"ca": {"secretName": names.ca_secret(cluster.name, cluster.metadata.uid)}}
    return _object(cluster, "Issuer", names.ca_issuer(cluster.name), "ca-issuer", spec)


def head_certificate(cluster: RayCluster, config: Config, pod_ips: Iterable[str]) -> Json:
    """The head's certificate, for its Service and these addresses."""
    hosts = {"localhost", metadata.head_host(cluster, config)}
    return _leaf(cluster, labels.HEAD, hosts, pod_ips)


def worker_certificate(cluster: RayCluster, pod_ips: Iterable[str]) -> Json:
    """The certificate that all workers share, for these addresses."""
    return _leaf(cluster, labels.WORKER, {"localhost"}, pod_ips)


def _leaf(cluster: RayCluster, node_type: str, hosts: Iterable[str], pod_ips: Iterable[str]) -> Json:
    spec: Json = {
        "secretName": names.tls_secret(cluster.name, node_type),
        "duration": "2160h",
        "renewBefore": "360h",
        "dnsNames": sorted(hosts),
        "ipAddresses": sorted({"127.0.0.1", *pod_ips}),
        "usages": list(_LEAF_USAGES),
        "issuerRef": _issuer(names.ca_issuer(cluster.name)),
    }
    name = names.certificate(cluster.name, node_type)
    return _object(cluster, "Certificate", name, f"{node_type}-certificate", spec)


def _issuer(name: str) -> Json:
    return {"name": name, "kind": "Issuer", "group": "cert-manager.io"}


def _object(cluster: RayCluster, kind: str, name: str, component: str, spec: Json) -> Json:
    own = {**metadata.common_labels(cluster), COMPONENT: component}
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": metadata.child_metadata(cluster, name, own),
        "spec": spec,
    }
