"""Names are those of the reference, so that its objects are found."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kuberay_op.api import names
from kuberay_op.api.formats import dns1035_label_problem, label_value_problem
from kuberay_op.api.names import MAX_NAME

#: A busy machine is no mistake in the code.
calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

LONG = "abcdefghij" * 7  # 70 characters


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a", "a"),
        ("a" * 50, "a" * 50),
        (LONG, LONG[20:]),
        ("1" + LONG[:49], "r" + LONG[:49]),
        ("x1" + LONG[:49], "r" + LONG[:49]),
        ("-a", "ra"),
        ("1a", "ra"),
        ("¿a", "ra"),
        ("٣a", "ra"),
        ("", ""),
    ],
)
def test_check_name_keeps_the_end(text: str, name: str) -> None:
    assert names.check_name(text) == name


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("a" * 63, "a" * 63),
        (LONG, LONG[7:]),
        ("1a", "1a"),
        ("-a", "ra"),
        ("x-" + "b" * 62, "r" + "b" * 62),
        ("", ""),
    ],
)
def test_check_label_keeps_the_end_and_digits(text: str, label: str) -> None:
    assert names.check_label(text) == label


def test_pod_names_keep_the_beginning() -> None:
    assert names.pod_name("A" + LONG, "head", generate=False) == "a" + LONG[:49] + "-head"
    assert names.head_pod("c") == "c-head-"
    assert names.head_pod("c", generate=False) == "c-head"
    assert names.worker_pod("c", "Big") == "c-big-worker-"
    assert names.worker_pod(LONG, "g") == LONG[:50] + "-worker-"


def test_route_names_leave_room_for_the_namespace() -> None:
    assert names.route_name("c", "default") == "c-head-route"
    assert names.route_name(LONG, "n" * 11) == LONG[:40]
    assert names.route_name("c" * 40, "n" * 45) == "c" * 6
    assert names.route_name("9c", "n" * 49) == "rc"
    assert names.route_name("cc", "n" * 50) == "c"
    assert names.route_name("cc", "n" * 63) == "c"  # the reference panics here


def test_names_of_objects() -> None:
    assert names.head_service("a") == "a-head-svc"
    assert names.serve_service("a") == "a-serve-svc"
    assert names.serve_label("a") == "a-serve"
    assert names.headless_service("a") == "a-headless"
    assert names.ingress("a") == "a-head-ingress"
    assert names.auth_secret("1a") == "ra"
    assert names.service_account("a" * 53) == "a" * 50
    assert names.gcs_claim("a") == "a-gcs-pvc"
    assert names.redis_cleanup_job("b" * 53) == "b" * 49 + "-redis-cleanup"
    assert names.identifier("a", "head") == "a-head"
    assert names.selfsigned_issuer("a") == "ray-selfsigned-issuer-a"
    assert names.ca_certificate("a") == "ray-ca-certificate-a"
    assert names.ca_issuer("a") == "ray-ca-issuer-a"
    assert names.ca_secret("a", "0123456789") == "a-ca-secret-01234567"
    assert names.certificate("a", "head") == "ray-head-cert-a"
    assert names.certificate("a", "redis-cleanup") == "ray-worker-cert-a"
    assert names.tls_secret("a", "worker") == "ray-worker-secret-a"


def test_child_of_a_cron_job() -> None:
    assert (
        names.child_rayjob("test-cronjob", datetime(2024, 1, 1, 0, 5, tzinfo=UTC)) == "test-cronjob-28401125"
    )
    assert names.child_rayjob("a", datetime(2024, 11, 3, 5, 30, 59, tzinfo=UTC)) == "a-28843530"


def test_addresses() -> None:
    assert names.fqdn("a-head-svc", "ns") == "a-head-svc.ns.svc.cluster.local"
    assert names.fqdn("a", "", "x.y") == "a.default.svc.x.y"
    assert names.fqdn("a", "b", "") == "a.b.svc.cluster.local"
    assert names.short_host("a.b.svc") == "a"


def test_suffixes_are_five_sane_characters_from_the_given_source() -> None:
    one, other = random.Random(1), random.Random(1)  # noqa: S311 (seeded on purpose)
    made = names.with_suffix("a", one)
    assert re.fullmatch("a-[bcdfghjklmnpqrstvwxz2456789]{5}", made)
    assert made == f"a-{names.random_suffix(other)}"
    assert names.random_suffix(one) != names.random_suffix(one)


def test_origin() -> None:
    assert [names.origin_kind(x) for x in ("RayJob", "RayService", "RayCluster", "Pod", "", None)] == [
        "RayJob",
        "RayService",
        "RayCluster",
        "RayCluster",
        "RayCluster",
        "RayCluster",
    ]


def test_ours_is_what_our_owner_controls() -> None:
    def owned(**reference: object) -> dict[str, object]:
        return {"metadata": {"ownerReferences": [{"uid": "x", "controller": False}, reference]}}

    assert names.is_ours(owned(uid="u", controller=True), "u")
    assert not names.is_ours(owned(uid="u", controller=False), "u")
    assert not names.is_ours(owned(uid="v", controller=True), "u")
    assert not names.is_ours({"metadata": {}}, "u")
    assert not names.is_ours({}, "u")


letters = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", max_size=80)


@calm
@given(
    st.from_regex(r"[a-z]([-a-z0-9]{0,51}[a-z0-9])?", fullmatch=True),
    letters.filter(lambda t: t.strip("-") == t),
)
def test_what_is_made_for_a_valid_cluster_fits(cluster: str, group: str) -> None:
    for name in (names.head_service(cluster), names.serve_service(cluster), names.headless_service(cluster)):
        assert dns1035_label_problem(name) is None
    for label in (names.identifier(cluster, "redis-cleanup"), names.redis_cleanup_job(cluster)):
        assert label_value_problem(label) is None
    assert len(names.worker_pod(cluster, group)) + names.SUFFIX_LENGTH <= 63
    assert len(names.ingress(cluster)) <= 50
    assert (
        len(names.child_rayjob(cluster[: MAX_NAME["RayCronJob"]], datetime(2100, 1, 1, tzinfo=UTC)))
        <= MAX_NAME["RayJob"]
    )


@calm
@given(st.text(max_size=200))
def test_shortening_twice_is_shortening_once(text: str) -> None:
    assert names.check_name(names.check_name(text)) == names.check_name(text)
    assert names.check_label(names.check_label(text)) == names.check_label(text)
