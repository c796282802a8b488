"""Whom the API server must trust, written into its webhook configurations.

Only entries that lead to one of our paths are touched, and only their ``caBundle``.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from kuberay_op.kube.client import Client, PatchKind
from kuberay_op.kube.errors import Conflict, InvalidObject, NotFound
from kuberay_op.kube.resource import Object, Resource

_GROUP: Final = "admissionregistration.k8s.io"

VALIDATING: Final = Resource(
    _GROUP, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
)
MUTATING: Final = Resource(
    _GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False
)


def hosts(configuration: Mapping[str, Any], paths: Collection[str]) -> set[str]:
    """The hosts under which the API server will look for us. Pure."""
    found = set()
    for _, client in _ours(configuration, paths):
        service = client.get("service")
        if service:
            found.add(f"{service['name']}.{service['namespace']}.svc")
        elif host := urlsplit(client.get("url") or "").hostname:
            found.add(host)
    return found


def injection(configuration: Mapping[str, Any], paths: Collection[str], bundle: bytes) -> list[Object]:
    """The JSON patch that makes our entries trust ``bundle``; empty if they do. Pure."""
    text = base64.b64encode(bundle).decode()
    patch: list[Object] = []
    for index, client in _ours(configuration, paths):
        if client.get("caBundle") != text:
            at = f"/webhooks/{index}"
            # The test, so that nothing is written when entries have moved meanwhile.
            name = configuration["webhooks"][index]["name"]
            patch.append({"op": "test", "path": f"{at}/name", "value": name})
            patch.append({"op": "add", "path": f"{at}/clientConfig/caBundle", "value": text})
    return patch


def _ours(
    configuration: Mapping[str, Any], paths: Collection[str]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, entry in enumerate(configuration.get("webhooks") or ()):
        client = entry.get("clientConfig") or {}
        service = client.get("service")
        path = service.get("path") if service else urlsplit(client.get("url") or "").path
        if path in paths:
            yield index, client


class Injector:
    """Keeps the webhook configurations of these names up to date; those that do not exist are no matter."""

    def __init__(self, client: Client, names: Sequence[str], paths: Collection[str]) -> None:
        self._client = client
        self._names = names
        self._paths = paths
        self._found: list[tuple[Resource, Object]] = []

    async def look(self) -> set[str]:
        """Read the configurations; gives the hosts that the certificate must name."""
        self._found = [
            (resource, found)
            for name in self._names
            for resource in (VALIDATING, MUTATING)
            if (found := await self._read(resource, name)) is not None
        ]
        return set().union(*(hosts(found, self._paths) for _, found in self._found))

    async def inject(self, bundle: bytes) -> int:
        """Write the bundle where the last look found another; gives the number of writes."""
        written = 0
        for resource, configuration in self._found:
            patch = injection(configuration, self._paths, bundle)
            if patch:
                written += await self._patch(resource, configuration["metadata"]["name"], patch)
        return written

    async def _read(self, resource: Resource, name: str) -> Object | None:
        try:
            return await self._client.get(resource, name)
        except NotFound:
            return None

    async def _patch(self, resource: Resource, name: str, patch: list[Object]) -> int:
        try:
            await self._client.patch(
                resource, name, None, patch, kind=PatchKind.JSON, reason="the webhook has another authority"
            )
        except (NotFound, Conflict, InvalidObject):
            return 0  # it was changed or went meanwhile; the next look finds out
        return 1
