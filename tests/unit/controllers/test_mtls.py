"""Contract 02 §11.1, §11.2 and §16.6: what becomes of the certificates of a cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.build import mtls as build
from kuberay_op.config import Config
from kuberay_op.controllers.mtls import address_news, adoption, issue_news
from kuberay_op.controllers.mtls_plan import addresses, expiring, not_ready, plan_pki, ready
from kuberay_op.frozen import freeze
from kuberay_op.plan.actions import Create, Update
from kuberay_op.testing import make
from kuberay_op.testing.pods import pod

Json = dict[str, Any]
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CONFIG = Config()
RAW = make.raycluster("c", make.namespace("ns"), make.stored(uid="12345678-9"), make.workers(2, "w"))
CLUSTER = RayCluster(RAW)


def stamp(ago: float) -> str:
    return (NOW - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


def head(ip: str = "10.0.0.1", **more: Any) -> Json:
    return pod(RAW, "h", "head", "headgroup", status={"podIP": ip}, **more)


def worker(name: str, ip: str, **more: Any) -> Json:
    return pod(RAW, name, "worker", "w", status={"podIP": ip}, **more)


def stored(obj: Json, *, is_ready: bool = True, seen: bool = True, since: float = 3600.0) -> Json:
    obj["metadata"] |= {
        "uid": obj["metadata"]["name"],
        "generation": 2,
        "resourceVersion": "1",
        "creationTimestamp": stamp(7200),
    }
    obj["status"] = {
        "revision": 1,
        "notAfter": stamp(-30 * 86400),
        "conditions": [
            {
                "type": "Ready",
                "status": str(is_ready),
                "observedGeneration": 2 if seen else 1,
                "lastTransitionTime": stamp(since),
            }
        ],
    }
    return obj


def pki(pods: list[Json], **worker_state: Any) -> list[Json]:
    """All five objects as they should be for these Pods."""
    return [
        stored(build.selfsigned_issuer(CLUSTER)),
        stored(build.ca_certificate(CLUSTER)),
        stored(build.ca_issuer(CLUSTER)),
        stored(build.head_certificate(CLUSTER, CONFIG, addresses(pods, "head"))),
        stored(build.worker_certificate(CLUSTER, addresses(pods, "worker")), **worker_state),
    ]


def test_all_five_are_made_in_order() -> None:
    plan = plan_pki(CLUSTER, CONFIG, [], [], NOW)
    assert [(type(step), step.obj["kind"], step.obj["metadata"]["name"]) for step in plan.actions] == [
        (Create, "Issuer", "ray-selfsigned-issuer-c"),
        (Create, "Certificate", "ray-ca-certificate-c"),
        (Create, "Issuer", "ray-ca-issuer-c"),
        (Create, "Certificate", "ray-head-cert-c"),
        (Create, "Certificate", "ray-worker-cert-c"),
    ]
    leaves = [step.obj["spec"] for step in plan.actions[3:]]
    assert leaves[0]["dnsNames"] == ["c-head-svc.ns.svc.cluster.local", "localhost"]
    assert leaves[1]["dnsNames"] == ["localhost"]
    assert [leaf["ipAddresses"] for leaf in leaves] == [["127.0.0.1"], ["127.0.0.1"]]


def test_at_rest_there_is_nothing_to_do() -> None:
    pods = [head(), worker("a", "10.0.0.2")]
    assert plan_pki(CLUSTER, CONFIG, pods, [freeze(each) for each in pki(pods)], NOW).actions == []


def test_the_first_three_are_made_once_and_never_changed() -> None:
    children = pki([])
    for child in children[:3]:
        child["spec"] = {"mine": True}
        child["metadata"]["labels"] = {}
    assert plan_pki(CLUSTER, CONFIG, [], children, NOW).actions == []


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (worker("a", "10.0.0.2"), ["10.0.0.2"]),
        (worker("a", "fd00::2"), ["fd00::2"]),
        (worker("a", ""), []),  # no address yet
        (worker("a", "10.0.0.2", phase="Succeeded"), []),
        (worker("a", "10.0.0.2", phase="Failed"), []),
        (worker("a", "10.0.0.2", phase="Pending"), ["10.0.0.2"]),
        (worker("a", "10.0.0.2", terminating=True), []),
        (head("10.0.0.2"), []),  # of the other role
    ],
)
def test_which_addresses_count(found: Json, wanted: list[str]) -> None:
    assert list(addresses([found], "worker")) == wanted


def test_a_new_address_is_added_and_nothing_else_is_touched() -> None:
    before, after = (
        [head(), worker("a", "10.0.0.2")],
        [head(), worker("a", "10.0.0.2"), worker("b", "10.0.0.10")],
    )
    children = pki(before)
    children[4]["spec"]["duration"] = "1h"  # a user's
    [step] = plan_pki(CLUSTER, CONFIG, after, children, NOW).actions
    assert isinstance(step, Update)
    assert step.patch == {"spec": {"ipAddresses": ["10.0.0.10", "10.0.0.2", "127.0.0.1"]}}
    assert step.obj["metadata"]["name"] == "ray-worker-cert-c"
    # Should it be gone by now it is made anew, as a whole.
    assert step.obj["spec"].keys() == children[4]["spec"].keys()
    assert step.obj["metadata"]["ownerReferences"][0]["controller"] is True


@pytest.mark.parametrize(
    ("listed", "changes"),
    [
        (["127.0.0.1", "10.0.0.2"], False),  # order is nothing
        (["10.0.0.2", "127.0.0.1", "127.0.0.1"], False),
        (["10.0.0.2", "10.0.0.2"], True),  # §16.6 46: as long, and one is missing
        (["10.0.0.2"], True),
        (["10.0.0.2", "10.0.0.9", "127.0.0.1"], True),
    ],
)
def test_addresses_are_compared_as_sets(listed: list[str], changes: bool) -> None:
    pods = [worker("a", "10.0.0.2")]
    children = pki(pods)
    children[4]["spec"]["ipAddresses"] = listed
    assert bool(plan_pki(CLUSTER, CONFIG, pods, children, NOW).actions) is changes


def test_labels_of_ours_come_back_and_others_stay() -> None:
    children = pki([])
    children[3]["metadata"]["labels"] = {"team": "a"}
    [step] = plan_pki(CLUSTER, CONFIG, [], children, NOW).actions
    assert isinstance(step, Update)
    assert step.patch == {
        "metadata": {
            "labels": {
                "app.kubernetes.io/name": "kuberay",
                "app.kubernetes.io/created-by": "kuberay-operator",
                "app.kubernetes.io/component": "head-certificate",
                "ray.io/cluster": "c",
            }
        }
    }


@pytest.mark.parametrize(
    ("state", "waits"),
    [
        ({"is_ready": True}, None),
        ({"is_ready": False, "since": 10.0}, 20.0),  # being issued: gather addresses meanwhile
        ({"is_ready": False, "since": 31.0}, None),  # it hangs; perhaps this helps
    ],
)
def test_a_certificate_being_issued_is_left_alone_for_a_while(state: Json, waits: float | None) -> None:
    # §16.6 44: each change begins the issue anew.
    plan = plan_pki(CLUSTER, CONFIG, [worker("a", "10.0.0.2")], pki([], **state), NOW)
    assert plan.wait == waits
    assert bool(plan.actions) is (waits is None)


def test_a_certificate_that_nobody_has_looked_at_yet_is_left_alone() -> None:
    children = pki([])
    children[4]["status"] = {}
    children[4]["metadata"]["creationTimestamp"] = stamp(5)
    plan = plan_pki(CLUSTER, CONFIG, [worker("a", "10.0.0.2")], children, NOW)
    assert (plan.wait, plan.actions) == (25.0, [])


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        ({}, True),
        ({"is_ready": False}, False),
        ({"seen": False}, False),  # Ready, but for an older generation
    ],
)
def test_ready_means_at_the_current_generation(state: Json, answer: bool) -> None:
    children = pki([], **state)
    assert ready(children[4]) is answer
    assert not_ready(CLUSTER, children) == ([] if answer else ["ray-worker-cert-c"])


def test_missing_certificates_are_not_ready() -> None:
    assert not_ready(CLUSTER, []) == ["ray-head-cert-c", "ray-worker-cert-c"]
    nothing_said = stored(build.worker_certificate(CLUSTER, []))
    del nothing_said["status"]
    assert not ready(nothing_said)


@pytest.mark.parametrize(("hours", "soon"), [(23, True), (25, False), (-1, True)])
def test_what_ends_within_a_day(hours: int, soon: bool) -> None:
    children = pki([])
    children[1]["status"]["notAfter"] = stamp(-hours * 3600)  # the authority counts, too
    assert [name for name, _ in expiring(children, NOW)] == (["ray-ca-certificate-c"] if soon else [])


def test_a_secret_gets_its_certificate_as_a_plain_owner_once() -> None:
    certificate = stored(build.worker_certificate(CLUSTER, []))
    other = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x"}
    secret: Json = {"metadata": {"name": "s", "resourceVersion": "7", "ownerReferences": [other]}}
    body = adoption(secret, certificate)
    assert body == {
        "metadata": {
            "resourceVersion": "7",
            "ownerReferences": [
                other,
                {
                    "apiVersion": "cert-manager.io/v1",
                    "kind": "Certificate",
                    "name": "ray-worker-cert-c",
                    "uid": "ray-worker-cert-c",
                },
            ],
        }
    }
    assert adoption(body, certificate) is None  # §16.6 46: not written again


def test_what_wakes_the_controllers() -> None:
    before = freeze(worker("a", ""))
    assert address_news(before, freeze(worker("a", "10.0.0.2")))
    assert not address_news(before, freeze(worker("a", "", marks={"x": "y"})))
    issued = freeze(stored(build.worker_certificate(CLUSTER, [])))
    assert issue_news(freeze(stored(build.worker_certificate(CLUSTER, []), is_ready=False)), issued)
    assert not issue_news(issued, freeze({**issued, "metadata": {**issued["metadata"], "labels": {}}}))
