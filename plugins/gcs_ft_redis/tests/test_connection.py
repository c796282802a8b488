"""Where Redis is, from the environment of the head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kuberay_op.errors import OperatorError
from kuberay_op_gcs_ft_redis.connection import Literal, NotDirect, Place, SecretKey, place_of, resolve

SECRET = {"name": "REDIS_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}


def container(*variables: dict[str, Any], **more: str) -> dict[str, Any]:
    env = [{"name": "RAY_external_storage_namespace", "value": "ns"}, *variables]
    return {"env": [*env, *({"name": name, "value": value} for name, value in more.items())]}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"RAY_REDIS_ADDRESS": "redis:6379"}, Place("redis", 6379, False, "ns")),
        ({"RAY_REDIS_ADDRESS": "redis"}, Place("redis", 6379, False, "ns")),
        ({"RAY_REDIS_ADDRESS": "rediss://a:1,b:2"}, Place("a", 1, True, "ns")),
        (
            {"RAY_REDIS_ADDRESS": "redis://u:p%40x@a:1"},
            Place("a", 1, False, "ns", Literal("u"), Literal("p@x")),
        ),
        (
            {"RAY_REDIS_ADDRESS": "redis://u:p@a:1", "REDIS_USERNAME": "me", "REDIS_PASSWORD": "mine"},
            Place("a", 1, False, "ns", Literal("me"), Literal("mine")),
        ),
    ],
)
def test_plain_values(variables: dict[str, str], expected: Place) -> None:
    assert place_of(container(**variables), trusted=False) == expected


def test_of_two_variables_the_last_counts() -> None:
    first = {"name": "RAY_REDIS_ADDRESS", "value": "first:1"}
    assert place_of(container(first, RAY_REDIS_ADDRESS="last:2"), trusted=False).host == "last"


def test_a_password_from_a_secret() -> None:
    found = place_of(container(SECRET, RAY_REDIS_ADDRESS="r:1"), trusted=False)
    assert found.password == SecretKey("s", "k")


@pytest.mark.parametrize(
    ("ray", "why"),
    [
        (container(), "has no RAY_REDIS_ADDRESS"),
        (container(RAY_REDIS_ADDRESS="http://x:1"), "is not HOST:PORT"),
        (container(RAY_REDIS_ADDRESS="redis:port"), "is not HOST:PORT"),
        (container(RAY_REDIS_ADDRESS="$(HOST):1"), "made from other variables"),
        ({"envFrom": [{"secretRef": {"name": "x"}}]}, "envFrom"),
        (
            container({"name": "RAY_REDIS_ADDRESS", "valueFrom": {"configMapKeyRef": {}}}),
            "taken from configMapKeyRef",
        ),
        (container({**SECRET, "name": "RAY_REDIS_ADDRESS"}), "stands in a Secret"),
        (container(RAY_REDIS_ADDRESS="rediss://r:1", RAY_REDIS_CA_CERT="/ca"), "RAY_REDIS_CA_CERT is a file"),
        (container(RAY_REDIS_ADDRESS="rediss://r:1", RAY_REDIS_CLIENT_KEY="/k"), "RAY_REDIS_CLIENT_KEY is"),
    ],
)
def test_what_only_the_job_can_reach(ray: dict[str, Any], why: str) -> None:
    with pytest.raises(NotDirect, match=why):
        place_of(ray, trusted=False)


def test_with_authorities_of_its_own_the_operator_needs_no_file_of_the_head() -> None:
    ray = container(RAY_REDIS_ADDRESS="rediss://r:1", RAY_REDIS_CA_CERT="/ca")
    assert place_of(ray, trusted=True).tls


def test_credentials_are_never_shown() -> None:
    found = place_of(container(RAY_REDIS_ADDRESS="redis://user:hidden@r:1"), trusted=False)
    assert "hidden" not in repr(found)
    assert str(found) == "r:1"


async def secrets(name: str) -> Mapping[str, bytes]:
    if name != "s":
        raise OperatorError(f"Secret {name} does not exist")
    return {"k": b"hidden"}


async def test_resolving() -> None:
    assert await resolve(None, secrets) is None
    assert await resolve(Literal(""), secrets) is None
    assert await resolve(Literal("x"), secrets) == "x"
    assert await resolve(SecretKey("s", "k"), secrets) == "hidden"
    assert await resolve(SecretKey("s", "other", optional=True), secrets) is None
    assert await resolve(SecretKey("gone", "k", optional=True), secrets) is None
    with pytest.raises(OperatorError, match="Secret s has no key other"):
        await resolve(SecretKey("s", "other"), secrets)
    with pytest.raises(OperatorError, match="Secret gone does not exist"):
        await resolve(SecretKey("gone", "k"), secrets)
