"""The runner of documentation pages: what it runs, compares and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from kuberay_op.testing.doctest_md import agrees, blocks, commands, run_page

PAGE = """
# A page

Save this as `greetings/hello.txt`:

```yaml
hello: there
```

Then look at it:

```console
$ cd greetings
$ cat hello.txt
hello: there
$ NAME=you; for word in a b; do \\
    echo "$word $NAME"; \\
  done
a you
...
$ sleep 1000 &
$ echo "it is now $(date)"
it is now ...
```

```text
only for reading
```
"""


def run(tmp_path: Path, page: str) -> int:
    path = tmp_path / "page.md"
    path.write_text(page)
    return run_page(path, tmp_path)


def test_a_page_is_run_in_order_in_one_shell(tmp_path: Path) -> None:
    assert run(tmp_path, PAGE) == 5
    assert (tmp_path / "greetings" / "hello.txt").read_text() == "hello: there\n"


def test_blocks_and_commands_know_their_lines() -> None:
    saved, console, text = blocks(PAGE)
    assert (saved.file, saved.language, saved.line) == ("greetings/hello.txt", "yaml", 6)
    assert [command.line for command in commands(console)] == [13, 14, 16, 21, 22]
    assert (text.language, text.file) == ("text", "")


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb", "a\nb\n", True),
        ("a", "a   \n\n", True),
        ("a", "b\n", False),
        ("", "", True),
        ("", "something\n", False),
        ("...", "a\nb\n", True),
        ("a\n...", "a\n", True),
        ("a\n...\nz", "a\nb\nc\nz\n", True),
        ("a\n...\nz", "a\nb\n", False),
        ("took ... s", "took 1.5 s\n", True),
        ("took ... s", "took 1.5 m\n", False),
        ("a.c", "abc\n", False),
    ],
)
def test_what_is_shown_is_compared(shown: str, printed: str, same: bool) -> None:
    assert agrees(shown, printed) is same


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("```console\n$ echo a\nb\n```\n", "the page shows:\nb\n\nbut it printed:\na"),
        ("```console\n$ echo oh; false\noh\n```\n", "ended with code 1 and printed:\noh"),
        ("```python\nprint()\n```\n", "a 'python' block that nobody saves or runs"),
        ("```console\n$ exit 0\n```\n", "the shell ended"),
    ],
)
def test_what_is_not_so_is_named_with_its_line(tmp_path: Path, page: str, complaint: str) -> None:
    with pytest.raises(AssertionError) as caught:
        run(tmp_path, page)
    assert complaint in str(caught.value)
    assert "page.md:" in str(caught.value)


def test_a_block_must_end() -> None:
    with pytest.raises(ValueError, match="line 1: a block that does not end"):
        list(blocks("```console\n$ echo"))
