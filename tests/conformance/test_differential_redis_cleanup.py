"""The Job that empties Redis, as the reference makes it and as ours does (contract 02 §3.1).

The heads are sent to a node that does not exist: so the Pods of the Jobs stay, and can be looked at.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Final

import pytest

from kuberay_op.api.predicates import gcs_ft_embedded, gcs_ft_enabled
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.go_modules import ModuleUnavailableError
from kuberay_op.testing.reference import BUILD_SECONDS, reference_program
from tests.conformance.differences import Difference, compare, load, unexplained
from tests.conformance.stage import CLUSTERS, Children, Manifest, Side, own_manifests, stage, wait_for
from tests.conformance.test_differential_raycluster import CONFIGURATION

HERE: Final = Path(__file__).parent
ALLOWED: Final = HERE / "allowed-differences-redis-cleanup.yaml"


def fault_tolerant() -> list[Manifest]:
    """Our manifests of clusters that keep their state in Redis, with heads that no node takes."""
    found = []
    for each in own_manifests(HERE / "manifests"):
        cluster = RayCluster(each.obj)
        if gcs_ft_enabled(cluster.spec, cluster.metadata.annotations) and not gcs_ft_embedded(cluster.spec):
            obj = copy.deepcopy(each.obj)
            obj["spec"]["headGroupSpec"]["template"]["spec"]["nodeSelector"] = {"there": "is-none"}
            found.append(Manifest(each.source, obj))
    return found


def jobs(side: Side, names: list[str], log: Path) -> Children:
    """Delete the clusters, and wait until each has its Job."""
    for name in names:
        side.plane.api("DELETE", f"{CLUSTERS.format(side.namespace)}/{name}")

    def found() -> dict[str, int]:
        return {name: sum(key.startswith("Job ") for key in made) for name, made in side.children().items()}

    wait_for(side, dict.fromkeys(names, 1), log, found)
    return {
        name: {key: obj for key, obj in made.items() if key.startswith("Job ")}
        for name, made in side.children().items()
    }


@pytest.mark.apiserver
@pytest.mark.timeout(BUILD_SECONDS + 600)
def test_the_job_is_the_same(kwok_cluster: ControlPlane, tmp_path: Path) -> None:
    try:
        reference = reference_program()
    except ModuleUnavailableError as error:
        pytest.skip(f"the reference operator cannot be had here: {error}")
    install_crds(kwok_cluster)
    manifests = fault_tolerant()
    assert len(manifests) >= 5
    names = [each.name for each in manifests]
    logs = tmp_path / "stage"
    both: Any
    with stage(kwok_cluster, reference, logs, configuration=CONFIGURATION, environment={}) as both:
        made = {}
        for side in (both.theirs, both.ours):
            side.create(manifests)
        for side in (both.theirs, both.ours):
            log = logs / f"{side.namespace}.log"
            wait_for(side, {each.name: each.pods for each in manifests}, log)
            made[side.namespace] = jobs(side, names, log)
    theirs, ours = made[both.theirs.namespace], made[both.ours.namespace]
    differences: list[Difference] = [
        difference
        for each in manifests
        for difference in compare(each.source, theirs[each.name], ours[each.name])
    ]
    allowed = load(ALLOWED)
    left = unexplained(differences, allowed)
    assert not left, f"{len(left)} differences are not in {ALLOWED.name}:\n" + "\n".join(map(str, left))
    assert [f"{entry.obj}: {entry.path}" for entry in allowed if not entry.used] == []
