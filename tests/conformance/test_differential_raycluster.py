"""The reference and ours on the same API server, on the same RayClusters: their children are the same.

Ours are compared as ``kuberay-op run`` makes them, field by field, but for what chance, time and place decide
(``differences.py``) and what is meant to differ (``allowed-differences.yaml``).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.go_modules import ModuleUnavailableError
from kuberay_op.testing.reference import BUILD_SECONDS, reference_program, samples
from tests.conformance.differences import Difference, compare, load, unexplained
from tests.conformance.stage import Manifest, Stage, own_manifests, sample_manifests, stage, wait_for

HERE: Final = Path(__file__).parent
MANIFESTS: Final = HERE / "manifests"
SWITCHES: Final = MANIFESTS / "switches"
ALLOWED: Final = HERE / "allowed-differences.yaml"

#: What both operators are told: no servers, no lease, several clusters at once.
CONFIGURATION: Final[dict[str, Any]] = {
    "apiVersion": "config.ray.io/v1alpha1",
    "kind": "Configuration",
    "metricsAddr": "0",
    "probeAddr": "0",
    "enableLeaderElection": False,
    "reconcileConcurrency": 4,
}


@pytest.fixture(scope="module")
def reference() -> Path:
    """The reference operator."""
    try:
        return reference_program()
    except ModuleUnavailableError as error:
        pytest.skip(f"the reference operator cannot be had here: {error}")


def test_there_are_enough_manifests_of_our_own() -> None:
    assert len(own_manifests(MANIFESTS)) >= 40


def test_every_allowed_difference_has_a_reason_and_a_section() -> None:
    for entry in load(ALLOWED):
        assert len(entry.reason) > 20, entry
        assert entry.section.startswith("02 §"), entry


@pytest.mark.apiserver
@pytest.mark.timeout(BUILD_SECONDS + 600)
@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(["RayCluster"], id="clusters"),
        pytest.param(
            ["RayCluster", "RayJob", "RayService", "RayCronJob"], id="all-samples", marks=pytest.mark.slow
        ),
    ],
)
def test_children_are_the_same(
    kwok_cluster: ControlPlane, reference: Path, tmp_path: Path, kinds: list[str]
) -> None:
    install_crds(kwok_cluster)
    switches = yaml.safe_load((SWITCHES / "configuration.yaml").read_text())
    environment = yaml.safe_load((SWITCHES / "environment.yaml").read_text())
    run = partial(stage, kwok_cluster, reference)
    with (
        run(tmp_path / "plain", configuration=CONFIGURATION, environment={}) as plain,
        run(tmp_path / "switches", configuration=switches, environment=environment) as turned,
    ):
        manifests = [*own_manifests(MANIFESTS), *sample_manifests(samples(), kinds=kinds)]
        differences = [
            *_differences(plain, tmp_path / "plain", manifests),
            *_differences(turned, tmp_path / "switches", own_manifests(SWITCHES)),
        ]
    allowed = load(ALLOWED)
    left = unexplained(differences, allowed)
    assert not left, f"{len(left)} differences are not in {ALLOWED.name}:\n" + "\n".join(map(str, left))
    unused = [f"{entry.obj}: {entry.path}" for entry in allowed if not entry.used]
    assert unused == [], f"these entries of {ALLOWED.name} are not true any more"


def _differences(both: Stage, logs: Path, manifests: list[Manifest]) -> list[Difference]:
    sides = (both.theirs, both.ours)
    for side in sides:
        side.create(manifests)
    for side in sides:
        wait_for(side, {each.name: each.pods for each in manifests}, logs / f"{side.namespace}.log")
    theirs, ours = both.theirs.children(), both.ours.children()
    return [
        difference
        for each in manifests
        for difference in compare(each.source, theirs[each.name], ours[each.name])
    ]
