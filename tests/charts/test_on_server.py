"""Everything that the charts render passes strict validation by a real API server."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import httpx
import pytest
import yaml

from kuberay_op.api.validation import validate
from kuberay_op.features import Gates
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.go_modules import ModuleUnavailableError, module_dir
from tests.charts.cases import CHARTS, cases, objects_of
from tests.charts.helm import NAMESPACE, Json, rendered

pytestmark = pytest.mark.apiserver

EXAMPLES = Path(__file__).parents[2] / "values-examples"

#: Where the CRDs of others are published.
OTHERS = {
    ("github.com/prometheus-operator/prometheus-operator", "v0.85.0"): (
        "example/prometheus-operator-crd",
        ("servicemonitors", "podmonitors", "prometheusrules"),
    ),
    ("github.com/cert-manager/cert-manager", "v1.19.1"): ("deploy/crds", ("certificates", "issuers")),
}


@pytest.fixture(scope="module")
def server(control_plane: ControlPlane) -> ControlPlane:
    """A server that knows all kinds and namespaces in the cases."""
    install_crds(control_plane)
    for name in (NAMESPACE, "a", "b"):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        control_plane.kubectl("apply", "-f", "-", stdin=json.dumps(body))
    for (module, version), (folder, plurals) in OTHERS.items():
        try:
            found = module_dir(module, version) / folder
        except ModuleUnavailableError as error:
            pytest.skip(f"the CRDs of {module} cannot be had: {error}")
        for plural in plurals:
            (path,) = found.glob(f"*_{plural}.yaml")
            control_plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(path))
            name = yaml.safe_load(path.read_text("utf-8"))["metadata"]["name"]
            control_plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", f"crd/{name}")
    return control_plane


@cache
def places(server: ControlPlane, api_version: str) -> dict[str, tuple[str, bool]]:
    """The kinds of an API version: how each is called in paths, and whether it is in namespaces."""
    base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return {
        each["kind"]: (each["name"], each["namespaced"])
        for each in server.api("GET", base)["resources"]
        if "/" not in each["name"]
    }


def refused(server: ControlPlane, obj: Json) -> str:
    """What the server says against an object, which it does not store."""
    version, metadata = obj["apiVersion"], obj["metadata"]
    plural, namespaced = places(server, version)[obj["kind"]]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    where = f"/namespaces/{metadata['namespace']}" if namespaced else ""
    try:
        server.api("POST", f"{base}{where}/{plural}?dryRun=All&fieldValidation=Strict", obj)
    except httpx.HTTPStatusError as error:
        return f"{obj['kind']} {metadata['name']}: {error.response.json()['message']}"
    return ""


def accepted(server: ControlPlane, objects: list[Json]) -> int:
    """Let the server check objects strictly, without storing them; gives the number of different ones."""
    different = {json.dumps(each, sort_keys=True): each for each in objects}
    # A Pod is refused while its account is not there, so those are made.
    accounts = [each for each in different.values() if each["kind"] == "ServiceAccount"]
    if accounts:
        made = json.dumps({"apiVersion": "v1", "kind": "List", "items": accounts})
        server.kubectl(
            "apply", "--server-side", "--force-conflicts", "--validate=strict", "-f", "-", stdin=made
        )
    others = [each for each in different.values() if each["kind"] != "ServiceAccount"]
    assert [said for each in others if (said := refused(server, each))] == []
    return len(others)


def example_files() -> list[Path]:
    return sorted(EXAMPLES.glob("*/*.yaml"))


@pytest.mark.parametrize("path", example_files(), ids=lambda path: f"{path.parent.name}:{path.stem}")
def test_examples_render(path: Path) -> None:
    """Each is for the chart that its folder is named after, and says in its first line what it is for."""
    text = path.read_text("utf-8")
    assert text.startswith("# "), "begin with a comment that says what this is for"
    objects = rendered(path.parent.name, yaml.safe_load(text))
    gates = Gates.default().with_overrides("RayClusterMTLS=true,RayClusterNetworkPolicy=true")
    clusters = [each for each in objects if each["kind"] == "RayCluster"]
    assert len(clusters) == (path.parent.name == "ray-cluster")
    assert [str(problem) for each in clusters for problem in validate(each, gates.enabled)] == []


def test_every_example_is_listed() -> None:
    readme = (EXAMPLES / "README.md").read_text("utf-8")
    listed = {EXAMPLES / link for link in re.findall(r"\]\(([^)]+\.yaml)\)", readme)}
    assert listed == set(example_files())


def test_all_cases_and_examples_are_valid(server: ControlPlane) -> None:
    """One test, since making the server ready takes longer than asking it."""
    objects = [each for chart in CHARTS for case in cases(chart) for each in objects_of(chart, case)]
    for path in example_files():
        objects += rendered(path.parent.name, yaml.safe_load(path.read_text("utf-8")))
    assert accepted(server, objects) > 200
