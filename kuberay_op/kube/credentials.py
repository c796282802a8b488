"""Who we are to the API server: tokens and certificates, kept fresh.

The simple cases (client certificate, token, token file, in-cluster) are read here. Exec plugins and OIDC are
left to the ``kubernetes`` package, which is imported only then because it costs time and memory; the
measurement is in ``docs/adr/0005-client-and-cache.md``.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from kuberay_op.clock import Clock
from kuberay_op.errors import Misconfigured

#: Files and expiry dates are looked at again after this many seconds; the kubelet rotates projected tokens.
REFRESH: Final = 60.0

#: An exec plugin may open a browser or ask a cloud; longer than this it hangs.
PLUGIN_TIMEOUT: Final = 60.0


class Credentials(Protocol):
    """What a session asks before each request."""

    @property
    def tls(self) -> ssl.SSLContext:
        """The context for connections made from now on."""
        ...

    async def authorization(self) -> str | None:
        """The value of the ``Authorization`` header, if there is one."""
        ...

    async def renew(self) -> None:
        """Get fresh credentials, because the server did not accept the present ones."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class Material:
    """Where keys, certificates and tokens are, or what they are. Data goes before files."""

    ca_file: str | None = None
    ca_data: str | None = None
    cert_file: str | None = None
    cert_data: str | None = None
    key_file: str | None = None
    key_data: str | None = None
    token: str | None = None
    token_file: str | None = None
    username: str | None = None
    password: str | None = None
    insecure: bool = False

    def tls_context(self) -> ssl.SSLContext:
        """A client context that trusts the authority and shows the certificate."""
        context = ssl.create_default_context(cafile=self.ca_file, cadata=self.ca_data)
        # Newer Pythons refuse authorities without the extensions of RFC 5280, which clusters in use have.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.cert_file or self.cert_data:
            self._load_certificate(context)
        return context

    def _load_certificate(self, context: ssl.SSLContext) -> None:
        if self.cert_file and self.key_file and not (self.cert_data or self.key_data):
            context.load_cert_chain(self.cert_file, self.key_file)
            return
        # OpenSSL reads certificates from files only; the folder has mode 0700 and is gone a moment later.
        with tempfile.TemporaryDirectory(prefix="kube-") as folder:
            pair = Path(folder, "pair.pem")
            pair.write_text(
                (self.cert_data or Path(self.cert_file or "").read_text())
                + "\n"
                + (self.key_data or Path(self.key_file or "").read_text())
            )
            context.load_cert_chain(pair)

    def tls_versions(self) -> tuple[float, ...]:
        """Changes when one of the TLS files does."""
        files = (self.ca_file, self.cert_file, self.key_file)
        return tuple(Path(file).stat().st_mtime for file in files if file)

    def header(self) -> str | None:
        """The ``Authorization`` header; reads the token file."""
        if self.token_file:
            token = Path(self.token_file).read_text().strip()
            if not token:
                raise Misconfigured(f"the token file {self.token_file} is empty")
            return f"Bearer {token}"
        if self.token:
            return f"Bearer {self.token}"
        if self.username:
            pair = f"{self.username}:{self.password or ''}".encode()
            return f"Basic {base64.b64encode(pair).decode()}"
        return None


class PlainCredentials:
    """Certificates and tokens from files or values; changed files are noticed within a minute."""

    def __init__(self, material: Material, clock: Clock) -> None:
        self._material = material
        self._clock = clock
        self._lock = asyncio.Lock()
        self._read()

    @property
    def tls(self) -> ssl.SSLContext:
        """The context made of the files as last seen."""
        return self._tls

    async def authorization(self) -> str | None:
        """The header made of the token as last seen, at most a minute ago."""
        if self._clock.monotonic() - self._read_at >= REFRESH:
            await self.renew()
        return self._header

    async def renew(self) -> None:
        """Read the files again."""
        seen = self._read_at
        async with self._lock:
            if self._read_at == seen:  # else another request has done it while this one waited
                await asyncio.to_thread(self._read)

    def _read(self) -> None:
        material = self._material
        try:
            versions = material.tls_versions()
            if versions != getattr(self, "_versions", None):
                self._tls = material.tls_context()
            self._header = material.header()
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            if hasattr(self, "_header"):
                # Half-written during a rotation, perhaps: the old ones may still be good.
                self._read_at = self._clock.monotonic()
                return
            raise Misconfigured(f"cannot read the credentials for the API server: {error}") from error
        self._versions = versions
        self._read_at = self._clock.monotonic()


class PackageCredentials:
    """Exec plugins, OIDC and cloud providers, through the ``kubernetes`` package."""

    def __init__(self, kubeconfig: dict[str, Any], context: str, clock: Clock) -> None:
        self._kubeconfig = kubeconfig
        self._context = context
        self._clock = clock
        self._lock = asyncio.Lock()
        self._loader: Any = None
        self._loaded_at = 0.0

    @classmethod
    async def load(cls, kubeconfig: dict[str, Any], context: str, clock: Clock) -> PackageCredentials:
        """Run the plugin or ask the provider for the first time."""
        self = cls(kubeconfig, context, clock)
        await self._load(fresh=True)
        return self

    @property
    def tls(self) -> ssl.SSLContext:
        """The context, with the certificate that the plugin gave, if it gave one."""
        return self._tls

    async def authorization(self) -> str | None:
        """The header; the package renews what is about to expire."""
        if self._clock.monotonic() - self._loaded_at >= REFRESH:
            async with self._lock:
                if self._clock.monotonic() - self._loaded_at >= REFRESH:
                    await self._load(fresh=False)
        return self._header

    async def renew(self) -> None:
        """Run the plugin again, even though its answer has not expired."""
        seen = self._loaded_at
        async with self._lock:
            if self._loaded_at == seen:
                await self._load(fresh=True)

    async def _load(self, *, fresh: bool) -> None:
        # Late: half a second of CPU and tens of megabytes that the simple cases need not pay.
        from kubernetes.aio.client import Configuration
        from kubernetes.aio.config import ConfigException
        from kubernetes.aio.config.kube_config import KubeConfigLoader

        configuration = Configuration()
        try:
            async with asyncio.timeout(PLUGIN_TIMEOUT):
                if fresh:
                    self._loader = KubeConfigLoader(self._kubeconfig, active_context=self._context)
                await self._loader.load_and_set(configuration)
        except (ConfigException, ValueError, OSError, TimeoutError) as error:
            raise Misconfigured(
                f"cannot get credentials for the kubeconfig context {self._context!r}: {error or 'timed out'}"
            ) from error
        header = configuration.api_key.get("BearerToken")
        if header is None and configuration.cert_file is None:
            raise Misconfigured(
                f"the exec plugin or provider of the kubeconfig context {self._context!r} gave "
                "neither a token nor a certificate; run it by hand to see why"
            )
        self._header: str | None = header
        self._tls = await asyncio.to_thread(
            Material(
                ca_file=configuration.ssl_ca_cert,
                cert_file=configuration.cert_file,
                key_file=configuration.key_file,
                insecure=not configuration.verify_ssl,
            ).tls_context
        )
        self._loaded_at = self._clock.monotonic()
