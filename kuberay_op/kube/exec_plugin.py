"""Credentials from a plugin: a program named in the kubeconfig that prints a token or a certificate.

The protocol with the program is left to the ``kubernetes`` package. It is imported only here, because it
costs time and memory that nobody else need pay; the measurement is in
``docs/adr/0005-client-and-cache.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from kuberay_op.clock import Clock
from kuberay_op.errors import Misconfigured
from kuberay_op.kube.credentials import Material, Renewed

#: A plugin may open a browser or ask a cloud; longer than this it hangs.
TIMEOUT: Final = 60.0

#: Run again so long before the answer expires.
MARGIN: Final = timedelta(minutes=2)


class ExecCredentials(Renewed):
    """Runs the plugin at the start, before its answer expires, and when the server does not accept it."""

    def __init__(self, plugin: Mapping[str, Any], material: Material, clock: Clock) -> None:
        super().__init__(clock)
        self._plugin = plugin
        self._material = material
        self._expires: datetime | None = None
        self._answered = False

    async def _load(self, *, force: bool) -> None:
        lasting = self._expires is None or self._clock.now() < self._expires - MARGIN
        if self._answered and lasting and not force:
            return
        status = await self._run()
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        token = status.get("token")
        if not token and not (certificate and key):
            raise Misconfigured(f"{self._name} gave neither a token nor a certificate with its key")
        material = (
            replace(self._material, cert_data=certificate, key_data=key) if certificate else self._material
        )
        try:
            self._expires = _moment(status.get("expirationTimestamp"))
            self._tls = await asyncio.to_thread(material.tls_context)
        except (OSError, ValueError) as error:
            raise Misconfigured(f"{self._name} gave a certificate or a time that cannot be read") from error
        self._header = f"Bearer {token}" if token else None
        self._answered = True

    async def _run(self) -> Mapping[str, Any]:
        # Late: see above.
        from kubernetes.aio.config.config_exception import ConfigException
        from kubernetes.aio.config.exec_provider import ExecProvider
        from kubernetes.aio.config.kube_config import ConfigNode

        try:
            async with asyncio.timeout(TIMEOUT):
                status = await ExecProvider(ConfigNode("exec", dict(self._plugin))).run()
        except TimeoutError as error:
            raise Misconfigured(f"{self._name} gave no answer within {TIMEOUT:g} s") from error
        except (ConfigException, OSError) as error:
            raise Misconfigured(f"{self._name} failed: {error}") from error
        return status if isinstance(status, dict) else {}

    @property
    def _name(self) -> str:
        return f"the kubeconfig's exec plugin {self._plugin.get('command')!r}"


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
