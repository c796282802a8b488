from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuberay_op.kube import errors
from kuberay_op.kube.watch import (
    EVENTS_AT_ONCE,
    Lines,
    Silence,
    WatchEvent,
    decode,
    events,
    without_managed_fields,
)
from tests.unit.kube.fake_api import failure, line, pod


class Chunks:
    """A stream reader that has everything at once, then ends (or falls silent)."""

    def __init__(self, *chunks: bytes, silent: bool = False) -> None:
        self.chunks = list(chunks)
        self.silent = silent

    async def readany(self) -> bytes:
        if self.chunks:
            return self.chunks.pop(0)
        if self.silent:
            await asyncio.sleep(3600)
        return b""


async def read(*chunks: bytes, silent: bool = False, silence: float = 5.0) -> list[WatchEvent]:
    return [event async for event in events(Chunks(*chunks, silent=silent), silence=silence, doing="watch")]


@given(st.lists(st.binary(min_size=1).map(lambda b: b.replace(b"\n", b"x"))), st.data())
def test_lines_do_not_depend_on_how_the_network_cuts_them(wanted: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(part + b"\n" for part in wanted)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    bounds = [0, *cuts, len(whole)]
    lines = Lines()
    found = [part for a, b in pairwise(bounds) for part in lines.feed(whole[a:b])]
    assert found == wanted
    assert not lines.unfinished


async def test_a_megabyte_in_one_line_and_many_chunks() -> None:
    whole = line("ADDED", pod("a", spec={"text": "x" * 1_000_000}))
    parts = [whole[i : i + 16_384] for i in range(0, len(whole), 16_384)]
    [event] = await read(*parts)
    assert len(event.object["spec"]["text"]) == 1_000_000


@pytest.mark.parametrize("bad", [b"{\n", b"[]\n", b'{"type": "ADDED"}\n', b"null\n", b"\xff\n"])
async def test_what_is_no_event_ends_the_watch(bad: bytes) -> None:
    with pytest.raises(errors.Unreachable):
        await read(line("ADDED", pod("a")), bad)


async def test_an_answer_cut_short_gives_what_came_whole() -> None:
    stream = events(Chunks(line("ADDED", pod("a")) + b'{"ty'), silence=5.0, doing="watch")
    assert (await anext(stream)).type == "ADDED"
    with pytest.raises(errors.Unreachable, match="cut short"):
        await anext(stream)


async def test_silence_ends_a_watch() -> None:
    with pytest.raises(Silence, match=r"nothing came from the API server for 0\.02 s"):
        await read(silent=True, silence=0.02)


@pytest.mark.parametrize(("code", "kind"), [(410, errors.Gone), (500, errors.ServerError)])
def test_error_events_raise(code: int, kind: type[errors.ApiError]) -> None:
    with pytest.raises(kind):
        decode(line("ERROR", failure(code, "Expired")))


FIELDS = {
    "f:spec": {'k:{"name":"a}]},"}': {".": {}, "f:name": {}}},
    "f:metadata": {"f:name": {}},
}
MANAGED = [
    {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsV1": FIELDS},
    {"manager": '}],"name":"x"', "operation": "Apply", "apiVersion": "v1", "fieldsV1": FIELDS},
]


def built_in(**more: Any) -> dict[str, Any]:
    """As the server writes its own kinds: managedFields at the end of the metadata."""
    metadata = {"name": "a", "labels": {"x": "y"}, "annotations": {"z": ',"managedFields":[{"manager":"'}}
    return {"kind": "Pod", "metadata": {**metadata, "managedFields": MANAGED}, **more}


def custom(**more: Any) -> dict[str, Any]:
    """As it writes custom resources: by name, everywhere."""
    fields = [dict(sorted(entry.items())) for entry in MANAGED]
    metadata = {"annotations": {"a": "}],"}, "managedFields": fields, "name": "a", "uid": "u"}
    return {"apiVersion": "v1", "kind": "Thing", "metadata": metadata, **more}


def other_order(**more: Any) -> dict[str, Any]:
    """As some other server may write it."""
    obj = built_in(**more)
    obj["metadata"]["resourceVersion"] = "5"
    return obj


@pytest.mark.parametrize(
    "obj",
    [
        built_in(spec={"a": 1}, status={"b": [{"c": "}]},"}]}),
        built_in(data={"a": "}],"}),
        built_in(Spec={}),
        built_in(**{"$odd": [{"a": [{}]}], "x": {"b": [{}], "name": "c"}}),
        other_order(spec={"containers": [{"env": [{"name": "a"}], "name": "c"}]}, status={}),
        custom(spec={"a": 1}),
        custom(),
        custom(spec={"template": built_in()}),
    ],
)
def test_managed_fields_are_cut_out_and_nothing_else(obj: dict[str, Any]) -> None:
    event = {"type": "ADDED", "object": obj}
    short = without_managed_fields(orjson.dumps(event))
    wanted = {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}
    assert orjson.loads(short) == {**event, "object": wanted}


NASTY = st.text('}]{[,":\\a', max_size=6)
NASTY_JSON = st.recursive(
    NASTY | st.none(),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(NASTY, below, max_size=2),
    max_leaves=4,
)
NASTY_FIELDS: st.SearchStrategy[Any] = st.recursive(
    st.just({}), lambda below: st.dictionaries(NASTY, below, max_size=2), max_leaves=4
)


@given(st.data())
def test_nothing_but_managed_fields_is_ever_cut(data: st.DataObject) -> None:
    entries = data.draw(
        st.lists(st.fixed_dictionaries({"manager": NASTY, "fieldsV1": NASTY_FIELDS}), max_size=2)
    )
    fields = [("managedFields", entries), ("name", "a"), ("z", data.draw(NASTY_JSON)), ("uid", "u")]
    metadata = dict(data.draw(st.permutations(fields)))
    obj = {"metadata": metadata, **data.draw(st.dictionaries(NASTY, NASTY_JSON, max_size=3))}
    whole = {"type": "ADDED", "object": obj}
    rest = {name: value for name, value in metadata.items() if name != "managedFields"}
    short = orjson.loads(without_managed_fields(orjson.dumps(whole)))
    assert short in (whole, {"type": "ADDED", "object": {**obj, "metadata": rest}})


@pytest.mark.parametrize(
    "obj",
    [
        {
            "kind": "Pod",
            "metadata": {"name": "a"},
            "spec": {"text": ',"managedFields":[{"manager":"x"}],"name":'},
        },
        {"kind": "Pod", "metadata": {"name": "a", "managedFields": []}, "spec": {}},
        {"kind": "Pod", "metadata": {"name": "a", "managedFields": MANAGED}},
        # Others' managedFields, and nothing to tell their end from a text.
        {
            "metadata": {"name": "a"},
            "spec": {"t": {"m": {"a": 1, "managedFields": MANAGED}}},
            "x": [{}],
            "y": 1,
        },
        {"metadata": {"managedFields": [{"manager": "}],"}], "name": "a"}, "spec": {"x": [{}], "y": 1}},
        {"kind": "Status", "status": "Failure"},
    ],
)
def test_lines_of_another_shape_are_left_as_they_are(obj: dict[str, Any]) -> None:
    line = orjson.dumps({"type": "ADDED", "object": obj})
    assert without_managed_fields(line) == line


async def test_others_get_their_turn_during_a_flood() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    count = EVENTS_AT_ONCE * 20
    assert len(await read(b"".join(line("ADDED", pod(str(n))) for n in range(count)))) == count
    task.cancel()
    assert turns >= 20


async def test_others_get_their_turn_between_large_lines() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await read(line("ADDED", pod("a", spec="x" * 300_000)) * 10)
    task.cancel()
    assert turns >= 10
