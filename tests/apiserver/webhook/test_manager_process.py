"""``manager`` as a process of its own, with the role that ``kuberay-op rbac`` prints and nothing more."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import InvalidObject, NotFound
from kuberay_op.kube.resource import EVENTS, NETWORK_POLICIES, SECRETS
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.operator import eventually
from kuberay_op.webhook.injection import VALIDATING
from kuberay_op.webhook.manifests import by_url, configuration

pytestmark = pytest.mark.apiserver

Json = dict[str, Any]
CONFIGURATION = "kuberay-validating-webhook-configuration"
SECRET = "kuberay-webhook-ca"
GATES = "RayClusterNetworkPolicy=true,RayClusterMTLS=true"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


@pytest.fixture
def user(control_plane: ControlPlane, namespace: str) -> Iterator[Path]:
    """The kubeconfig of a user with exactly what is printed; its namespace is ``default``."""
    # RayJobs and the like, too: the operator watches all kinds it knows.
    install_crds(control_plane)
    arguments = ("--webhook", f"--feature-gates={GATES}", "--namespace=default", f"--name={namespace}")
    command = [sys.executable, "-c", "from kuberay_op.cli import main; main()", "rbac", *arguments]
    roles = yaml.safe_load(subprocess.run(command, capture_output=True, check=True).stdout)["items"]
    bindings = [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": f"{role['kind']}Binding",
            "metadata": role["metadata"],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"],
                        "name": role["metadata"]["name"]},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": namespace}],
        }
        for role in roles
    ]  # fmt: skip
    text = yaml.safe_dump_all([*roles, *bindings])
    control_plane.kubectl("apply", "-f", "-", stdin=text)
    yield control_plane.cluster.issue_client_cert(namespace)
    control_plane.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=text)


@asynccontextmanager
async def manager(log: Path, *flags: str) -> AsyncIterator[None]:
    """The process, as an image would start it; it must end well."""
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from kuberay_op.cli import manager; manager()"),
            *flags,
            env={**os.environ, "ENABLE_WEBHOOKS": "true"},
            stdout=output,
            stderr=output,
        )
    try:
        yield
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 60) == 0
    except BaseException as error:
        error.add_note((await asyncio.to_thread(log.read_text))[-5000:])
        raise
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with await Client.connect(control_plane.kubeconfig, qps=0) as connected:
        yield connected
        for resource, name, where in ((VALIDATING, CONFIGURATION, None), (SECRETS, SECRET, "default")):
            with suppress(NotFound):
                await connected.delete(resource, name, where, reason="a test")


async def test_all_of_it_with_the_printed_role(
    client: Client, namespace: str, user: Path, tmp_path: Path
) -> None:
    port, health, log = free_port(), free_port(), tmp_path / "manager.log"
    obj = configuration(CONFIGURATION, by_url(f"https://127.0.0.1:{port}"))
    for entry in obj["webhooks"]:
        entry["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    await client.create(VALIDATING, obj, reason="a test")
    flags = (
        f"-kubeconfig={user}",
        "-enable-leader-election=false",
        f"-watch-namespace={namespace}",
        "-metrics-addr=0",
        f"-health-probe-bind-address=127.0.0.1:{health}",
        f"--webhook-bind-address=127.0.0.1:{port}",
        f"--feature-gates={GATES}",
        "--log-stdout-encoder=console",
    )
    async with manager(log, *flags), aiohttp.ClientSession() as session:

        async def ready() -> bool:
            with suppress(aiohttp.ClientError):
                async with session.get(f"http://127.0.0.1:{health}/readyz") as response:
                    return response.status == 200 and "[+]webhook ok" in await response.text()
            return False

        await eventually(ready)

        async def create(name: str, *parts: make.Part, **options: Any) -> Json:
            obj = make.raycluster(name, make.namespace(namespace), *parts)
            return await client.create(RAY_CLUSTERS, obj, reason="a test", **options)

        async def refused() -> bool:
            with suppress(InvalidObject):
                await create("c", make.workers(0, "a"), make.workers(0, "a"), dry_run=True)
                return False
            return True

        await eventually(refused)
        await create("c", make.workers(0, "a"), make.cluster(networkPolicy={}))

        async def policies() -> bool:
            found = (await client.list(NETWORK_POLICIES, namespace)).items
            return {each["metadata"]["name"] for each in found} == {"c-head", "c-workers-a"}

        await eventually(policies)

        # Without cert-manager (contract 02 §2 step d). Another test may have brought its CRDs along.
        alone = "does not serve cert-manager.io/v1" in log.read_text()
        await create("tls", make.cluster(tlsOptions={"enabled": True}))

        async def told() -> bool:
            found = (await client.list(EVENTS, namespace)).items
            return any(
                event["reason"] == "InvalidRayClusterSpec" and "needs cert-manager" in event["note"]
                for event in found
            )

        if alone:
            await eventually(told)
    text = log.read_text()
    assert "forbidden" not in text.lower()
    assert "\tcontrollers.NetworkPolicy\treconciled" in text
    summary = [line.split(maxsplit=2) for line in text.splitlines() if line.startswith("  ")]
    assert ["webhook", f"127.0.0.1:{port},", f"own authority in Secret default/{SECRET}, trusted by "
            f"{CONFIGURATION}"] in summary  # fmt: skip
    assert f"health           127.0.0.1:{health}" in text
    assert "RayClusterMTLS on (default: off; flag --feature-gates)" in text
    assert "enable-leader-election = false (flag --enable-leader-election)" in text
    assert "ENABLE_WEBHOOKS = true (env ENABLE_WEBHOOKS)" in text
