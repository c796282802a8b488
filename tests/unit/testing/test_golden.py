"""Golden files: compared, written on request, missing ones named."""

from __future__ import annotations

import pytest

pytest_plugins = ("pytester",)

CHECK = """
    def test_it(golden):
        golden.check("deep/{name}", {value})
"""

#: Name of the file, value in the test, text in the file.
CASES = [
    ("a.yaml", {"b": 1, "a": ["é"]}, "a:\n- é\nb: 1\n"),
    ("two.yaml", [{"a": 1}, {"b": 2}], "a: 1\n---\nb: 2\n"),
    ("a.json", {"b": 1, "a": None}, '{\n  "a": null,\n  "b": 1\n}\n'),
    ("a.txt", "line", "line\n"),
    ("b.txt", "line\n", "line\n"),
]


@pytest.fixture(autouse=True)
def _settings(pytester: pytest.Pytester) -> None:
    """Without it the asyncio plugin warns in every inner run."""
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")


def test_what_is_written_is_what_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.parametrize(("name", "value", "text"), {CASES!r})
        def test_it(golden, name, value, text):
            golden.check("deep/" + name, value)
            assert (golden.folder / "deep" / name).read_text(encoding="utf-8") == text
        """
    )
    pytester.runpytest("--update-golden").assert_outcomes(passed=len(CASES))
    pytester.runpytest().assert_outcomes(passed=len(CASES))


def test_a_missing_file_fails_with_the_command_to_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine=CHECK.format(name="a.yaml", value="{}"))
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["*there is no golden file *a.yaml; write it with: pytest test_mine.py --update-golden"]
    )
    assert not (pytester.path / "golden").exists()


def test_a_difference_fails_with_a_diff_and_the_command_to_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine=CHECK.format(name="a.yaml", value="{'a': 2}"))
    golden = pytester.mkdir("golden") / "deep" / "a.yaml"
    golden.parent.mkdir()
    golden.write_text("a: 1\n")
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["*differs; if the change is meant, write it with: pytest test_mine.py --update-golden"]
    )
    result.stdout.fnmatch_lines(["-a: 1", "+a: 2"])
    assert golden.read_text() == "a: 1\n"


def test_subclasses_of_dict_are_written_like_dicts(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        class Frozen(dict):
            pass

        def test_it(golden):
            golden.check("a.yaml", Frozen(a=Frozen(b=(1, 2))))
        """
    )
    assert pytester.runpytest("--update-golden").ret == pytest.ExitCode.OK
    assert (pytester.path / "golden" / "a.yaml").read_text() == "a:\n  b:\n  - 1\n  - 2\n"
