"""The webhook asked by a real API server, which reaches it on loopback by its address."""

from __future__ import annotations

import asyncio
import base64
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import orjson
import pytest
from cryptography import x509

from kuberay_op.clock import SystemClock
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.features import Gates
from kuberay_op.kube.client import Client, PatchKind
from kuberay_op.kube.errors import InvalidObject, NotFound, ServerError
from kuberay_op.kube.resource import SECRETS
from kuberay_op.runtime.supervisor import Supervisor
from kuberay_op.testing import make
from kuberay_op.testing.clock import FakeClock
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.operator import eventually, make_hooks
from kuberay_op.webhook.admission import PATHS, Judge
from kuberay_op.webhook.authority import SharedAuthorities
from kuberay_op.webhook.certificates import Lifetimes
from kuberay_op.webhook.injection import VALIDATING, Injector
from kuberay_op.webhook.manifests import by_url, configuration
from kuberay_op.webhook.service import Webhook
from kuberay_op.webhook.sources import Made

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("loop_guard")]

Json = dict[str, Any]
Kubectl = Callable[..., subprocess.CompletedProcess[str]]
TWICE = (make.workers(0, "a"), make.workers(0, "a"))


class Place:
    """A namespace that a webhook of its own watches over."""

    def __init__(self, client: Client, namespace: str, clock: SystemClock) -> None:
        self.client = client
        self.namespace = namespace
        self.clock = clock

    @asynccontextmanager
    async def replica(
        self, lifetimes: Lifetimes | None = None, **options: Any
    ) -> AsyncIterator[tuple[Webhook, int]]:
        """One operator's webhook; gives it and its port."""
        times = lifetimes or Lifetimes()
        shared = SharedAuthorities(
            self.client, namespace=self.namespace, name="webhook-ca", clock=self.clock, lifetimes=times
        )
        injector = Injector(self.client, [self.namespace], PATHS)
        source = Made(shared, injector, clock=self.clock, lifetimes=times)
        judge = Judge(make_hooks({}), Gates.default().enabled)
        webhook = Webhook(judge, source, clock=self.clock, **options)
        supervisor = Supervisor(self.clock, Random(1))  # noqa: S311 (seeded on purpose)
        async with webhook.running(("127.0.0.1", 0), supervisor) as (_, port):
            yield webhook, port

    async def configure(self, port: int) -> None:
        """Have the API server ask the webhook about this namespace; named after it."""
        obj = configuration(self.namespace, by_url(f"https://127.0.0.1:{port}"))
        for entry in obj["webhooks"]:
            entry["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}}
        await self.client.create(VALIDATING, obj, reason="a test")

    async def trusts(self) -> list[x509.Certificate]:
        """Whom the API server trusts."""
        found = await self.client.get(VALIDATING, self.namespace)
        bundles = {entry["clientConfig"].get("caBundle", "") for entry in found["webhooks"]}
        assert len(bundles) == 1
        text = base64.b64decode(bundles.pop())
        return x509.load_pem_x509_certificates(text) if text else []

    async def create(self, name: str, *parts: make.Part, **options: Any) -> Json:
        obj = make.raycluster(name, make.namespace(self.namespace), *parts)
        return await self.client.create(RAY_CLUSTERS, obj, reason="a test", **options)

    async def asked(self) -> bool:
        """Whether the API server asks the webhook by now, and believes it."""
        try:
            await self.create("probe", *TWICE, dry_run=True)
        except InvalidObject:
            return True
        except ServerError:
            return False  # it does not trust us yet
        return False

    async def up(self) -> None:
        await eventually(self.asked)


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    install_crds(control_plane, ["RayCluster"])
    return control_plane


@pytest.fixture
async def place(plane: ControlPlane, namespace: str) -> AsyncIterator[Place]:
    async with await Client.connect(plane.kubeconfig, qps=0) as client:
        yield Place(client, namespace, SystemClock())
        with suppress(NotFound):
            await client.delete(VALIDATING, namespace, None, reason="a test")


@pytest.fixture
def kubectl(control_plane: ControlPlane) -> Kubectl:
    """Runs kubectl and gives all it says, complaints and warnings too."""

    def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        cluster = control_plane.cluster
        command = [cluster.spec.programs["kubectl"], *arguments]
        return subprocess.run(
            command, env=cluster.environment(), input=stdin, capture_output=True, text=True, check=False
        )

    return run


async def test_people_see_what_is_wrong_and_what_is_odd(place: Place, kubectl: Kubectl) -> None:
    async with place.replica(interval=0.2) as (_, port):
        await place.configure(port)
        await place.up()

        async def create(*parts: make.Part) -> subprocess.CompletedProcess[str]:
            text = orjson.dumps(make.raycluster("c", make.namespace(place.namespace), *parts)).decode()
            return await asyncio.to_thread(kubectl, "create", "-f", "-", stdin=text)

        refused = await create(*TWICE)
        assert refused.returncode == 1
        assert refused.stderr.startswith(
            'The RayCluster "c" is invalid: spec.workerGroupSpecs[1]: worker group names must be unique'
        )
        odd = await create(make.workers(20, "a", maxReplicas=2))
        assert odd.returncode == 0, odd.stderr
        assert "Warning: spec.workerGroupSpecs[0].replicas: is 20, outside of 0 to 2" in odd.stderr


async def test_authorities_change_and_no_request_is_refused(place: Place) -> None:
    short = Lifetimes(
        authority=timedelta(seconds=9), serving=timedelta(seconds=3), settle=timedelta(seconds=2)
    )
    async with place.replica(short, interval=0.2) as (webhook, port):
        await place.configure(port)
        await place.up()
        signers: set[int] = set()
        requests = 0

        async def three_authorities() -> bool:
            nonlocal requests
            await place.create("good", dry_run=True)  # raises if the API server does not believe the webhook
            requests += 1
            assert webhook.certificate is not None
            signers.add(webhook.certificate.signer)
            return len(signers) >= 3

        await eventually(three_authorities)
        assert requests > 20
        assert 1 <= len(await place.trusts()) <= 3  # those that have ended are gone


async def test_replicas_share_one_authority(place: Place) -> None:
    async with AsyncExitStack() as stack:
        replicas = [await stack.enter_async_context(place.replica(interval=0.2)) for _ in range(2)]
        await place.configure(replicas[0][1])

        async def ready() -> bool:
            return [await webhook.check() for webhook, _ in replicas] == [None, None]

        await eventually(ready)
        await place.up()
        (authority,) = await place.trusts()
        (serial,) = {webhook.certificate.signer for webhook, _ in replicas if webhook.certificate}
        assert authority.serial_number == serial
        secret = await place.client.get(SECRETS, "webhook-ca", place.namespace)
        assert set(secret["data"]) == {"ca.crt", "ca.key"}

        # The API server is sent to the other one: the same trust, another certificate.
        await place.client.delete(VALIDATING, place.namespace, None, reason="a test")
        await place.configure(replicas[1][1])
        await place.up()
        assert await place.trusts() == [authority]


async def test_replicas_that_make_an_authority_at_once_agree_on_one(place: Place) -> None:
    clock, times = FakeClock(datetime.now(UTC)), Lifetimes()

    async def all_at_once() -> set[tuple[int, ...]]:
        replicas = [
            SharedAuthorities(
                place.client, namespace=place.namespace, name="race", clock=clock, lifetimes=times
            )
            for _ in range(8)
        ]
        found = await asyncio.gather(*(replica.current() for replica in replicas))
        return {tuple(each.certificate.serial_number for each in authorities) for authorities in found}

    (first,) = await all_at_once()
    assert len(first) == 1
    clock.skip(times.authority.total_seconds() * 0.7)  # the time of the successor
    (second,) = await all_at_once()
    assert second[:1] == first
    assert len(second) == 2
    clock.skip(times.authority.total_seconds() * 0.4)  # the first has ended, the second goes on
    (third,) = await all_at_once()
    assert third == second[1:]


async def test_a_broken_secret_and_a_lost_trust_are_mended(place: Place) -> None:
    async with place.replica(interval=0.2) as (_, port):
        await place.configure(port)
        await place.up()
        (before,) = await place.trusts()
        patch = [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]
        await place.client.patch(
            VALIDATING, place.namespace, None, patch, kind=PatchKind.JSON, reason="a test"
        )

        async def trusted_again() -> bool:
            found = await place.client.get(VALIDATING, place.namespace)
            return all("caBundle" in entry["clientConfig"] for entry in found["webhooks"])

        await eventually(trusted_again)
        assert await place.trusts() == [before]
        await place.client.patch(
            SECRETS, "webhook-ca", place.namespace, {"data": {"ca.key": "eA=="}}, reason="a test"
        )

        async def another() -> bool:
            return [each.serial_number for each in await place.trusts()] != [before.serial_number]

        await eventually(another)
        await place.up()


async def test_without_the_webhook_nothing_new_comes_and_everything_can_go(place: Place) -> None:
    async with place.replica(interval=0.2) as (_, port):
        await place.configure(port)
        await place.up()
        await place.create("old")
        patch: Json = {"metadata": {"finalizers": ["ray.io/test"]}}
        await place.client.patch(RAY_CLUSTERS, "old", place.namespace, patch, reason="a test")
    with pytest.raises(ServerError, match="failed calling webhook"):
        await place.create("new", deadline=5.0)
    await place.client.delete(RAY_CLUSTERS, "old", place.namespace, reason="a test")
    release: Json = {"metadata": {"finalizers": None}}
    await place.client.patch(RAY_CLUSTERS, "old", place.namespace, release, reason="a test")
    with pytest.raises(NotFound):
        await place.client.get(RAY_CLUSTERS, "old", place.namespace)
