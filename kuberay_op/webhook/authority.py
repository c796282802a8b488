"""The authorities in a Secret: read by name, shared by all replicas, replaced in time.

Whoever sees that a new authority is due writes it. Of several, the first wins and the others take its word.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from kuberay_op.clock import Clock
from kuberay_op.errors import Retry
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import AlreadyExists, Conflict, NotFound
from kuberay_op.kube.resource import SECRETS, Object
from kuberay_op.logs import get_logger
from kuberay_op.webhook.certificates import (
    Authority,
    Lifetimes,
    authority_due,
    bundle,
    keys,
    new_authority,
    read_authorities,
    valid,
)

CERTIFICATES: Final = "ca.crt"
KEYS: Final = "ca.key"

#: How often another replica may be faster before we wait a little.
ATTEMPTS: Final = 5

_log = get_logger("webhook")


class SharedAuthorities:
    """The authorities of all replicas."""

    def __init__(
        self, client: Client, *, namespace: str, name: str, clock: Clock, lifetimes: Lifetimes
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._clock = clock
        self._lifetimes = lifetimes

    async def current(self) -> list[Authority]:
        """All that have not ended, oldest first; a new one is made and stored when that is due."""
        for _ in range(ATTEMPTS):
            secret = await self._read()
            found = [] if secret is None else self._authorities(secret)
            now = self._clock.now()
            if not authority_due(found, now, self._lifetimes):
                return valid(found, now)
            wanted = [*valid(found, now), new_authority(now, self._lifetimes)]
            try:
                await self._write(secret, wanted)
            except (AlreadyExists, Conflict, NotFound):
                continue  # another replica was faster
            _log.info(
                "made an authority for the webhook",
                secret=f"{self._namespace}/{self._name}",
                until=wanted[-1].until.isoformat(),
            )
            return wanted
        raise Retry(f"the Secret {self._namespace}/{self._name} changes too often to be written", after=1.0)

    async def _read(self) -> Object | None:
        try:
            return await self._client.get(SECRETS, self._name, self._namespace)
        except NotFound:
            return None

    async def _write(self, secret: Object | None, authorities: list[Authority]) -> None:
        data = {CERTIFICATES: _encoded(bundle(authorities)), KEYS: _encoded(keys(authorities))}
        reason = "the webhook needs a new authority"
        if secret is None:
            obj = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": self._name,
                    "namespace": self._namespace,
                    "labels": {"app.kubernetes.io/created-by": "kuberay-operator"},
                },
                "data": data,
            }
            await self._client.create(SECRETS, obj, reason=reason)
            return
        version = {"resourceVersion": secret["metadata"]["resourceVersion"]}
        await self._client.patch(
            SECRETS, self._name, self._namespace, {"metadata": version, "data": data}, reason=reason
        )

    def _authorities(self, secret: Object) -> list[Authority]:
        """What is in the Secret; nothing if that makes no sense, so that it is made anew."""
        data = secret.get("data") or {}
        try:
            return read_authorities(
                *(base64.b64decode(data.get(name) or "") for name in (CERTIFICATES, KEYS))
            )
        except (ValueError, TypeError, binascii.Error) as error:
            _log.warning(
                "the Secret of the webhook is broken and will be made anew",
                secret=f"{self._namespace}/{self._name}",
                problem=type(error).__name__,  # not its text, which could quote what stands there
            )
            return []


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
