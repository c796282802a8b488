"""An object that a rule refuses is still created: the API server knows the structure, the operator the rules.

What breaks a rule (``tests/unit/api_validation/cases``) is sent to a real API server. It must refuse exactly
what the schema layer refuses, so that an object which the reference would create and then mark as invalid is
created and marked here, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from kuberay_op.api.crds import VERSIONS
from kuberay_op.api.schema import schema_problems
from kuberay_op.api.validation import CATALOGUE
from kuberay_op.api.view import Json
from kuberay_op.testing import make
from kuberay_op.testing.changes import changed
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds

pytestmark = pytest.mark.apiserver

CASES: Final = Path(__file__).parents[1] / "unit" / "api_validation" / "cases"
MAKERS: Final[dict[str, Any]] = {
    "RayCluster": make.raycluster,
    "RayJob": make.rayjob,
    "RayService": make.rayservice,
    "RayCronJob": make.raycronjob,
}

#: Rules that the schema has in part (limits, required fields, CEL rules), so that the server refuses first.
REFUSED: Final = {
    "raycluster.metadata.2",
    "raycluster.spec.1",
    "raycluster.upgrade.1",
    "rayjob.spec.3.4",
    "rayjob.spec.3.5.1",
    "rayjob.spec.3.6.1",
    "rayjob.spec.3.6.2",
    "rayjob.spec.3.7",
    "rayjob.spec.12",
    "rayservice.metadata.2",
    "rayservice.spec.5",
    "rayservice.spec.6.4",
    "raycronjob.spec.4",
}


def broken() -> list[tuple[str, Json]]:
    """Every object that breaks a rule, with the rule."""
    found: list[tuple[str, Json]] = []
    for file in sorted(CASES.glob("*.yaml")):
        for case in yaml.safe_load(file.read_text()):
            sets = case["bad"] if isinstance(case["bad"], list) else [case["bad"]]
            kind = case.get("kind", "RayCluster")
            base = MAKERS[kind]("a", make.workers(1, "small", maxReplicas=5))
            base = changed(base, {"metadata.namespace": None, "spec.shutdownAfterJobFinishes": None})
            found.extend((case["rule"], changed(base, changes)) for changes in sets)
    return [(rule, obj) for rule, obj in found if CATALOGUE[rule].severity == "error"]


def refusal(plane: ControlPlane, obj: Json, namespace: str) -> str:
    plural = VERSIONS[obj["kind"]][0].PLURAL
    path = f"/apis/ray.io/v1/namespaces/{namespace}/{plural}?fieldValidation=Strict&dryRun=All"
    try:
        plane.api("POST", path, obj)
    except httpx.HTTPStatusError as error:
        return str(error.response.json()["message"])
    return ""


def test_what_breaks_a_rule_is_created_unless_the_schema_says_so(
    control_plane: ControlPlane, namespace: str
) -> None:
    install_crds(control_plane)
    created: set[str] = set()
    refused: set[str] = set()
    for rule, obj in broken():
        theirs = refusal(control_plane, obj, namespace)
        ours = [str(problem) for problem in schema_problems(obj)]
        assert bool(ours) == bool(theirs), f"{rule}: ours {ours}, the server: {theirs}"
        (refused if theirs else created).add(rule)
    assert refused == REFUSED
    assert len(created) > 80
