"""YAML that anybody may have written: values, positions, and texts made to hurt."""

from __future__ import annotations

import pytest

from kuberay_op.api.manifests import Manifest, Mistake, decode, read_manifests
from kuberay_op.api.yamltext import MAX_DEPTH, Document, YamlTextError, documents, first_document


def read(text: str) -> Document:
    node = first_document(text)
    assert node is not None
    if "&" not in text:
        quick, thorough = Document(node, aliases=False), Document(node)
        assert repr(quick.value) == repr(thorough.value)
        assert quick.duplicates == thorough.duplicates
    return Document(node)


def test_values() -> None:
    text = """
    text: 'on'
    flag: on
    number: 0x10
    list: [1, 2.5, ~]
    block: |
      two
      lines
    """
    assert read(text).value == {
        "text": "on",
        "flag": True,
        "number": 16,
        "list": [1, 2.5, None],
        "block": "two\nlines\n",
    }


def test_positions() -> None:
    text = "a: 1\nb:\n  - x: 2\n  - q: {z: 3}\nbase: &base {k: v}\nuse: {<<: *base, own: 1}\n"
    document = read(text)
    assert document.locate(()) == (1, 1)
    assert document.locate(("a",)) == (1, 1)
    assert document.locate(("b", 0)) == (3, 5)
    assert document.locate(("b", 0, "x")) == (3, 5)
    assert document.locate(("b", 1, "q", "z")) == (4, 9)
    assert document.locate(("use", "own")) == (6, 18)
    assert document.locate(("use", "k")) == (5, 14), "a merged key is shown where it is written"


@pytest.mark.parametrize(
    ("path", "place"),
    [(("b", 7), (2, 1)), (("b", "x"), (2, 1)), (("nothing", "at", "all"), (1, 1)), (("a", "below"), (1, 1))],
)
def test_what_is_not_there_is_shown_at_its_parent(
    path: tuple[str | int, ...], place: tuple[int, int]
) -> None:
    assert read("a: 1\nb: [1]\n").locate(path) == place


def test_doubled_keys_are_noted_and_the_last_counts() -> None:
    document = read("a: 1\nb: {c: 1, c: 2}\na: 3\n")
    assert document.value == {"a": 3, "b": {"c": 2}}
    assert sorted(document.duplicates) == [("a", (3, 1)), ("c", (2, 11))]


def test_aliases_are_shared_not_copied() -> None:
    value = read("a: &x [1]\nb: *x\n").value
    assert value["a"] is value["b"]


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
MERGES = "m0: &m0 {x: 1}\n" + "".join(
    f"m{n}: &m{n} {{<<: [*m{n - 1}, *m{n - 1}], k{n}: 1}}\n" for n in range(1, 40)
)
CHAIN = "- &a0 [x]\n" + "".join(f"- &a{n} [*a{n - 1}]\n" for n in range(1, 3000))
MERGE_CHAIN = (
    "x: [&a0 {a: 1}" + "".join(f", &a{n} {{<<: *a{n - 1}}}" for n in range(1, 3000)) + "]\n<<: *a2999\n"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested more than"),
        ("[" * 100_000 + "]" * 100_000, "nested more than"),
        ("{a: " * 100_000, "nested more than"),
        ("- " * 100_000, "nested more than"),
        ("? " * 100_000, "nested more than"),
        ("\n".join(" " * n + "a:" for n in range(5000)), "nested more than"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested more than"),
        (LAUGHS, "larger than"),
        (CHAIN, "nested more than"),
        (MERGE_CHAIN, "too deep"),
        ("a: &a [*a]", "refers to the value it is part of"),
        ("&a {b: *a}", "refers to the value it is part of"),
        ("&a {<<: *a}", "refers to the value it is part of"),
        ("a: {<<: 1}", "only mappings can be merged"),
        ("a: {<<: [1]}", "only mappings can be merged"),
        ("[a]: 1", "must be text"),
        ("a: [1, 2", "did not find expected"),
        ("a: b: c", "mapping values are not allowed"),
        ("a: !!int x", "does not fit"),
        ("a: !!binary ÿ", "base64"),
        ("a: \x00", "not allowed"),
        ("a: \ud800", "not text"),
        ("a: *b", "undefined alias"),
        ("\t- a", ""),
        ("%BAD 1\n---\na: 1", ""),
        ("a: 'x", "end of stream"),
    ],
)
def test_texts_made_to_hurt(text: str, message: str) -> None:
    with pytest.raises(YamlTextError) as caught:
        read(text)
    assert message in str(caught.value)


