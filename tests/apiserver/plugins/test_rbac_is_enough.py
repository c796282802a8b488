"""``kuberay-op rbac`` is the truth: with exactly that, the operator works and is never refused."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.resource import CONFIG_MAPS, PODS, Resource
from kuberay_op.testing import make
from kuberay_op.testing.audit import AuditLog
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.operator import eventually

pytestmark = [
    pytest.mark.apiserver,
    pytest.mark.loop_guard(
        milliseconds=10_000
    ),  # this loop only drives; the operator is a process of its own
]

SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")

USER = "system:serviceaccount:kuberay-system:kuberay-operator"

#: What the operator may do and does not do in this test, by verb and resource, and when it does.
RARE = {
    ("list", "*"): "the server has no streaming lists, or a cache is late",
    ("get", "configmaps"): "an object of that name turns up in the meantime",
    ("get", "services"): "the same",
    ("get", "ingresses"): "the same",
    ("get", "pods"): "the same",
    ("get", "rayclusters"): "a cache is late, so the server is asked",
    ("patch", "pods"): "a Pod is brought up to date in place",
    ("patch", "services"): "somebody has changed it",
    ("patch", "ingresses"): "somebody has changed it",
    ("patch", "events"): "something is said again",
    ("update", "rayclusters/finalizers"): "the admission plugin OwnerReferencesPermissionEnforcement is on",
    ("*", "persistentvolumeclaims"): "the gate GCSFaultToleranceEmbeddedStorage is on",
    ("*", "routes"): "the cluster is OpenShift",
    ("*", "secrets"): "a cluster has token authentication",
    ("create", "rayclusters"): "a RayJob needs one; this cluster has no RayJobs",
    ("delete", "rayclusters"): "the same",
    ("*", "rayjobs"): "the same",
    ("*", "rayjobs/status"): "the same",
    ("*", "rayjobs/finalizers"): "the same",
    ("*", "services/proxy"): "Ray is asked through the API server",
    ("get", "serviceaccounts"): "an object of that name turns up in the meantime",
    ("get", "roles"): "the same",
    ("get", "rolebindings"): "the same",
    ("get", "jobs"): "the same",
    ("patch", "serviceaccounts"): "somebody has changed it",
    ("patch", "roles"): "somebody has changed it",
    ("patch", "rolebindings"): "somebody has changed it",
    ("patch", "jobs"): "somebody has changed it",
    ("delete", "jobs"): "a plugin does not want one any more",
    ("patch", "pods/resize"): "nobody can grant what he may not do: autoscalers get this right",
}

NOTES = """
apiVersion: kuberay-op/v1alpha1
kind: Plugin
name: notes
summary: Keep a note on every cluster that is not quiet.
rbac:
  - {apiGroups: [""], resources: [configmaps], verbs: [create, delete, get, list, patch, watch]}
watches:
  - {apiVersion: v1, kind: ConfigMap, plural: configmaps}
objects:
  - name: the note
    when: not owner.metadata.labels.quiet
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${owner.metadata.name}-note"}
      data: {team: "${owner.metadata.labels.team}"}
