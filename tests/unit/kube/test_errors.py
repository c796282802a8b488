from __future__ import annotations

import orjson
import pytest

from kuberay_op.kube import errors
from kuberay_op.kube.errors import ApiError, error_of
from kuberay_op.kube.resource import SECRETS
from tests.unit.kube.fake_api import failure


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (405, "MethodNotAllowed", errors.BadRequest),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.InvalidObject),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerError),
        (503, "ServiceUnavailable", errors.ServerError),
    ],
)
def test_status_bodies_become_errors(status: int, reason: str, kind: type[ApiError]) -> None:
    error = error_of(status, orjson.dumps(failure(status, reason, "because")), doing="get pods ns/a")
    assert type(error) is kind
    assert (error.status, error.reason) == (status, reason)
    assert str(error) == f"get pods ns/a: {status} {reason}: because"


def test_a_conflict_is_not_an_existing_object() -> None:
    assert not issubclass(errors.AlreadyExists, errors.Conflict)


@pytest.mark.parametrize("body", [b"<html>502</html>", b"", b"[1]", b'{"kind": "Pod"}'])
def test_bodies_that_are_no_status_are_not_repeated(body: bytes) -> None:
    assert str(error_of(502, body, doing="x")) == "x: 502 ServerError"


def test_the_server_may_say_when_to_come_back() -> None:
    assert error_of(500, failure(500, "ServerTimeout", retryAfterSeconds=3), doing="x").retry_after == 3.0
    assert error_of(500, failure(500, "ServerTimeout", retryAfterSeconds=0), doing="x").retry_after is None


def test_long_messages_are_cut() -> None:
    assert len(str(error_of(422, failure(422, "Invalid", "x" * 10_000), doing="x"))) < 1100


@pytest.mark.parametrize("path", [SECRETS.path("ns"), SECRETS.path("ns", "a"), SECRETS.path()])
def test_errors_about_secrets_name_fields_and_no_values(path: str) -> None:
    causes = [{"field": "data[pass word]", "message": 'Invalid value: "hunter2"'}]
    body = failure(422, "Invalid", 'Secret "a" is invalid: data: Invalid value: "hunter2"', causes=causes)
    text = str(error_of(422, body, doing="create secrets ns/a", path=path))
    assert text == "create secrets ns/a: 422 Invalid: see the field data[pass word]"


def test_tokens_asked_for_are_secret_too() -> None:
    path = "/api/v1/namespaces/ns/serviceaccounts/a/token"
    assert "hunter2" not in str(error_of(400, failure(400, "BadRequest", "hunter2"), doing="x", path=path))


def test_what_the_servers_decoder_quotes_is_left_out() -> None:
    message = (
        'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field, '
        'error found in #10 byte of ...|lue":"hunter2"}]|..., bigger context ...|"env":[{"hunter2"}]|...'
    )
    text = str(error_of(400, failure(400, "BadRequest", message), doing="create pods ns/a"))
    assert "hunter2" not in text
    assert text.endswith("json: cannot unmarshal string into Go struct field")


def test_a_resource_that_only_sounds_secret_keeps_its_message() -> None:
    path = "/apis/example.com/v1/namespaces/ns/secretstores/a"
    assert str(error_of(404, failure(404, "NotFound", "why"), doing="x", path=path)).endswith("why")
