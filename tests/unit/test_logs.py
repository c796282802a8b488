"""Logging: the layout of a line, secrets, sampling, files, and that nothing ever waits for a slow sink."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuberay_op import logs
from kuberay_op.errors import Misconfigured, Retry
from kuberay_op.logs import LogSettings, redact, scrub
from kuberay_op.logs.render import level_name, parse_level, timestamp, to_json
from kuberay_op.logs.sinks import RotatingFile, Sampler

log = logs.get_logger("controllers.RayCluster")


@contextmanager
def captured(**settings: Any) -> Iterator[list[str]]:
    """Log as configured; the lines are there when the block ends."""
    stream = io.StringIO()
    lines: list[str] = []
    with logs.setup(LogSettings(**settings), stream=stream):
        yield lines
    lines += stream.getvalue().splitlines()


def only(lines: list[str]) -> dict[str, Any]:
    (line,) = lines
    fields: dict[str, Any] = json.loads(line)
    return fields


def test_a_line_has_its_fields_in_order_and_then_the_rest() -> None:
    with captured() as lines, logs.bind(RayCluster={"name": "a", "namespace": "ns"}, reconcileID="7"):
        try:
            raise Retry("the head Pod is gone", after=2)
        except Retry as error:
            log.error("pass failed", error=error, created=2)
    fields = only(lines)
    assert list(fields)[:6] == ["level", "ts", "logger", "msg", "error", "stacktrace"]
    assert set(list(fields)[6:]) == {"created", "RayCluster", "reconcileID"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d{4})", fields.pop("ts"))
    assert "raise Retry(" in fields.pop("stacktrace")
    assert fields == {
        "level": "error",
        "logger": "controllers.RayCluster",
        "msg": "pass failed",
        "error": "the head Pod is gone",
        "created": 2,
        "RayCluster": {"name": "a", "namespace": "ns"},
        "reconcileID": "7",
    }


def test_a_plain_line_has_no_error_and_no_stack_trace() -> None:
    with captured() as lines:
        log.info("plan applied")
    assert list(only(lines)) == ["level", "ts", "logger", "msg"]


def test_records_of_libraries_take_the_same_path() -> None:
    with captured() as lines, logs.bind(reconcileID="7"):
        logging.getLogger("some.library").warning("took %d s", 3, extra={"token": "abc", "count": 1})
    fields = only(lines)
    del fields["ts"]
    assert fields == {
        "level": "warn",
        "logger": "some.library",
        "msg": "took 3 s",
        "token": "<redacted>",
        "count": 1,
        "reconcileID": "7",
    }


def test_warnings_of_python_are_logged() -> None:
    with captured() as lines, warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)  # catch_warnings has put its own hook there
        logging.captureWarnings(True)
        warnings.warn("old ways", DeprecationWarning, stacklevel=1)
        logging.captureWarnings(False)
    assert "old ways" in only(lines)["msg"]
    assert only(lines)["logger"] == "py.warnings"


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: log.exception("m"), "KeyError: 'x'"),
        (lambda: log.error("m", exc_info=True), "KeyError: 'x'"),
        (lambda: logging.getLogger("lib").exception("m"), "KeyError: 'x'"),
        (lambda: log.error("m", exc_info=TimeoutError()), "TimeoutError"),
        (lambda: log.error("m", error="plain text"), "plain text"),
    ],
)
def test_errors_are_named_and_traced(call: Callable[[], None], error: str) -> None:
    with captured() as lines:
        try:
            raise KeyError("x")
        except KeyError:
            call()
    fields = only(lines)
    assert fields["error"] == error
    assert fields["stacktrace"]


def test_an_error_without_exception_shows_where_it_was_logged() -> None:
    with captured() as lines:
        log.error("odd")
    trace = only(lines)["stacktrace"]
    assert trace.splitlines()[-1].strip() == 'log.error("odd")'
    assert "structlog" not in trace


@pytest.mark.parametrize(("threshold", "traced"), [("info", True), ("error", False), ("panic", False)])
def test_stack_traces_start_at_their_level(threshold: str, traced: bool) -> None:
    with captured(stacktrace_level=parse_level(threshold)) as lines:
        log.info("x")
    assert ("stacktrace" in only(lines)) is traced


def test_a_field_cannot_take_the_place_of_ours() -> None:
    with captured() as lines:
        log.info("x", level="mine", ts=1, stacktrace="s", msg="m")
    fields = only(lines)
    assert (fields["level"], fields["msg"]) == ("info", "x")
    assert [fields[f"{name}_"] for name in ("level", "ts", "stacktrace", "msg")] == ["mine", 1, "s", "m"]


def test_console_lines_are_columns_and_the_trace_is_below() -> None:
    with captured(encoder="console") as lines:
        log.info("plan applied", created=2)
        log.info("idle")
        log.error("bad", error="why")
    assert lines[0].split("\t")[1:] == ["info", "controllers.RayCluster", "plan applied", '{"created":2}']
    assert lines[1].split("\t")[1:] == ["info", "controllers.RayCluster", "idle"]
    assert lines[2].split("\t")[-1] == '{"error":"why"}'
    assert lines[-1].strip() == 'log.error("bad", error="why")'


def test_binding_ends_with_its_block_or_its_task() -> None:
    with captured() as lines:
        with logs.bind(a=1):
            with logs.bind(a=2, b=3):
                log.info("inner")
            log.info("outer")
        log.info("none")
    found = [{key: json.loads(line).get(key) for key in "ab"} for line in lines]
    assert found == [{"a": 2, "b": 3}, {"a": 1, "b": None}, {"a": None, "b": None}]


@dataclass
class Login:
    password: str = "hunter2"

    def __str__(self) -> str:
        return "a login"


def test_any_value_makes_a_line() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    values = {
        "duration": timedelta(seconds=1.5),
        "huge": 10**30,
        "surrogate": "\ud800",
        "bytes": b"\xff",
        "set": {1},
        "object": Login(),
        "numbers": {1: 2, None: 3},
        "failure": ValueError("v"),
    }
    with captured() as lines:
        log.info("x", **values)
        log.info("y", loop=loop)
    fields = json.loads(lines[0])
    assert fields["duration"] == 1.5
    assert fields["huge"] == 10**30
    assert fields["set"] == [1]
    assert fields["object"] == "a login"
    assert fields["numbers"] == {"1": 2, "None": 3}
    assert fields["failure"] == "ValueError: v"
    assert "<dict>" in lines[1]


# Levels


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("debug", 10),
        ("INFO", 20),
        ("error", 40),
        ("panic", 50),
        ("1", 10),
        ("+1", 10),
        ("2", 9),
        ("5", 6),
        ("99", 1),
    ],
)
def test_levels(text: str, number: int) -> None:
    assert parse_level(text) == number


@pytest.mark.parametrize("text", ["", "0", "-1", "loud", "1.5", " 1", "٣", "0x1", "++1"])
def test_what_is_no_level(text: str) -> None:
    with pytest.raises(ValueError, match="is no log level"):
        parse_level(text)


def test_level_names() -> None:
    names = [level_name(number) for number in (9, 10, 20, 25, 30, 40, 50, 60)]
    assert names == ["Level(-2)", "debug", "info", "info", "warn", "error", "panic", "panic"]


@pytest.mark.parametrize(
    ("level", "shown"), [("error", ["error"]), ("info", ["info", "error"]), ("1", ["debug", "info", "error"])]
)
def test_only_what_is_asked_for_is_shown(level: str, shown: list[str]) -> None:
    with captured(level=parse_level(level)) as lines:
        log.debug("x")
        log.info("x")
        log.error("x")
    assert [json.loads(line)["level"] for line in lines] == shown


def test_the_kubernetes_client_never_reaches_debug_level() -> None:
    with captured(level=parse_level("9")) as lines:
        logging.getLogger("kubernetes.client.rest").debug("response body: %s", "secret")
        logging.getLogger("httpx").info("GET")
    assert lines == []


@pytest.mark.parametrize(
    ("zone", "text"),
    [("UTC", "2023-11-14T22:13:20.123Z"), ("Asia/Kolkata", "2023-11-15T03:43:20.123+0530")],
)
def test_timestamps_carry_milliseconds_and_zone(
    monkeypatch: pytest.MonkeyPatch, zone: str, text: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert timestamp(1_700_000_000.1239) == text
    finally:
        monkeypatch.undo()
        time.tzset()


# Secrets


@pytest.mark.parametrize(
    "key",
    [
        "token",
        "authToken",
        "auth_token",
        "AUTH-TOKEN",
        "redis.password",
        "Authorization",
        "client_secret",
        "apiKey",
    ],
)
def test_values_under_such_keys_are_hidden(key: str) -> None:
    assert redact({key: "s3cret"}) == {key: "<redacted>"}
    assert redact({"a": [{"b": {key: ["s3cret"]}}]}) == {"a": [{"b": {key: "<redacted>"}}]}


@pytest.mark.parametrize(
    "key", ["secretName", "tokenFile", "namespace", "passwordSecretRef", "key", "author"]
)
def test_values_under_such_keys_are_shown(key: str) -> None:
    assert redact({key: "value"}) == {key: "value"}


def test_objects_of_kubernetes_keep_their_secrets() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "a"}, "data": {"x": "eA=="}, "stringData": {"y": "z"}}
    assert redact(secret) == {**secret, "data": "<redacted>", "stringData": "<redacted>"}
    env = [{"name": "REDIS_PASSWORD", "value": "x"}, {"name": "HOME", "value": "/home"}]
    assert redact(env) == [{"name": "REDIS_PASSWORD", "value": "<redacted>"}, env[1]]
    assert redact({"automountServiceAccountToken": True, "token": None}) == {
        "automountServiceAccountToken": True,
        "token": None,
    }


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer <redacted>"),
        ("redis://user:pa55@host:6379/0", "redis://<redacted>@host:6379/0"),
        ("redis://:pa55@host", "redis://<redacted>@host"),
        ("GET /x?auth_token=abc&y=1", "GET /x?auth_token=<redacted>&y=1"),
        ('{"password": "abc", "a": 1}', '{"password": "<redacted>", "a": 1}'),
        ("got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig", "got <redacted>"),
        ("secret default/my-secret not found", "secret default/my-secret not found"),
        ("http://host:8265/api", "http://host:8265/api"),
        ("a basic check of the bearer", "a basic check of the bearer"),
        ("basic scheduling of the bearer certificate", "basic scheduling of the bearer certificate"),
        ("authorization=opensesame", "authorization=<redacted>"),
        ("sent Basic dXNlcjpwYTU1 along", "sent Basic <redacted> along"),
    ],
)
def test_text_is_searched_for_credentials(text: str, clean: str) -> None:
    assert scrub(text) == clean


def test_no_secret_in_message_error_or_trace() -> None:
    with captured() as lines:
        try:
            raise ValueError("401 for Bearer hunter2hunter2")
        except ValueError as error:
            log.error("calling redis://:hunter2@host", error=error, headers={"Authorization": "hunter2"})
    assert "hunter2" not in lines[0]


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@given(PLAIN, st.sampled_from(["token", "dbPassword", "api_key"]), st.integers(0, 6))
def test_a_hidden_value_stays_hidden_however_deep(value: Any, key: str, depth: int) -> None:
    data: Any = {key: "hunter2", "other": value}
    for level in range(depth):
        data = [data] if level % 2 else {"x": data}
    assert "hunter2" not in to_json({"fields": redact(data)})


@given(PLAIN)
def test_redacting_changes_nothing_else(value: Any) -> None:
    before = json.dumps(value)
    if "redacted" not in json.dumps(redact(value)):
        assert json.dumps(redact(value)) == before
    assert json.dumps(value) == before


@given(PLAIN)
def test_every_line_is_one_line_of_json(value: Any) -> None:
    line = to_json({"value": value})
    assert "\n" not in line
    json.loads(line)


# Sampling


def record(message: str, created: float, level: int = logging.INFO) -> logging.LogRecord:
    result = logging.LogRecord("x", level, __file__, 1, message, None, None)
    result.created = created
    return result


def test_a_repeated_message_is_thinned_out_per_second() -> None:
    sampler = Sampler()
    passed = [n for n in range(1, 451) if sampler.filter(record("again", 100.0 + n / 1000))]
    assert passed == [*range(1, 101), 200, 300, 400]
    assert sampler.filter(record("again", 101.1))


def test_messages_and_levels_are_counted_apart() -> None:
    sampler = Sampler()
    for _ in range(150):
        sampler.filter(record("again", 100.0))
    assert not sampler.filter(record("again", 100.0))
    assert sampler.filter(record("other", 100.0))
    assert sampler.filter(record("again", 100.0, logging.ERROR))


def test_the_sampler_forgets_rather_than_grows() -> None:
    sampler = Sampler()
    for n in range(Sampler.REMEMBERED * 3):
        assert sampler.filter(record(f"m{n}", 100.0))
    assert len(sampler._seen) <= Sampler.REMEMBERED


@pytest.mark.parametrize(
    ("settings", "whole"), [({}, False), ({"sampling": False}, True), ({"level": 9}, True)]
)
def test_development_and_high_verbosity_are_not_sampled(settings: dict[str, Any], whole: bool) -> None:
    with captured(**settings) as lines:
        for n in range(500):
            log.info("again", n=n)
    assert (len(lines) == 500) is whole
    assert len(lines) >= 100


def test_both_sinks_show_the_same_sample(tmp_path: Path) -> None:
    with captured(file=tmp_path / "log") as lines:
        for n in range(500):
            log.info("again", n=n)
    assert (tmp_path / "log").read_text().splitlines() == lines


# Sinks


def test_a_stuck_output_drops_lines_and_never_blocks() -> None:
    reader, writer = os.pipe()  # nobody reads it, so it is full after 64 KiB
    with os.fdopen(reader) as source, os.fdopen(writer, "w") as stream:
        handle = logs.setup(LogSettings(sampling=False), stream=stream, capacity=50)
        for n in range(2000):
            log.info("line", n=n, padding="x" * 200)
        assert handle.dropped > 1000
        handle.close(timeout=0.01)  # gives up rather than wait for ever
        handle.close()
        written = 2000 - handle.dropped
        seen = 0
        while seen < written:  # the writer is let go and puts out what it held
            seen += json.loads(source.readline())["msg"] == "line"
        assert seen == written


def test_a_loss_is_reported_when_there_is_room_again() -> None:
    class Gate(io.StringIO):
        """Writes nothing until it is opened."""

        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Event()

        def write(self, text: str) -> int:
            self.lock.wait()
            return super().write(text)

    gate = Gate()
    with logs.setup(LogSettings(), stream=gate, capacity=5) as handle:
        for n in range(20):
            log.info("line", n=n)
        lost = handle.dropped
        assert lost >= 14
        gate.lock.set()
        while not gate.getvalue().count("\n") >= 20 - lost:
            time.sleep(0.001)
        log.info("room again")
    last = [json.loads(line) for line in gate.getvalue().splitlines()][-2:]
    assert (last[0]["logger"], last[0]["dropped"]) == ("logs", lost)
    assert last[0]["msg"].startswith("log lines were dropped")
    assert last[1]["msg"] == "room again"


def test_closing_writes_what_is_queued_and_puts_everything_back() -> None:
    root = logging.getLogger()
    before = (root.level, root.handlers[:], logging.getLogger("httpx").level)
    with captured(sampling=False) as lines:
        for n in range(3000):
            log.info("line", n=n)
    assert [json.loads(line)["n"] for line in lines] == list(range(3000))
    assert (root.level, root.handlers[:], logging.getLogger("httpx").level) == before


def test_the_file_keeps_info_whatever_the_console_shows(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "operator.log"
    with captured(level=logging.ERROR, file=path, file_encoder="console") as lines:
        log.debug("a")
        log.info("b")
        log.error("c")
    assert [json.loads(line)["msg"] for line in lines] == ["c"]
    assert [line.split("\t")[3] for line in path.read_text().splitlines() if "\t" in line] == ["b", "c"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_debug_lines_go_to_the_console_only(tmp_path: Path) -> None:
    with captured(level=logging.DEBUG, file=tmp_path / "log") as lines:
        log.debug("a")
    assert only(lines)["msg"] == "a"
    assert (tmp_path / "log").read_text() == ""


def test_a_file_that_cannot_be_opened_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Misconfigured, match=r"cannot be opened .*; give a path in a folder"):
        logs.setup(LogSettings(file=tmp_path / "file" / "log"))
    with pytest.raises(Misconfigured, match="Is a directory"):
        logs.setup(LogSettings(file=tmp_path))


class SmallFile(RotatingFile):
    SIZE = 100  # type: ignore[misc]  # a test has no 500 MiB to spare
    BACKUPS = 3  # type: ignore[misc]  # as above


def test_the_file_rotates_and_old_ones_go(tmp_path: Path) -> None:
    path = tmp_path / "log"
    handler = SmallFile.open(path)
    for n in range(40):
        handler.emit(record(f"line {n:02} {'x' * 30}", 0.0))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log", "log.1", "log.2", "log.3"]
    assert "line 39" in path.read_text() + (tmp_path / "log.1").read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    handler.close()

    month_ago = time.time() - RotatingFile.AGE - 60
    os.utime(tmp_path / "log.3", (month_ago, month_ago))
    SmallFile.open(path).close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log", "log.1", "log.2"]


def test_the_limits_of_the_file() -> None:
    assert (RotatingFile.SIZE, RotatingFile.BACKUPS, RotatingFile.AGE) == (500 * 2**20, 10, 30 * 86400.0)