"""


@pytest.fixture
def audit(tmp_path: Path) -> AuditLog:
    return AuditLog(tmp_path, [USER], reads=True)


@pytest.fixture
def plane(own_cluster: Any, audit: AuditLog) -> ControlPlane:
    made: ControlPlane = own_cluster(
        only=None, node="kwok:2", extra_args={"kube-apiserver": audit.arguments()}
    )
    install_crds(made, ["RayCluster"])
    return made


def grant(plane: ControlPlane, *arguments: str) -> list[dict[str, Any]]:
    """Give the user exactly what ``kuberay-op rbac`` prints; returns the roles."""
    command = [sys.executable, "-c", "from kuberay_op.cli import main; main()", "rbac", *arguments]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    plane.create_namespace("kuberay-system")
    plane.kubectl("apply", "-f", "-", stdin=printed)
    roles: list[dict[str, Any]] = yaml.safe_load(printed)["items"]
    for role in roles:
        metadata = {key: role["metadata"][key] for key in ("name", "namespace") if key in role["metadata"]}
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": f"{role['kind']}Binding",
            "metadata": metadata,
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": role["kind"],
                "name": role["metadata"]["name"],
            },
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
        }
        plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(binding))
    return roles


@asynccontextmanager
async def operator(plane: ControlPlane, log: Path, *flags: str) -> AsyncIterator[None]:
    """``kuberay-op run`` as that user."""
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from kuberay_op.cli import main; main()", "run"),
            f"--kubeconfig={plane.cluster.issue_client_cert(USER)}",
            "--leader-election-namespace=kuberay-system",
            "--metrics-addr=0",
            "--health-probe-bind-address=0",
            *flags,
            stdout=output,
            stderr=output,
        )
    try:
        yield
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 60) == 0, "see operator.log"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def live_through(client: Client, plane: ControlPlane) -> None:
    """The life of a RayCluster with everything in it that the operator has to do something about."""

    async def ready() -> bool:
        found = await client.get(RAY_CLUSTERS, "a", "default")
        return bool(found.get("status", {}).get("state") == "ready")

    async def pods() -> list[Any]:
        return (await client.list(PODS, "default", label_selector="ray.io/cluster=a")).items

    async def note() -> Any:
        try:
            return (await client.get(CONFIG_MAPS, "a-note", "default"))["data"]
        except NotFound:
            return {}

    cluster = make.raycluster("a", make.workers(2), make.labels(team="ml"), make.head(enableIngress=True))
    await client.create(RAY_CLUSTERS, cluster, reason="a test")
    await eventually(ready)

    async def note_says(**data: str) -> None:
        async def says() -> bool:
            return bool(await note() == data)

        await eventually(says)

    await note_says(team="ml")
    team = {"metadata": {"labels": {"team": "web"}}}
    await client.patch(RAY_CLUSTERS, "a", "default", team, reason="an edit")
    await note_says(team="web")
    quiet = {"metadata": {"labels": {"quiet": "yes"}}}
    await client.patch(RAY_CLUSTERS, "a", "default", quiet, reason="an edit")
    await note_says()

    fewer = [
        {"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 1},
        {"op": "add", "path": "/metadata/finalizers", "value": ["ray.io/left-behind"]},
    ]
    plane.kubectl(
        "patch", "raycluster", "a", "--type=json", "-p", yaml.safe_dump(fewer, default_flow_style=True)
    )

    async def scaled_down() -> bool:
        return len(await pods()) == 2

    await eventually(scaled_down)
    await ends(client, "a")


async def live_with_the_default_plugins(client: Client) -> None:
    """A cluster with an autoscaler, which loses it, and with keys in Redis."""

    async def account() -> bool:
        found = (await client.list(SERVICE_ACCOUNTS, "default", label_selector="ray.io/cluster=b")).items
        return bool(found)

    async def no_account() -> bool:
        return not await account()

    await client.create(RAY_CLUSTERS, make.raycluster("b", make.autoscaling(), make.redis()), reason="a test")
    await eventually(account)
    off = {"spec": {"enableInTreeAutoscaling": False, "suspend": True}}
    await client.patch(RAY_CLUSTERS, "b", "default", off, reason="an edit")
    await eventually(no_account)
    await ends(client, "b")


async def ends(client: Client, name: str) -> None:
    """Delete a cluster and wait until it is gone."""
    await client.delete(RAY_CLUSTERS, name, "default", reason="a test")

    async def gone() -> bool:
        try:
            await client.get(RAY_CLUSTERS, name, "default")
        except NotFound:
            return True
        return False

    await eventually(gone)


async def test_it_is_enough_and_no_more(plane: ControlPlane, audit: AuditLog, tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "notes.yaml").write_text(NOTES)
    roles = grant(plane, "--namespace=kuberay-system", "--plugins=notes", f"--plugin-folder={folder}")
    log = tmp_path / "operator.log"
    async with (
        await Client.connect(plane.kubeconfig) as client,
        operator(plane, log, "--plugins=notes", f"--plugin-folders={folder}"),
    ):
        await live_through(client, plane)
        await live_with_the_default_plugins(client)

    calls = audit.calls()
    refused = {(call.verb, call.group, call.resource) for call in calls if call.code == 403}
    assert refused == set(), "the role lacks something"
    used = {(call.verb, call.group, call.resource) for call in calls}
    granted = {
        (verb, group, resource)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    superfluous = {
        (verb, group, resource)
        for verb, group, resource in granted - used
        if not {(verb, resource), (verb, "*"), ("*", resource)} & RARE.keys()
    }
    assert superfluous == set(), "the role grants what nobody does"
    assert '"level":"error"' not in log.read_text()
