"""Only entries of ours are told whom to trust."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kuberay_op.webhook.admission import PATHS
from kuberay_op.webhook.injection import hosts, injection
from kuberay_op.webhook.manifests import by_service, by_url, configuration, service

Json = dict[str, Any]
OURS = configuration("c", by_service("webhook-service", "ray-system"))
TRUST = base64.b64encode(b"ca").decode()


def test_the_configuration_is_the_reference_s() -> None:
    # Contract 01 §3.7.
    rows = [
        (entry["name"], entry["clientConfig"]["service"]["path"], entry["rules"][0]["resources"])
        for entry in OURS["webhooks"]
    ]
    assert rows == [
        ("vraycluster.kb.io", "/validate-ray-io-v1-raycluster", ["rayclusters"]),
        ("vrayjob.kb.io", "/validate-ray-io-v1-rayjob", ["rayjobs"]),
        ("vrayservice.kb.io", "/validate-ray-io-v1-rayservice", ["rayservices"]),
    ]
    for entry in OURS["webhooks"]:
        assert (entry["failurePolicy"], entry["sideEffects"]) == ("Fail", "None")
        assert entry["admissionReviewVersions"] == ["v1"]
        assert entry["rules"][0]["operations"] == ["CREATE", "UPDATE"]
    ports = service("webhook-service", "ray-system", {"a": "b"}, 9443)["spec"]["ports"]
    assert [(port["port"], port["targetPort"]) for port in ports] == [(443, 9443)]


@pytest.mark.parametrize(
    ("way", "found"),
    [
        (by_service("s", "ns"), {"s.ns.svc"}),
        (by_url("https://127.0.0.1:9443"), {"127.0.0.1"}),
        (by_url("https://[::1]:9443"), {"::1"}),
        (by_url("https://example.com"), {"example.com"}),
    ],
)
def test_the_hosts_that_a_certificate_must_name(way: Any, found: set[str]) -> None:
    assert hosts(configuration("c", way), PATHS) == found


def test_each_entry_of_ours_gets_the_bundle_once() -> None:
    patch = injection(OURS, PATHS, b"ca")
    assert patch[:2] == [
        {"op": "test", "path": "/webhooks/0/name", "value": "vraycluster.kb.io"},
        {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": TRUST},
    ]
    assert len(patch) == 6
    told: Json = {
        "webhooks": [
            {**entry, "clientConfig": {**entry["clientConfig"], "caBundle": TRUST}}
            for entry in OURS["webhooks"]
        ]
    }
    assert injection(told, PATHS, b"ca") == []
    assert len(injection(told, PATHS, b"another")) == 6


@pytest.mark.parametrize(
    "client",
    [
        {"service": {"name": "s", "namespace": "n", "path": "/other"}},
        {"service": {"name": "s", "namespace": "n"}},
        {"url": "https://x/other"},
        {},
    ],
)
def test_entries_of_others_are_left_alone(client: Json) -> None:
    foreign: Json = {"webhooks": [{"name": "x", "clientConfig": client}]}
    assert injection(foreign, PATHS, b"ca") == []
    assert hosts(foreign, PATHS) == set()
    assert injection({}, PATHS, b"ca") == []
