"""The objects around the head on a real API server: made once, repaired, and others' left alone."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.features import Gates
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.resource import INGRESSES, PERSISTENT_VOLUME_CLAIMS, SECRETS, SERVICES, Resource
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.operator import eventually, running_operator

pytestmark = pytest.mark.apiserver

TOKEN = make.cluster(rayVersion="2.55.0", authOptions={"mode": "token"})
EMBEDDED = Gates.default().with_overrides("GCSFaultToleranceEmbeddedStorage=true")


class Place:
    """A namespace with an operator at work in it."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def make(self, name: str, *parts: make.Part) -> dict[str, Any]:
        obj = make.raycluster(name, make.namespace(self.namespace), *parts)
        return await self.client.create(RAY_CLUSTERS, obj, reason="a test")

    async def find(self, resource: Resource, name: str) -> dict[str, Any] | None:
        try:
            return await self.client.get(resource, name, self.namespace)
        except NotFound:
            return None

    async def change(self, resource: Resource, name: str, patch: dict[str, Any]) -> dict[str, Any]:
        return await self.client.patch(resource, name, self.namespace, patch, reason="a test")

    async def touch(self, name: str) -> None:
        """Make the operator look at a cluster, and wait until it has."""
        edited = await self.change(
            RAY_CLUSTERS, name, {"spec": {"headServiceAnnotations": {"touched": "yes"}}}
        )

        async def seen() -> bool:
            found = await self.client.get(RAY_CLUSTERS, name, self.namespace)
            return bool(
                found.get("status", {}).get("observedGeneration", 0) >= edited["metadata"]["generation"]
            )

        await eventually(seen)


@pytest.fixture
def plane(control_plane: ControlPlane) -> ControlPlane:
    """A control plane that has RayClusters."""
    install_crds(control_plane, ["RayCluster"])
    return control_plane


@pytest.fixture
async def place(plane: ControlPlane, namespace: str) -> AsyncIterator[Place]:
    """A fresh namespace with an operator at work in it."""
    async with running_operator(plane.kubeconfig, namespaces=[namespace], gates=EMBEDDED) as operator:
        yield Place(operator.client, namespace)


async def test_a_token_is_made_once_and_anew_when_it_is_lost(place: Place) -> None:
    await place.make("a", TOKEN)
    secret = await eventually(lambda: place.find(SECRETS, "a"))
    token = base64.b64decode(secret["data"]["auth_token"]).decode()
    assert len(base64.b64decode(token, validate=True)) == 32
    assert secret["metadata"]["labels"] == {"ray.io/cluster": "a"}
    await place.touch("a")
    assert await place.find(SECRETS, "a") == secret
    await place.client.delete(SECRETS, "a", place.namespace, reason="an accident")
    await place.change(RAY_CLUSTERS, "a", {"metadata": {"labels": {"look": "again"}}})
    again = await eventually(lambda: place.find(SECRETS, "a"))
    assert again["data"] != secret["data"]


async def test_a_secret_of_the_user_is_used_as_it_is(place: Place) -> None:
    own = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "a", "namespace": place.namespace},
        "stringData": {"auth_token": "mine"},
    }
    made = await place.client.create(SECRETS, own, reason="a test")
    await place.make("a", TOKEN)
    await eventually(lambda: place.find(SERVICES, "a-head-svc"))
    await place.touch("a")
    assert await place.find(SECRETS, "a") == made


async def test_an_ingress_follows_the_spec_and_keeps_what_others_add(place: Place) -> None:
    await place.make("a", make.head(enableIngress=True))
    await eventually(lambda: place.find(INGRESSES, "a-head-ingress"))
    await place.change(
        INGRESSES, "a-head-ingress", {"metadata": {"annotations": {"theirs": "x"}, "labels": {"theirs": "y"}}}
    )
    await place.change(
        RAY_CLUSTERS, "a", {"spec": {"headGroupSpec": {"ingressOptions": {"host": "h.example"}}}}
    )

    async def followed() -> dict[str, Any] | None:
        found = await place.find(INGRESSES, "a-head-ingress")
        return found if found and found["spec"]["rules"][0].get("host") == "h.example" else None

    found = await eventually(followed)
    assert found["metadata"]["annotations"]["theirs"] == "x"
    assert found["metadata"]["labels"]["theirs"] == "y"


async def test_a_head_service_is_never_changed(place: Place) -> None:
    """Contract 02 §16.4 33: what users change in it stays, and a change of the spec does not reach it."""
    await place.make("a")
    await eventually(lambda: place.find(SERVICES, "a-head-svc"))
    changed = await place.change(
        SERVICES,
        "a-head-svc",
        {"spec": {"ports": [{"name": "only", "port": 1}]}, "metadata": {"labels": {"x": "y"}}},
    )
    await place.touch("a")
    assert await place.find(SERVICES, "a-head-svc") == changed


async def test_a_claim_is_made_kept_and_adopted(place: Place) -> None:
    def storage(**fields: Any) -> make.Part:
        return make.cluster(gcsFaultToleranceOptions={"backend": "rocksdb", "storage": fields})

    first = await place.make("a", storage(size="2Gi", deletionPolicy="Retain"))
    claim = await eventually(lambda: place.find(PERSISTENT_VOLUME_CLAIMS, "a-gcs-pvc"))
    assert claim["spec"]["resources"]["requests"]["storage"] == "2Gi"
    assert "ownerReferences" not in claim["metadata"]
    await place.client.delete(RAY_CLUSTERS, "a", place.namespace, reason="a test")
    await eventually(lambda: _gone(place, "a", first["metadata"]["uid"]))
    second = await place.make("a", storage(size="2Gi"))

    async def adopted() -> bool:
        found = await place.find(PERSISTENT_VOLUME_CLAIMS, "a-gcs-pvc")
        owners = found["metadata"].get("ownerReferences", []) if found else []
        return [owner["uid"] for owner in owners] == [second["metadata"]["uid"]]

    await eventually(adopted)
    found = await place.find(PERSISTENT_VOLUME_CLAIMS, "a-gcs-pvc")
    assert found is not None
    assert found["metadata"]["uid"] == claim["metadata"]["uid"], "the same volume, with all that is on it"


async def _gone(place: Place, name: str, uid: str) -> bool:
    found = await place.find(RAY_CLUSTERS, name)
    return found is None or found["metadata"]["uid"] != uid
