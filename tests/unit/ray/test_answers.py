"""What each answer of Ray, of the API server's proxy and of strangers on the port stands for."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuberay_op.errors import Invalid, Retry
from kuberay_op.ray import errors
from kuberay_op.ray.answers import MESSAGE_LIMIT, Call, Fields, Response, decode, explain, hide, problem
from kuberay_op.testing.fake_ray.http import traceback_reply

JOB = Call("info", "read job a", "GET", "/api/jobs/a", job_id="job-a")
LIST = Call("list", "list jobs", "GET", "/api/jobs/")


def answer(status: int, body: bytes | str | dict[str, Any] = b"", **headers: str) -> Response:
    content = (
        body.encode() if isinstance(body, str) else body if isinstance(body, bytes) else orjson.dumps(body)
    )
    return Response(status, {name.replace("_", "-"): value for name, value in headers.items()}, content)


def kubernetes(code: int, message: str) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (answer(404, "Job job-a does not exist"), errors.JobNotFound),
        (answer(404, "404: Not Found"), errors.DashboardAbsent),
        (answer(404, {"detail": "Not Found"}), errors.DashboardAbsent),
        (answer(404, "<html>job-a</html>"), errors.DashboardAbsent),
        (answer(404, kubernetes(404, 'services "job-a" not found')), errors.DashboardAbsent),
        (answer(503, kubernetes(503, "no endpoints available for service")), errors.Unreachable),
        (answer(503, "Error trying to reach service: dial tcp 10.0.0.1:8265: refused"), errors.Unreachable),
        (answer(403, kubernetes(403, "cannot get resource services/proxy")), errors.Unauthorized),
        (answer(500, kubernetes(500, "etcd")), errors.ServerError),
        (answer(503, '{"kind": "Status", '), errors.ServerError),
        (answer(401, "Unauthorized: Missing authentication token"), errors.Unauthorized),
        (answer(403, "Forbidden: Invalid authentication token"), errors.Unauthorized),
        (answer(403, "<html>log in</html>"), errors.Unauthorized),
        (answer(400, "TypeError: entrypoint must be a string"), errors.BadRequest),
        (answer(405, "405: Method Not Allowed"), errors.Unsupported),
        (answer(501, "Serve dependencies are not installed."), errors.Unsupported),
        (answer(500, "No available agent to submit job, please try again later."), errors.ServerError),
        (answer(503, "The GCS may be down"), errors.ServerError),
        (answer(502, "<html>Bad gateway</html>"), errors.DashboardAbsent),
        (answer(302, b"", location="/login"), errors.Garbled),
        (answer(429, "slow down"), errors.ServerError),
    ],
)
def test_a_status_and_a_body_make_an_error(given: Response, kind: type[errors.RayError]) -> None:
    error = problem(JOB, given)

    assert type(error) is kind
    assert error.status == given.status
    assert str(error).startswith(f"read job a: {given.status}")


@pytest.mark.parametrize("status", [400, 500], ids=["old head", "head that asks an agent"])
def test_a_duplicate_id_is_told_by_rays_words(status: int) -> None:
    line = "ValueError: Job with submission_id job-a already exists. Please use a different submission_id."
    reply = traceback_reply(status, line, wrapped=400 if status == 500 else None)

    error = problem(JOB, Response(reply.status, {}, reply.body))

    assert type(error) is errors.JobExists
    assert str(error) == f"read job a: {status}: {line}"


def test_the_agents_refusal_counts_rather_than_the_heads_500() -> None:
    reply = traceback_reply(500, "ValueError: runtime_env is wrong", wrapped=400)

    assert type(problem(JOB, Response(500, {}, reply.body))) is errors.BadRequest


def test_a_running_job_is_not_deleted() -> None:
    line = "RuntimeError: Attempted to delete job 'job-a', but it is in a non-terminal state RUNNING."
    reply = traceback_reply(500, line, wrapped=500)

    assert type(problem(JOB, Response(500, {}, reply.body))) is errors.JobActive


def test_success_is_no_problem() -> None:
    assert problem(JOB, answer(200, "{}")) is None
    assert problem(JOB, answer(204)) is None


def test_without_a_job_no_404_is_a_missing_job() -> None:
    assert type(problem(LIST, answer(404, "Job job-a does not exist"))) is errors.DashboardAbsent


def test_a_busy_server_says_how_long() -> None:
    error = problem(LIST, answer(503, "wait", retry_after="7"))

    assert isinstance(error, errors.ServerError)
    assert error.after == 7.0


def test_every_error_says_whether_to_retry() -> None:
    retry = {kind for kind in _tree(errors.RayError) if issubclass(kind, Retry)}
    invalid = {kind for kind in _tree(errors.RayError) if issubclass(kind, Invalid)}

    assert not retry & invalid
    assert invalid == {errors.BadRequest, errors.Unsupported}
    assert retry == {errors.Unauthorized, *_tree(errors.RayUnavailable)}
    assert {kind for kind in _tree(errors.RayError) if kind.fault} == set(_tree(errors.RayUnavailable)) - {
        errors.HeldBack
    }


def test_every_error_has_a_label_of_its_own() -> None:
    kinds = list(_tree(errors.RayError))

    assert len({kind.outcome for kind in kinds}) == len(kinds)


def _tree(kind: type[errors.RayError]) -> list[type[errors.RayError]]:
    return [kind, *(below for child in kind.__subclasses__() for below in _tree(child))]


@given(status=st.integers(100, 599), body=st.binary(max_size=200))
def test_any_answer_has_a_meaning(status: int, body: bytes) -> None:
    error = problem(JOB, Response(status, {}, body))

    assert (error is None) == (200 <= status < 300)


def test_an_explanation_is_the_last_exception_on_one_line() -> None:
    text = (
        "Traceback (most recent call last):\n  File\nKeyError: 'x'\n\nDuring handling\nValueError: a\nb\n.\n"
    )

    assert explain(text).split() == ["ValueError:", "a", "b"]


def test_long_explanations_are_cut() -> None:
    assert len(str(problem(JOB, answer(500, "x" * 10_000)))) < MESSAGE_LIMIT + 50


def test_secrets_do_not_reach_the_error() -> None:
    sent = {"applications": [{"runtime_env": {"env_vars": {"PASSWORD": "hunter22", "N": "1"}}}]}
    call = Call("serve_deploy", "deploy", "PUT", "/", body=sent)

    error = str(
        problem(call, answer(400, "hunter22 and t0ken-of-ray are wrong, 1 times"), token="t0ken-of-ray")
    )

    assert error == "deploy: 400: *** and *** are wrong, 1 times"


def test_a_validation_error_loses_what_it_quotes() -> None:
    text = "Field required [type=missing, input_value={'env': 'hunt...'}, input_type=dict]"

    assert (
        str(problem(LIST, answer(400, text)))
        == "list jobs: 400: Field required [type=missing, input_type=dict]"
    )


@given(st.lists(st.text("abc", min_size=4, max_size=8), max_size=4), st.text("abcd", max_size=60))
def test_no_secret_survives_hiding(secrets: list[str], text: str) -> None:
    hidden = hide(text, secrets)

    assert not any(secret in hidden for secret in secrets)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (answer(200, "<html></html>"), "the answer is a web page"),
        (answer(200, b"{}", content_type="text/html"), "the answer is a web page"),
        (answer(200, '{"status": "RUN'), "the answer is not JSON"),
        (answer(200, b""), "the answer is not JSON"),
        (answer(200, b"\xff\xfe"), "the answer is not JSON"),
    ],
)
def test_rubbish_is_not_decoded(given: Response, complaint: str) -> None:
    with pytest.raises(errors.Garbled, match=complaint):
        decode(JOB, given)


def test_fields_have_the_type_they_must_have() -> None:
    fields = Fields(JOB, {"text": 1, "flag": "yes", "number": True, "object": [], "null": None})

    for read in (fields.text, fields.flag, fields.number, fields.object):
        with pytest.raises(errors.Garbled, match=f"read job a: {read.__name__} of the answer is"):
            read(read.__name__)
    with pytest.raises(errors.Garbled, match="null of the answer is missing, not a boolean"):
        fields.flag("null")
    assert fields.text("null") == fields.text("missing") == ""
    assert fields.object("null") == {}
    assert fields.number("null") is None
    with pytest.raises(errors.Garbled, match="the answer is a list, not an object"):
        Fields(JOB, [])
