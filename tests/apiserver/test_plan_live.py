"""``kuberay-op plan --live``: what would change on a real cluster, and nothing once the operator is done."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from kuberay_op.cli import cli
from kuberay_op.controllers.resources import RAY_CLUSTERS, RAY_JOBS
from kuberay_op.kube.resource import PODS
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.operator import eventually
from kuberay_op.testing.world import world_on

pytestmark = pytest.mark.apiserver


async def test_a_plan_is_empty_once_the_operator_is_done(
    kwok_cluster: ControlPlane, kwok_namespace: str, tmp_path: Path
) -> None:
    off = ("--plugin=-autoscaler-rbac", "--plugin=-gcs-ft-redis")

    async def plan(cluster: dict[str, Any]) -> Result:
        file = tmp_path / "cluster.yaml"
        file.write_text(yaml.safe_dump(cluster))
        words = ["plan", *off, "-f", str(file), "--live", "--kubeconfig", str(kwok_cluster.kubeconfig)]
        return await asyncio.to_thread(CliRunner().invoke, cli, words)

    small = make.raycluster("a", make.namespace(kwok_namespace), make.workers(1))
    async with world_on(kwok_cluster, kwok_namespace, {}) as world:
        new = await plan(small)
        assert (new.exit_code, "3 to create" in new.output) == (2, True), new.output

        await world.operator.client.create(RAY_CLUSTERS, small, reason="a test")

        async def two() -> bool:
            selector = "ray.io/cluster=a"
            return (
                len((await world.operator.client.list(PODS, kwok_namespace, label_selector=selector)).items)
                == 2
            )

        await eventually(two)
        done = await plan(small)
        assert (done.exit_code, "nothing to do" in done.output) == (0, True), done.output

        wide = make.raycluster("a", make.namespace(kwok_namespace), make.workers(3))
        more = await plan(wide)
        assert (more.exit_code, "2 to create" in more.output) == (2, True), more.output
        less = await plan(make.raycluster("a", make.namespace(kwok_namespace), make.workers(0)))
        assert (less.exit_code, "1 to delete" in less.output) == (2, True), less.output


async def test_a_job_that_runs_needs_nothing(
    kwok_cluster: ControlPlane, kwok_namespace: str, tmp_path: Path
) -> None:
    await asyncio.to_thread(install_crds, kwok_cluster, ["RayCluster", "RayJob"])
    job = make.rayjob("train", make.namespace(kwok_namespace), make.spec(submissionMode="K8sJobMode"))
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job))
    words = ["plan", "-f", str(file), "--live", "--kubeconfig", str(kwok_cluster.kubeconfig)]
    async with world_on(kwok_cluster, kwok_namespace, {}) as world:
        await world.operator.client.create(RAY_JOBS, job, reason="a test")

        async def runs() -> bool:
            found = await world.operator.client.get(RAY_JOBS, "train", kwok_namespace)
            return bool((found.get("status") or {}).get("jobDeploymentStatus") == "Running")

        await eventually(runs)
        done = await asyncio.to_thread(CliRunner().invoke, cli, words)
        assert (done.exit_code, "nothing to do" in done.output) == (0, True), done.output


async def test_somebody_who_may_not_see_enough_is_told(
    kwok_cluster: ControlPlane, kwok_namespace: str, tmp_path: Path
) -> None:
    await asyncio.to_thread(install_crds, kwok_cluster, ["RayCluster", "RayJob"])
    kubeconfig = await asyncio.to_thread(kwok_cluster.cluster.issue_client_cert, f"nobody-{kwok_namespace}")
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(make.raycluster("a", make.namespace(kwok_namespace))))
    words = ["plan", "-f", str(file), "--live", "--kubeconfig", str(kubeconfig)]
    done = await asyncio.to_thread(CliRunner().invoke, cli, words)
    assert "a plan needs to read the object itself" in str(done.exception)
