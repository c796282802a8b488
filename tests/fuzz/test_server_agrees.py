"""The schema layer and a real API server accept and refuse the same mutated objects."""

from __future__ import annotations

import copy
import os
from typing import Any

import httpx
import pytest

from kuberay_op.api.crds import view_of
from kuberay_op.api.schema import schema_problems
from kuberay_op.api.view import Json
from kuberay_op.testing.changes import changed
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.mutate import mutants, seeds

pytestmark = pytest.mark.apiserver

SEED = 20260807
COUNT = int(os.environ.get("FUZZ_COUNT", "100000")) // 100


def refusal(plane: ControlPlane, obj: Json, namespace: str) -> str:
    """What the server has against the object; nothing is stored."""
    view = view_of(obj["apiVersion"], obj["kind"])
    assert view is not None
    path = f"/apis/{obj['apiVersion']}/namespaces/{namespace}/{view.PLURAL}?fieldValidation=Strict&dryRun=All"
    try:
        plane.api("POST", path, obj)
    except httpx.HTTPStatusError as error:
        if error.response.status_code not in (400, 422):
            raise
        answer: Any = error.response.json()
        return str(answer["message"])
    return ""


def agree(plane: ControlPlane, namespace: str, count: int, seed: int) -> None:
    install_crds(plane)
    wrong: list[str] = []
    accepted = 0
    given = [changed(obj, {"metadata.namespace": None}) for obj in seeds()]
    for number, obj in enumerate(mutants(given, count=count, seed=seed, most=3)):
        ours = [str(problem) for problem in schema_problems(copy.deepcopy(obj))]
        theirs = refusal(plane, obj, namespace)
        accepted += not theirs
        if bool(ours) != bool(theirs):
            wrong.append(
                f"object {number} of seed {seed}:\n  ours: {ours[:3]}\n  server: {theirs[:500]}\n  {obj}"
            )
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong[:10])
    assert count / 10 < accepted < count * 9 / 10, "the mutants are all alike"


def test_the_server_agrees(control_plane: ControlPlane, namespace: str) -> None:
    agree(control_plane, namespace, 250, SEED)


@pytest.mark.slow
def test_the_server_agrees_on_many(control_plane: ControlPlane, namespace: str) -> None:
    agree(control_plane, namespace, max(1_000, COUNT), SEED + 1)
