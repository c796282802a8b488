"""Retries, deadlines and credentials, against a fake server. Kubernetes itself: ``tests/apiserver/kube``."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from kuberay_op.kube import errors
from kuberay_op.kube.client import URGENT, Client, PatchKind
from kuberay_op.kube.credentials import Material
from kuberay_op.kube.resource import PODS, SECRETS
from kuberay_op.kube.session import CONCURRENCY
from kuberay_op.metrics import Metrics
from kuberay_op.testing.clock import FakeClock
from tests.unit.kube.fake_api import FakeApi, connected, failure, json, pod, until

BUSY = json(failure(429, "TooManyRequests"), status=429, Retry_After="7")
BROKEN = (500, failure(500, "InternalError"))
OK = (200, pod("a"))
LOCK = {"metadata": {"resourceVersion": "1"}}
NAMED = {"name": "a", "namespace": "ns"}


async def hang(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(3600)
    raise AssertionError("the client should have gone")


async def drop(request: web.Request) -> web.StreamResponse:
    """Read the request, then close the connection without a word."""
    assert request.transport is not None
    request.transport.close()
    await asyncio.sleep(3600)
    raise AssertionError("the client should have gone")


async def test_verbs_and_paths() -> None:
    api = FakeApi(OK)
    async with connected(api) as client:
        await client.get(PODS, "a", "ns")
        await client.create(PODS, pod("a"), reason="test")
        await client.patch(PODS, "a", "ns", {"status": {}}, subresource="status", reason="test")
        apply, json_patch = PatchKind.APPLY, PatchKind.JSON
        await client.patch(PODS, "a", "ns", {}, kind=apply, force=True, field_manager="me", reason="test")
        await client.patch(PODS, "a", "ns", [{"op": "test", "path": "/x"}], kind=json_patch, reason="test")
        await client.replace(PODS, pod("a"), reason="test")
        await client.delete(PODS, "a", "ns", uid="u", propagation="Background", grace=5, reason="test")
        await client.delete_collection(PODS, "ns", label_selector="a=b", reason="test")
    path = "/api/v1/namespaces/ns/pods"
    seen = [(r.method, r.path, r.query_string, r.content_type) for r in api.requests]
    manager = "fieldManager=kuberay-operator"
    assert seen == [
        ("GET", f"{path}/a", "", "application/octet-stream"),
        ("POST", path, manager, "application/json"),
        ("PATCH", f"{path}/a/status", manager, "application/merge-patch+json"),
        ("PATCH", f"{path}/a", "fieldManager=me&force=true", "application/apply-patch+yaml"),
        ("PATCH", f"{path}/a", manager, "application/json-patch+json"),
        ("PUT", f"{path}/a", manager, "application/json"),
        ("DELETE", f"{path}/a", "", "application/json"),
        ("DELETE", path, "labelSelector=a%3Db", "application/json"),
    ]
    assert api.bodies[6] == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u"},
        "propagationPolicy": "Background",
        "gracePeriodSeconds": 5,
    }


async def test_a_list_is_read_page_by_page() -> None:
    api = FakeApi(
        (
            200,
            {
                "metadata": {"resourceVersion": "9", "continue": "more"},
                "items": [{"metadata": {"name": "a"}}],
            },
        ),
        (200, {"metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"name": "b"}}]}),
    )
    async with connected(api) as client:
        result = await client.list(PODS, "ns", label_selector="x=y", limit=1)
    assert [item["metadata"]["name"] for item in result.items] == ["a", "b"]
    assert result.items[0]["kind"] == "Pod"
    assert result.resource_version == "9"
    assert [dict(r.query) for r in api.requests] == [
        {"labelSelector": "x=y", "limit": "1"},
        {"labelSelector": "x=y", "limit": "1", "continue": "more"},
    ]


async def test_a_list_whose_token_aged_is_read_in_one_piece() -> None:
    api = FakeApi(
        (
            200,
            {
                "metadata": {"resourceVersion": "9", "continue": "more"},
                "items": [{"metadata": {"name": "a"}}],
            },
        ),
        (410, failure(410, "Expired")),
        (200, {"metadata": {"resourceVersion": "12"}, "items": [{"metadata": {"name": "b"}}]}),
    )
    async with connected(api) as client:
        result = await client.list(PODS)
    assert [item["metadata"]["name"] for item in result.items] == ["b"]
    assert "limit" not in api.requests[-1].query


async def test_pages_of_large_objects_are_small() -> None:
    big = {"metadata": {"name": "a"}, "spec": "x" * 200_000}
    more = {"metadata": {"resourceVersion": "9", "continue": "more"}, "items": [big] * 10}
    api = FakeApi((200, more), (200, {"metadata": {"resourceVersion": "9"}, "items": []}))
    async with connected(api) as client:
        await client.list(PODS)
    assert [r.query["limit"] for r in api.requests] == ["50", "5"]


async def test_retry_after_is_obeyed_by_every_verb() -> None:
    api, clock = FakeApi(BUSY, OK), FakeClock()
    async with connected(api, clock=clock, deadline=60.0) as client:
        call = asyncio.create_task(client.create(PODS, pod("a"), reason="test"))
        await until(lambda: api.requests and clock.sleepers)
        await clock.advance(6.9)
        assert len(api.requests) == 1
        await clock.advance(0.2)
        assert (await call)["kind"] == "Pod"
    assert len(api.requests) == 2


async def test_no_wait_is_begun_that_the_deadline_would_cut_off() -> None:
    async with connected(FakeApi(BUSY), deadline=5.0) as client:
        with pytest.raises(errors.TooManyRequests) as caught:
            await client.get(PODS, "a", "ns")
    assert caught.value.retry_after == 7.0


REPEATABLE: dict[str, Callable[[Client], Awaitable[Any]]] = {
    "get": lambda client: client.get(PODS, "a", "ns"),
    "delete by uid": lambda client: client.delete(PODS, "a", "ns", uid="u", reason="test"),
    "locked patch": lambda client: client.patch(PODS, "a", "ns", LOCK, reason="test"),
    "apply": lambda client: client.patch(PODS, "a", "ns", {}, kind=PatchKind.APPLY, reason="test"),
    "locked replace": lambda client: client.replace(PODS, pod("a"), reason="test"),
}

ONCE: dict[str, Callable[[Client], Awaitable[Any]]] = {
    "create": lambda client: client.create(PODS, pod("a"), reason="test"),
    "delete by name": lambda client: client.delete(PODS, "a", "ns", reason="test"),
    "patch": lambda client: client.patch(PODS, "a", "ns", {"spec": {}}, reason="test"),
    "replace": lambda client: client.replace(PODS, {"metadata": NAMED}, reason="test"),
}


@pytest.mark.parametrize("trouble", [BROKEN, drop], ids=["500", "dropped"])
@pytest.mark.parametrize("verb", REPEATABLE)
async def test_reads_and_guarded_writes_are_tried_again(verb: str, trouble: Any) -> None:
    api = FakeApi(trouble, OK)
    async with connected(api) as client:
        await REPEATABLE[verb](client)
    assert len(api.requests) == 2


@pytest.mark.parametrize("trouble", [BROKEN, drop], ids=["500", "dropped"])
@pytest.mark.parametrize("verb", ONCE)
async def test_what_may_have_happened_is_not_done_again(verb: str, trouble: Any) -> None:
    api = FakeApi(trouble)
    async with connected(api) as client:
        with pytest.raises((errors.ServerError, errors.Unreachable)):
            await ONCE[verb](client)
    assert len(api.requests) == 1


async def test_a_server_that_stays_broken_is_given_up() -> None:
    api = FakeApi(BROKEN)
    async with connected(api) as client:
        with pytest.raises(errors.ServerError):
            await client.get(PODS, "a", "ns")
    assert len(api.requests) == 4


async def test_a_server_that_is_not_there_has_seen_nothing() -> None:
    async with connected(FakeApi(OK)) as client:
        nowhere = replace(client._session.connection, server="http://127.0.0.1:1")
        client._session.connection = nowhere
        with pytest.raises(errors.Unreachable) as caught:
            await client.create(PODS, pod("a"), reason="test")
    assert not caught.value.sent
    assert "no usable answer from the API server at" in str(caught.value)


async def test_every_call_ends_at_its_deadline() -> None:
    async with connected(FakeApi(hang)) as client:
        with pytest.raises(errors.DeadlineExceeded, match=r"get pods ns/a: no answer .* within 0.05 s"):
            await client.get(PODS, "a", "ns", deadline=0.05)
        with pytest.raises(errors.DeadlineExceeded):
            await client.list(PODS, deadline=0.05)
        with pytest.raises(errors.DeadlineExceeded):
            async for _ in client.watch(PODS, deadline=0.05):
                pass


async def test_an_urgent_call_waits_for_nobody() -> None:
    """Neither for the rate limit nor for calls that hang: a lease must be renewed in time."""

    async def hang_on_lists(request: web.Request) -> web.StreamResponse:
        return json(pod("a")) if request.path.endswith("/a") else await hang(request)

    api = FakeApi(hang_on_lists)
    async with connected(api, qps=0.001, burst=CONCURRENCY) as client:
        hanging = [asyncio.create_task(client.list(PODS)) for _ in range(CONCURRENCY)]
        await until(lambda: len(api.requests) == CONCURRENCY)
        assert (await client.get(PODS, "a", "ns", owner=URGENT))["kind"] == "Pod"
        for call in hanging:
            call.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)


async def test_waiting_for_the_rate_limit_counts_towards_the_deadline() -> None:
    async with connected(FakeApi(OK), qps=0.001) as client:
        await client.get(PODS, "a", "ns")
        with pytest.raises(errors.DeadlineExceeded):
            await client.get(PODS, "a", "ns", deadline=0.05)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"<html>"])
async def test_an_answer_that_is_no_object_is_an_error(body: bytes) -> None:
    async with connected(FakeApi(web.Response(body=body))) as client:
        with pytest.raises(errors.Unreachable, match="get pods ns/a"):
            await client.get(PODS, "a", "ns")


async def test_an_answer_that_is_cut_short_is_an_error() -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"kind": ')
        assert request.transport is not None
        request.transport.close()
        return response

    async with connected(FakeApi(cut)) as client:
        with pytest.raises(errors.Unreachable):
            await client.create(PODS, pod("a"), reason="test")


async def test_redirects_are_not_followed_with_our_credentials() -> None:
    api = FakeApi(web.Response(status=302, headers={"Location": "http://example.com/"}))
    async with connected(api, material=Material(token="t")) as client:
        with pytest.raises(errors.ApiError):
            await client.get(PODS, "a", "ns")
    assert len(api.requests) == 1


async def test_a_rotated_token_is_read_again_after_401(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")

    async def check(request: web.Request) -> web.StreamResponse:
        if request.headers["Authorization"] == "Bearer new":
            return json(pod("a"))
        token.write_text("new\n")
        return json(failure(401, "Unauthorized"), status=401)

    api = FakeApi(check)
    async with connected(api, material=Material(token_file=str(token)), clock=FakeClock()) as client:
        # A create, because the server has not acted on what it did not accept.
        await client.create(PODS, pod("a"), reason="test")
    assert [r.headers["Authorization"] for r in api.requests] == ["Bearer old", "Bearer new"]


async def test_a_token_file_is_read_every_minute(tmp_path: Path) -> None:
    token, clock, api = tmp_path / "token", FakeClock(), FakeApi(OK)
    token.write_text("old")
    async with connected(api, material=Material(token_file=str(token)), clock=clock) as client:
        await client.get(PODS, "a", "ns")
        token.write_text("new")
        await client.get(PODS, "a", "ns")
        await clock.leap(60.0)
        await client.get(PODS, "a", "ns")
        token.unlink()  # in the middle of a rotation: go on with what we have
        await clock.leap(60.0)
        await client.get(PODS, "a", "ns")
    seen = [r.headers["Authorization"] for r in api.requests]
    assert seen == ["Bearer old", "Bearer old", "Bearer new", "Bearer new"]


async def test_401_after_renewing_is_final() -> None:
    api = FakeApi((401, failure(401, "Unauthorized")))
    async with connected(api, material=Material(token="t")) as client:
        with pytest.raises(errors.Unauthorized):
            await client.get(PODS, "a", "ns")
    assert len(api.requests) == 2


async def test_no_secret_reaches_the_text_of_an_error() -> None:
    value = base64.b64encode(b"hunter2").decode()
    secret = {"metadata": {"name": "a", "namespace": "ns"}, "data": {"password": value}}
    body = failure(400, "BadRequest", f"bigger context ...|{orjson.dumps(secret).decode()}|...")
    async with connected(FakeApi((400, body)), material=Material(token="t0ken")) as client:
        with pytest.raises(errors.BadRequest) as caught:
            await client.create(SECRETS, secret, reason="test")
    assert value not in str(caught.value)
    assert "t0ken" not in str(caught.value)


async def test_metrics_have_the_names_that_dashboards_know() -> None:
    metrics = Metrics(process=False)
    async with connected(FakeApi(BROKEN, OK), metrics=metrics) as client:
        server = client.server.replace("127.0.0.1", "localhost")
        client._session.connection = replace(client._session.connection, server=server)
        await client.get(PODS, "a", "ns")
        host = client._session.host
    value = metrics.registry.get_sample_value
    labels = {"host": host, "verb": "GET"}
    assert value("rest_client_requests_total", {"host": host, "method": "GET", "code": "200"}) == 1
    assert value("rest_client_requests_total", {"host": host, "method": "GET", "code": "500"}) == 1
    assert value("rest_client_request_retries_total", {**labels, "code": "500"}) == 1
    assert value("rest_client_request_duration_seconds_count", labels) == 2
    assert value("rest_client_rate_limiter_duration_seconds_count", labels) == 2
    assert value("rest_client_dns_resolution_duration_seconds_count", {"host": "localhost"}) == 1
    assert value("rest_client_response_size_bytes_sum", labels) == len(orjson.dumps(pod("a")))
