"""``crds``, ``explain`` and ``new`` as users call them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from kuberay_op.api.crds import VERSIONS, crd, file_name, find_kind, view_of
from kuberay_op.api.schema import schema_problems
from kuberay_op.cli import cli


def run(*arguments: str) -> Result:
    """One call of the command line."""
    return CliRunner().invoke(cli, arguments)


# --- crds


def test_crds_prints_all_kinds_as_one_stream() -> None:
    result = run("crds")
    assert result.exit_code == 0
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents = list(yaml.load_all(result.stdout, Loader=loader))
    assert [document["spec"]["names"]["kind"] for document in documents] == list(VERSIONS)


def test_crds_prints_the_kinds_that_are_named() -> None:
    result = run("crds", "raycronjob", "RayJobs", "--output", "json")
    names = [item["metadata"]["name"] for item in json.loads(result.stdout)["items"]]
    assert names == ["raycronjobs.ray.io", "rayjobs.ray.io"]


def test_crds_writes_files_and_checks_them(tmp_path: Path) -> None:
    folder = tmp_path / "crds"
    written = run("crds", "--output-dir", str(folder))
    assert written.stdout.split() == [str(folder / file_name(kind)) for kind in VERSIONS]
    assert run("crds", "--check", str(folder)).exit_code == 0
    (folder / file_name("RayJob")).write_text("changed")
    (folder / file_name("RayService")).unlink()
    checked = run("crds", "--check", str(folder))
    assert checked.exit_code == 1
    assert "ray.io_rayjobs.yaml differs" in checked.stderr
    assert "ray.io_rayservices.yaml is missing" in checked.stderr
    assert "rayclusters" not in checked.stderr
    assert run("crds", "raycluster", "--check", str(folder)).exit_code == 0


def test_crds_says_what_is_wrong_with_its_arguments(tmp_path: Path) -> None:
    result = run("crds", "rayclutser")
    assert result.exit_code == 2
    assert "there is no kind 'rayclutser'; did you mean 'raycluster'?" in result.stderr
    both = run("crds", "--check", str(tmp_path), "--output-dir", str(tmp_path))
    assert both.exit_code == 2


def test_the_charts_crds_are_up_to_date() -> None:
    folder = Path(__file__).parents[3] / "charts" / "kuberay-operator" / "crds"
    result = run("crds", "--check", str(folder))
    assert result.exit_code == 0, result.stderr


# --- explain


def test_explain_teaches_a_field() -> None:
    result = run("explain", "raycluster.spec.workerGroupSpecs.minReplicas")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "KIND:     RayCluster",
        "VERSION:  ray.io/v1",
        "FIELD:    spec.workerGroupSpecs.minReplicas <integer>",
        "",
        "The fewest replicas to keep.",
        "Default: 0",
    ]


def test_explain_shows_the_fields_below() -> None:
    result = run("explain", "rayjob.spec.deletionStrategy.deletionRules")
    assert "FIELD:    spec.deletionStrategy.deletionRules <list of objects>" in result.stdout
    assert "minItems: 1" in result.stdout
    assert "  policy <string> (required)\n    What to delete.\n    Allowed: DeleteCluster, " in result.stdout


def test_explain_as_json() -> None:
    answer = json.loads(run("explain", "rayservice.spec.managedBy", "--output", "json").stdout)
    assert answer["kind"] == "RayService"
    assert answer["apiVersion"] == "ray.io/v1"
    assert answer["path"] == "spec.managedBy"
    assert answer["type"] == "string"
    assert answer["rules"][0] == "cannot be changed once it is set"
    assert answer["fields"] == []


def test_explain_enters_pod_templates_and_maps() -> None:
    container = run("explain", "raycluster.spec.headGroupSpec.template.spec.containers.ports.protocol")
    assert 'Default: "TCP"' in container.stdout
    deployments = "rayservice.status.activeServiceStatus.applicationStatuses.app.serveDeploymentStatuses"
    assert "map of objects" in run("explain", deployments).stdout
    limits = run("explain", "raycluster.spec.autoscalerOptions.resources.limits")
    assert "<map of quantities>" in limits.stdout


def test_explain_recursive_shows_the_tree() -> None:
    lines = run("explain", "raycronjob.spec", "--recursive").stdout.splitlines()
    assert "  schedule <string>" in lines
    assert "      headGroupSpec <object>" in lines


def test_explain_of_the_deprecated_version() -> None:
    result = run("explain", "raycluster.spec.headGroupSpec.rayStartParams", "--api-version", "v1alpha1")
    assert "<map of strings> (required)" in result.stdout
    missing = run("explain", "raycronjob", "--api-version", "v1alpha1")
    assert missing.exit_code == 2
    assert "RayCronJob has no version v1alpha1" in missing.stderr


@pytest.mark.parametrize(
    ("path", "code", "text"),
    [
        ("raycluster.spec.workerGroupSpec", 1, "RayCluster.spec has no field 'workerGroupSpec'; did you mean "
         "'workerGroupSpecs'?"),
        ("raycronjob.status.zzz", 1, "RayCronJob.status has no field 'zzz'; it has active, conditions, last"),
        ("raycluster.spec.suspend.x", 1, "RayCluster.spec.suspend is of type boolean and has no fields"),
        ("ray", 2, "there is no kind 'ray'"),
    ],
)  # fmt: skip
def test_explain_of_something_that_is_not_there(path: str, code: int, text: str) -> None:
    result = run("explain", path)
    assert result.exit_code == code
    assert text in result.stderr


# --- new


@pytest.mark.parametrize("kind", VERSIONS)
def test_new_prints_a_manifest_that_fits(kind: str) -> None:
    result = run("new", kind.lower(), "trial", "--ray-version", "2.53.0")
    assert result.exit_code == 0
    obj = yaml.safe_load(result.stdout)
    assert (obj["kind"], obj["metadata"]["name"]) == (kind, "trial")
    assert [str(problem) for problem in schema_problems(obj)] == []
    assert "$" not in result.stdout
    assert "rayproject/ray:2.53.0" in result.stdout
    assert "#" in result.stdout


def test_new_has_a_name_for_you() -> None:
    assert yaml.safe_load(run("new", "rayjobs").stdout)["metadata"]["name"] == "rayjob"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("raycluster", "Trial"), "'Trial' must be a DNS label"),
        (("raycronjob", "a" * 37), "has 37 characters; a RayCronJob may have at most 36"),
        (("pod",), "there is no kind 'pod'"),
        (("rayjob", "--ray-version", "nightly"), "'nightly' is not a version"),
    ],
)
def test_new_says_what_is_wrong(arguments: tuple[str, ...], text: str) -> None:
    result = run("new", *arguments)
    assert result.exit_code == 2
    assert text in result.stderr


def test_crd_and_command_agree() -> None:
    answer = json.loads(run("crds", "raycluster", "--output", "json").stdout)
    assert answer["items"] == [crd("RayCluster")]


def test_kinds_are_found_by_any_of_their_names() -> None:
    assert find_kind("RayCluster") == find_kind("raycluster") == find_kind("rayclusters") == "RayCluster"
    assert find_kind("pod") is None
    assert view_of("ray.io/v1", "RayCronJob") is VERSIONS["RayCronJob"][0]
    assert view_of("ray.io/v1alpha1", "RayCronJob") is None
    assert view_of("v1", "RayCluster") is None
