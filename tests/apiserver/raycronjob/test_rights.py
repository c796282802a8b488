"""With the role that ``kuberay-op rbac`` prints for the gate, nothing is refused."""

from __future__ import annotations

import pytest
import yaml

from kuberay_op.rbac import cluster_role
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.operator import eventually
from tests.apiserver.raycronjob.conftest import GATES, Begin
from tests.apiserver.raycronjob.test_schedule import ran, settled

pytestmark = pytest.mark.apiserver


async def test_the_role_is_enough(begin: Begin, control_plane: ControlPlane) -> None:
    async with begin() as stage:
        user = f"operator-of-{stage.namespace}"
        role = cluster_role(user, [], GATES)
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": user},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        }
        control_plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([role, binding]))
        try:
            async with stage.operator(kubeconfig=control_plane.cluster.issue_client_cert(user)):
                await stage.create(concurrencyPolicy="Replace", successfulJobsHistoryLimit=0)
                await settled(stage)
                for number in (1, 2):
                    stage.clock.set(stage.month(number))
                    await ran(stage, number)
                await stage.finish(stage.name(2))

                async def cut() -> bool:
                    return await stage.names() == []

                await eventually(cut)
                # What is refused is said in an event.
                assert await stage.said("FailedToCreateRayJob") == []
                assert await stage.said("FailedToDeleteRayJob") == []
        finally:
            control_plane.kubectl("delete", "clusterrole,clusterrolebinding", user)