def test_what_looks_like_it_would_hurt_but_does_not() -> None:
    assert read("[" * MAX_DEPTH + "]" * MAX_DEPTH).value == eval("[" * MAX_DEPTH + "]" * MAX_DEPTH)  # noqa: S307
    assert read(MERGES).value["m39"]["k1"] == 1
    assert read("a: '" + "[" * 100_000 + "'").value == {"a": "[" * 100_000}
    assert read("a: |\n" + " " * 5000 + "x").value == {"a": "x"}
    assert list(documents("")) == []
    assert list(documents("# only a comment\n")) == []


# --- manifests


def items(text: str) -> list[Manifest | Mistake]:
    return list(read_manifests(text))


def test_documents_of_a_file_keep_their_lines() -> None:
    text = "# head\na: 1\n---\nb: 2\n--- # third\nc:\n  d: 3\n...\n---\n---\n{e: 4}\n"
    found = [item for item in items(text) if isinstance(item, Manifest)]
    assert [item.value for item in found] == [{"a": 1}, {"b": 2}, {"c": {"d": 3}}, {"e": 4}]
    assert [item.place(()).line for item in found] == [2, 4, 6, 11]
    assert found[2].place(("c", "d")) == (7, 3)


def test_lines_are_counted_as_yaml_does() -> None:
    found = items("a: 1\r\nb: 2\rc: 3\n---\r\nd: 4\n")
    assert [item.value for item in found if isinstance(item, Manifest)] == [
        {"a": 1, "b": 2, "c": 3},
        {"d": 4},
    ]
    assert isinstance(found[0], Manifest)
    assert isinstance(found[1], Manifest)
    assert found[0].place(("c",)) == (3, 1)
    assert found[1].place(("d",)) == (5, 1)


def test_a_mistake_hides_no_other_document() -> None:
    found = items("a: 1\n---\nb: [\n---\nc: 3\n---\n\td: 4\n---\ne: 5\n")
    values = [item.value for item in found if isinstance(item, Manifest)]
    assert values == [{"a": 1}, {"c": 3}, {"e": 5}]
    lines = [item.place.line for item in found if isinstance(item, Mistake)]
    assert len(lines) == 2
    assert 3 <= lines[0] <= 4
    assert lines[1] == 7


def test_markers_inside_of_texts_are_no_markers_only_when_indented() -> None:
    found = items("a: |\n  ---\n  b\n---x: 1\n")
    assert [item.value for item in found if isinstance(item, Manifest)] == [{"a": "---\nb\n", "---x": 1}]
    found = items("a: |\n  ---\n  b\n---\nc: 1\n")
    assert [item.value for item in found if isinstance(item, Manifest)] == [{"a": "---\nb\n"}, {"c": 1}]


def test_directives_belong_to_the_document_after_them() -> None:
    found = items("%YAML 1.1\n%TAG ! tag:example.org,2000:\n# c\n---\na: !x 1\n")
    assert [item.value for item in found if isinstance(item, Manifest)] == [{"a": "1"}]
    assert isinstance(found[0], Manifest)
    assert found[0].place(("a",)) == (5, 1)


def test_entries_of_a_list_are_objects_of_their_own() -> None:
    text = "kind: List\napiVersion: v1\nitems:\n- kind: A\n  x: 1\n- kind: B\n"
    found = [item for item in items(text) if isinstance(item, Manifest)]
    assert [item.value["kind"] for item in found] == ["A", "B"]
    assert found[0].place(("x",)) == (5, 3)
    assert found[1].place(()) == (6, 3)


def test_json_with_escapes_that_yaml_does_not_know() -> None:
    found = items('{"a": "\\ud83d\\ude00", "b": 1}')
    assert [item.value for item in found if isinstance(item, Manifest)] == [{"a": "😀", "b": 1}]
    assert isinstance(found[0], Manifest)
    assert found[0].place(("b",)) == (1, 1)


def test_doubled_keys_are_a_mistake_but_no_fatal_one() -> None:
    found = items("x: 0\n---\na: 1\na: 2\n")
    mistakes = [item for item in found if isinstance(item, Mistake)]
    assert [(mistake.place, mistake.fatal) for mistake in mistakes] == [((4, 1), False)]
    assert len(found) == 3


def test_decoding() -> None:
    assert decode(b"\xef\xbb\xbfa: \xc3\xbc") == "a: ü"
    assert decode("a: ü".encode("utf-16")) == "a: ü"
    with pytest.raises(YamlTextError, match="line 2"):
        decode(b"a\nb\xff")
    with pytest.raises(YamlTextError, match="UTF-8"):
        decode(b"\xff\xfe\x00")
