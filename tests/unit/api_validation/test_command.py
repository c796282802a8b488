"""``kuberay-op validate``: files, folders, standard input, both outputs, exit codes, broken input."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from kuberay_op.commands.validate import MAX_BYTES, validate

GOOD = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata:
  name: good
spec:
  headGroupSpec:
    template:
      spec:
        containers:
        - name: ray
"""
BAD = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata:
  name: bad
spec:
  headGroupSpec:
    template:
      spec:
        containers: []
  workerGroupSpecs:
  - groupName: a
    minReplicas: 3
    maxReplicas: 1
    sizes: 1
    template:
      spec:
        containers:
        - name: ray
"""
WARNED = GOOD + "  authOptions: {}\n"
OTHER = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n"


def run(*arguments: str, text: str | bytes | None = None, color: bool = False) -> Result:
    return CliRunner().invoke(validate, list(arguments), input=text, color=color)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_is_well(folder: Path) -> None:
    (folder / "a.yaml").write_text(GOOD)
    result = run("-f", "a.yaml")
    assert result.exit_code == 0
    assert result.output == "checked 1 RayCluster: 0 errors, 0 warnings\n"


def test_all_mistakes_at_once_with_lines(folder: Path) -> None:
    (folder / "a.yaml").write_text(f"{GOOD}---\n{OTHER}---\n{BAD}---\n{WARNED}")
    result = run("-f", "a.yaml")
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        "a.yaml:24:9: error: spec.headGroupSpec.template.spec.containers: needs a container; "
        "the first one runs Ray [raycluster.spec.1]",
        "a.yaml:27:5: error: spec.workerGroupSpecs[0].minReplicas: is 3; must not exceed maxReplicas, 1 "
        "[raycluster.spec.4.5]",
        "a.yaml:29:5: error: spec.workerGroupSpecs[0].sizes: unknown field",
        "a.yaml:45:3: warning: spec.authOptions.mode: is not set, so authentication is off; set it to token "
        "[warning.auth-mode]",
        "checked 3 RayCluster: 3 errors, 1 warning; skipped 1 object of other kinds (Service)",
    ]


def test_json(folder: Path) -> None:
    (folder / "a.yaml").write_text(BAD + "---\n" + OTHER)
    result = run("-f", "a.yaml", "--output", "json")
    assert result.exit_code == 1
    report: dict[str, Any] = json.loads(result.output)
    assert (report["errors"], report["warnings"]) == (3, 0)
    assert report["checked"] == {"RayCluster": 1}
    assert report["skipped"] == {"Service": 1}
    assert report["problems"][1] == {
        "file": "a.yaml",
        "line": 12,
        "column": 5,
        "severity": "error",
        "kind": "RayCluster",
        "name": "bad",
        "path": "spec.workerGroupSpecs[0].minReplicas",
        "message": "is 3; must not exceed maxReplicas, 1",
        "rule": "raycluster.spec.4.5",
    }


def test_folders_are_walked_in_order(folder: Path) -> None:
    for name in ("b.yml", "a.yaml", "c.json", "d.txt", "sub/e.yaml", ".git/f.yaml"):
        path = folder / "x" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"apiVersion": "ray.io/v1", "kind": "RayJob"}))
    report = json.loads(run("-f", "x", "--output", "json").output)
    assert report["checked"] == {"RayJob": 4}
    files = list(dict.fromkeys(problem["file"] for problem in report["problems"]))
    assert files == [os.path.join("x", name) for name in ("a.yaml", "b.yml", "c.json", "sub/e.yaml")]


def test_several_sources_and_standard_input(folder: Path) -> None:
    (folder / "a.yaml").write_text(GOOD)
    result = run("-f", "a.yaml", "-f", "-", text=BAD)
    assert result.exit_code == 1
    assert "<stdin>:9:9: error:" in result.output
    assert "checked 2 RayCluster" in result.output


def test_strict_counts_warnings(folder: Path) -> None:
    (folder / "a.yaml").write_text(WARNED)
    assert run("-f", "a.yaml").exit_code == 0
    assert run("-f", "a.yaml", "--strict").exit_code == 1


def test_feature_gates() -> None:
    text = GOOD + "  networkPolicy: {}\n"
    assert run("-f", "-", text=text).exit_code == 1
    assert run("-f", "-", "--feature-gates", "RayClusterNetworkPolicy=true", text=text).exit_code == 0
    result = run("-f", "-", "--feature-gates", "RayClusterNetworkPolicies=true", text=text)
    assert result.exit_code == 2
    assert "did you mean RayClusterNetworkPolicy?" in result.output


@pytest.mark.parametrize(
    "arguments", [(), ("-f", "nowhere.yaml"), ("-f", "empty"), ("-f", "-", "--output", "xml")]
)
def test_wrong_use(folder: Path, arguments: tuple[str, ...]) -> None:
    (folder / "empty").mkdir()
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Error:" in result.output


def test_nothing_to_check_is_said() -> None:
    result = run("-f", "-", text=OTHER)
    assert result.exit_code == 0
    assert result.output == (
        "found nothing to check: 0 errors, 0 warnings; skipped 1 object of other kinds (Service)\n"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"a: [", "1:5: error: did not find expected node content"),
        (b"\xff\xfe\x00", "it is not text in UTF-8"),
        (b"a: \x00", "control characters are not allowed"),
        (b"\x7fELF\x01\x02\x03\xff", "it is not text in UTF-8"),
        (b"[" * 100_000, "nested more than 200 levels deep"),
        (b"just text", "1:1: error: is no Kubernetes object"),
        (b"- a\n- b", "is no Kubernetes object"),
        (b"kind: RayCluster", "is no Kubernetes object"),
        (b"apiVersion: ray.io/v1\nkind: 7", "is no Kubernetes object"),
        (b"apiVersion: ray.io/v1\nkind: RayClutser\nmetadata: {name: a}", "kind: must be"),
        (b"apiVersion: ray.io/v9\nkind: RayJob\nmetadata: {name: a}", "apiVersion: must be"),
        (b"apiVersion: ray.io/v1\nkind: RayJob\nspec: 5\nmetadata: []\nstatus: x", "spec: must be a mapping"),
        (b"apiVersion: ray.io/v1\nkind: RayJobList\nitems: 5", "kind: must be"),
        (b"apiVersion: v1\nkind: List\nitems: [5]", "is no Kubernetes object"),
    ],
)
def test_broken_input_is_told_in_a_line(text: bytes, says: str) -> None:
    result = run("-f", "-", text=text)
    assert result.exit_code == 1
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert says in result.output
    assert "Traceback" not in result.output


def test_empty_input_is_nothing_to_check() -> None:
    for text in ("", "---\n---\n", "# nothing\n"):
        assert run("-f", "-", text=text).exit_code == 0


def test_doubled_keys_are_a_warning() -> None:
    result = run("-f", "-", text="x-a: 1\n".join([GOOD.replace("kind:", "metadata: {}\nkind:"), ""]))
    assert "<stdin>:4:1: warning: the key 'metadata' is there twice; the last one counts" in result.output


def test_texts_cannot_steer_the_terminal(folder: Path) -> None:
    text = GOOD.replace("good", '"\\e[31mred\\e[0m\\u202e"')
    assert "\x1b" not in run("-f", "-", text=text).output
    text = GOOD + '  "\\e[2Jkey": 1\n'
    assert "\x1b" not in run("-f", "-", text=text).output
    (folder / "a\x1b[31m.yaml").write_text("a: [")
    assert "\x1b" not in run("-f", str(folder)).output


def test_colour_only_when_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert click.style("error", fg="red", bold=True) in run("-f", "-", text=BAD, color=True).output
    assert "\x1b" not in run("-f", "-", text=BAD).output
    assert "\x1b" not in run("-f", "-", "--output", "json", text=BAD, color=True).output
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run("-f", "-", text=BAD, color=True).output


def test_long_texts_are_cut() -> None:
    result = run("-f", "-", text=GOOD.replace("good", "x" * 100_000))
    assert max(map(len, result.output.splitlines())) < 700


def test_unreadable_and_huge_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.yaml").write_text(GOOD)
    (folder / "b.yaml").symlink_to(folder / "gone")
    monkeypatch.setattr("kuberay_op.commands.validate.MAX_BYTES", 100)
    result = run("-f", ".")
    assert result.exit_code == 1
    assert "a.yaml:1:1: error: the file is larger than" in result.output
    assert "b.yaml:1:1: error: cannot be read: No such file or directory" in result.output
    assert MAX_BYTES > 10_000_000


def test_old_version_and_generated_names() -> None:
    result = run("-f", "-", text=GOOD.replace("ray.io/v1", "ray.io/v1alpha1"))
    assert "warning: apiVersion: ray.io/v1alpha1 is deprecated" in result.output
    result = run("-f", "-", text=GOOD.replace("name: good", "generateName: good-"))
    assert result.exit_code == 0
