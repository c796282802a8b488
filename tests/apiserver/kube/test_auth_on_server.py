"""Every way to log in that needs no third party, on a real API server. The administrator's own kubeconfig,
used by all other tests here, has a client certificate.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from kuberay_op.kube import config, errors
from kuberay_op.kube.client import Client
from kuberay_op.kube.resource import CONFIG_MAPS, NAMESPACES, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS
from kuberay_op.testing.clock import FakeClock
from kuberay_op.testing.controlplane import ControlPlane
from tests.apiserver.kube.objects import config_map

pytestmark = pytest.mark.apiserver


async def account(client: Client, namespace: str) -> None:
    """A service account that may read ConfigMaps of its namespace and nothing else."""
    meta = {"name": "reader", "namespace": namespace}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": namespace}
    await client.create(SERVICE_ACCOUNTS, {"metadata": meta}, reason="test")
    await client.create(ROLES, {"metadata": meta, "rules": [rule]}, reason="test")
    await client.create(
        ROLE_BINDINGS, {"metadata": meta, "roleRef": role, "subjects": [subject]}, reason="test"
    )
    await client.create(CONFIG_MAPS, config_map(namespace, "a"), reason="test")


async def token(client: Client, namespace: str) -> str:
    path = SERVICE_ACCOUNTS.path(namespace, "reader", "token")
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 600},
    }
    answer: dict[str, Any] = orjson.loads(await client.request("POST", path, body=body))
    value: str = answer["status"]["token"]
    return value


def as_user(control_plane: ControlPlane, folder: Path, user: Mapping[str, Any]) -> Path:
    """The administrator's kubeconfig with another user in it."""
    content = yaml.safe_load(control_plane.kubeconfig.read_text())
    content["users"][0]["user"] = dict(user)
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return file


async def can_read_config_maps_only(kubeconfig: Path, namespace: str) -> None:
    async with await Client.connect(kubeconfig) as reader:
        assert (await reader.get(CONFIG_MAPS, "a", namespace))["data"] == {"a": "1"}
        with pytest.raises(errors.Forbidden):
            await reader.delete(CONFIG_MAPS, "a", namespace, reason="test")


async def test_a_token(client: Client, namespace: str, control_plane: ControlPlane, tmp_path: Path) -> None:
    await account(client, namespace)
    user = {"token": await token(client, namespace)}
    await can_read_config_maps_only(as_user(control_plane, tmp_path, user), namespace)


async def test_a_wrong_token(namespace: str, control_plane: ControlPlane, tmp_path: Path) -> None:
    async with await Client.connect(as_user(control_plane, tmp_path, {"token": "hunter2"})) as nobody:
        with pytest.raises(errors.Unauthorized) as caught:
            await nobody.get(NAMESPACES, namespace)
    assert "hunter2" not in str(caught.value)


async def test_client_certificates_in_files(
    namespace: str, control_plane: ControlPlane, tmp_path: Path
) -> None:
    content = yaml.safe_load(control_plane.kubeconfig.read_text())
    user = content["users"][0]["user"]
    for name in ("client-certificate", "client-key"):
        (tmp_path / name).write_bytes(base64.b64decode(user[f"{name}-data"]))
    files = {"client-certificate": "client-certificate", "client-key": "client-key"}
    async with await Client.connect(as_user(control_plane, tmp_path, files)) as admin:
        assert (await admin.get(NAMESPACES, namespace))["kind"] == "Namespace"


async def test_the_server_must_be_who_we_think(control_plane: ControlPlane, tmp_path: Path) -> None:
    content = yaml.safe_load(control_plane.kubeconfig.read_text())
    del content["clusters"][0]["cluster"]["certificate-authority-data"]
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(content))
    async with await Client.connect(tmp_path / "kubeconfig") as client:
        with pytest.raises(errors.Unreachable, match="certificate verify failed") as caught:
            await client.get(NAMESPACES, "default")
    assert not caught.value.sent


async def test_in_a_pod_with_a_token_that_rotates(
    client: Client,
    namespace: str,
    control_plane: ControlPlane,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await account(client, namespace)
    cluster = yaml.safe_load(control_plane.kubeconfig.read_text())["clusters"][0]["cluster"]
    (tmp_path / "ca.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    (tmp_path / "namespace").write_text(namespace)
    (tmp_path / "token").write_text(await token(client, namespace))
    host, _, port = control_plane.server.removeprefix("https://").partition(":")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    monkeypatch.setattr(config, "SERVICE_ACCOUNT", tmp_path)
    async with await Client.connect(clock=FakeClock()) as pod:
        assert pod.namespace == namespace
        await pod.get(CONFIG_MAPS, "a", namespace)
        # The file changes long before the minute is over, and the old token stops working.
        await client.delete(SERVICE_ACCOUNTS, "reader", namespace, reason="test")
        await client.create(
            SERVICE_ACCOUNTS, {"metadata": {"name": "reader", "namespace": namespace}}, reason="test"
        )
        (tmp_path / "token").write_text(await token(client, namespace))
        async with asyncio.timeout(60):
            await pod.get(CONFIG_MAPS, "a", namespace)


PLUGIN = """
import json, os, pathlib, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
folder = pathlib.Path(__file__).parent
with (folder / "calls").open("a") as calls:
    calls.write("x")
status = json.loads((folder / "status").read_text())
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


def with_plugin(control_plane: ControlPlane, folder: Path, status: Mapping[str, str]) -> Path:
    (folder / "plugin.py").write_text(PLUGIN)
    (folder / "status").write_text(json.dumps(status))
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(folder / "plugin.py")],
        "interactiveMode": "Never",
    }
    return as_user(control_plane, folder, {"exec": plugin})


@pytest.mark.loop_guard(milliseconds=5000)  # the import of the kubernetes package, once, at the start
async def test_a_plugin_that_gives_a_token(
    client: Client, namespace: str, control_plane: ControlPlane, tmp_path: Path
) -> None:
    await account(client, namespace)
    good = await token(client, namespace)
    kubeconfig = with_plugin(control_plane, tmp_path, {"token": good})
    await can_read_config_maps_only(kubeconfig, namespace)
    (tmp_path / "status").write_text(json.dumps({"token": "expired"}))
    async with await Client.connect(kubeconfig) as reader:
        (tmp_path / "status").write_text(json.dumps({"token": good}))
        await reader.get(CONFIG_MAPS, "a", namespace)
    assert (tmp_path / "calls").read_text() == "xxx", "once for each client, and once after 401"


@pytest.mark.loop_guard(milliseconds=5000)  # the import of the kubernetes package, once, at the start
async def test_a_plugin_that_gives_a_certificate(
    namespace: str, control_plane: ControlPlane, tmp_path: Path
) -> None:
    user = yaml.safe_load(control_plane.kubeconfig.read_text())["users"][0]["user"]
    pair = {
        "clientCertificateData": base64.b64decode(user["client-certificate-data"]).decode(),
        "clientKeyData": base64.b64decode(user["client-key-data"]).decode(),
    }
    async with await Client.connect(with_plugin(control_plane, tmp_path, pair)) as admin:
        assert (await admin.get(NAMESPACES, namespace))["kind"] == "Namespace"
