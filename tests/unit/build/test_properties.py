"""What holds for every builder: its input stays as it is, twice gives the same, names fit."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.view import Json
from kuberay_op.build import mtls
from kuberay_op.build.auth import auth_secret
from kuberay_op.build.gcs_ft import storage_claim
from kuberay_op.build.ingress import head_ingress
from kuberay_op.build.networkpolicy import network_policies
from kuberay_op.build.pod import head_pod, worker_pod
from kuberay_op.build.route import head_route
from kuberay_op.build.service import head_service, headless_service, serve_service
from kuberay_op.config import Config
from kuberay_op.frozen import freeze
from kuberay_op.testing import make
from tests.unit.build.shapes import gated, head_container, head_pod_spec, head_template

#: Everything on, so that every branch adds something.
CONFIG: Final = gated(
    "RayClusterMTLS",
    "RayClusterHistoryServer",
    default_container_envs=({"name": "D", "value": "1"},),
    head_sidecar_containers=({"name": "operators", "image": "x", "env": [{"name": "X", "value": "1"}]},),
    worker_sidecar_containers=({"name": "operators", "image": "x"},),
    default_pod_labels={"team": "x"},
    default_pod_annotations={"note": "x"},
)

#: Parts of a RayCluster, any of which may be there or not.
PARTS: Final[tuple[make.Part, ...]] = (
    make.autoscaling(
        "v2", env=[{"name": "E", "value": "1"}], volumeMounts=[{"name": "v", "mountPath": "/v"}]
    ),
    make.autoscaling("v1", resources={}),
    make.redis(redisPassword={"valueFrom": {"secretKeyRef": {"name": "r", "key": "k"}}}),
    make.cluster(gcsFaultToleranceOptions={"backend": "rocksdb", "storage": {"size": "2Gi"}}),
    make.annotations({"ray.io/ft-enabled": "true", "ray.io/enable-serve-service": "true"}),
    make.annotations({"ray.io/overwrite-container-cmd": "true"}),
    make.cluster(authOptions={"mode": "token"}),
    make.cluster(authOptions={"mode": "token", "enableK8sTokenAuth": True}),
    make.cluster(tlsOptions={"enabled": True}),
    make.cluster(
        historyServerOptions={"collectorOptions": {"image": "c", "env": [{"name": "F", "value": "1"}]}}
    ),
    make.cluster(networkPolicy={"head": {"ingressRules": [{"ports": [{"port": 1}]}]}}),
    make.cluster(rayVersion="2.53.0", headServiceAnnotations={"a": "b"}),
    make.labels({"ray.io/originated-from-crd": "RayService", "ray.io/originated-from-cr-name": "s"}),
    make.head(
        headService={"metadata": {"labels": {"a": "b"}}, "spec": {"ports": [{"name": "p", "port": 1}]}}
    ),
    make.head(resources={"CPU": "2", "X": "1"}, labels={"k": "v"}, rayStartParams={"port": "7"}),
    make.head(ingressOptions={"host": "h", "tls": [{"secretName": "s"}]}),
    head_container(command=["run"], args=["me"], env=[{"name": "A", "value": "1"}]),
    head_container(resources={"limits": {"cpu": "1", "memory": "1Gi", "google.com/tpu": "4"}}),
    head_container(ports=[{"name": "serve", "containerPort": 1}, {"containerPort": 2}]),
    head_pod_spec(initContainers=[{"name": "own", "image": "x"}], volumes=[{"name": "v", "emptyDir": {}}]),
    head_template(name="mine", labels={"a": "b"}, annotations={"c": "d"}),
    make.workers(2, "a"),
    make.workers(1, "b", numOfHosts=4, labels={"k": "v"}, resources={"Y": "1"}),
)

NAMES: Final = st.from_regex(r"[a-z]([-a-z0-9]{0,51}[a-z0-9])?", fullmatch=True)
CLUSTERS: Final = st.builds(
    lambda name, parts: make.raycluster(name, make.namespace("ns"), make.stored(), *parts),
    NAMES,
    st.lists(st.sampled_from(PARTS), unique_by=id, max_size=12),
)

Builder = Callable[[RayCluster, Config], Any]


def workers(cluster: RayCluster, config: Config) -> list[Json]:
    return [
        worker_pod(cluster, group, config, replica_index=i, replica_name="r", host_index=1)
        for i, group in enumerate(cluster.spec.worker_group_specs)
    ]


BUILDERS: Final[dict[str, Builder]] = {
    "head_pod": head_pod,
    "worker_pod": workers,
    "head_service": head_service,
    "headless_service": lambda cluster, _: headless_service(cluster),
    "serve_service": lambda cluster, _: serve_service(cluster),
    "head_ingress": lambda cluster, _: head_ingress(cluster),
    "head_route": lambda cluster, _: head_route(cluster),
    "network_policies": lambda cluster, _: network_policies(cluster),
    "storage_claim": lambda cluster, _: storage_claim(cluster),
    "auth_secret": lambda cluster, _: auth_secret(cluster),
    "selfsigned_issuer": lambda cluster, _: mtls.selfsigned_issuer(cluster),
    "ca_certificate": lambda cluster, _: mtls.ca_certificate(cluster),
    "ca_issuer": lambda cluster, _: mtls.ca_issuer(cluster),
    "head_certificate": lambda cluster, config: mtls.head_certificate(cluster, config, ["10.0.0.1"]),
    "worker_certificate": lambda cluster, _: mtls.worker_certificate(cluster, ["10.0.0.1"]),
}

DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")


def made(built: Any) -> list[Json]:
    """All objects that a builder gave."""
    if built is None:
        return []
    return built if isinstance(built, list) else [built]


def scribble(value: Any) -> None:
    """Change everything in an object."""
    if isinstance(value, dict):
        for entry in value.values():
            scribble(entry)
        value["scribble"] = True
    elif isinstance(value, list):
        for entry in value:
            scribble(entry)
        value.append("scribble")


@pytest.mark.parametrize("name", BUILDERS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(raw=CLUSTERS)
def test_builders_change_nothing_and_give_the_same_twice(name: str, raw: Json) -> None:
    build = BUILDERS[name]
    before = copy.deepcopy(raw)
    first = build(RayCluster(raw), CONFIG)
    kept = copy.deepcopy(first)
    scribble(first)  # nothing of what was given may be in what was made
    assert raw == before
    assert build(RayCluster(raw), CONFIG) == kept
    assert build(RayCluster(freeze(raw)), CONFIG) == kept, "objects of a cache refuse every change"


@pytest.mark.parametrize("name", BUILDERS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(raw=CLUSTERS)
def test_names_and_labels_fit(name: str, raw: Json) -> None:
    for obj in made(BUILDERS[name](RayCluster(raw), CONFIG)):
        metadata = obj["metadata"]
        text = metadata.get("name") or metadata["generateName"] + "abcde"
        longest = 63 if obj["kind"] in ("Service", "Pod", "Job", "Route", "Secret") else 253
        assert DNS_LABEL.fullmatch(text), f"{obj['kind']} {text}"
        assert len(text) <= longest, f"{obj['kind']} {text}"
        for value in metadata.get("labels", {}).values():
            assert len(value) <= 63
            assert LABEL_VALUE.fullmatch(value), value
