"""Who we are to the API server: tokens and certificates, kept fresh.

Here are the simple cases: client certificate, token, token file, password, in-cluster. Plugins are in
:mod:`kuberay_op.kube.exec_plugin`, OpenID Connect in :mod:`kuberay_op.kube.oidc`.
"""

from __future__ import annotations

import abc
import asyncio
import base64
import math
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from kuberay_op.clock import Clock
from kuberay_op.errors import Misconfigured
from kuberay_op.logs import get_logger

log = get_logger("kube.credentials")

#: Files and expiry dates are looked at again after this many seconds; the kubelet rotates projected tokens.
REFRESH: Final = 60.0


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


class Renewed(abc.ABC):
    """Credentials that are loaded again every minute, and at once when the server does not accept them.

    Subclasses set ``_header`` and ``_tls`` in ``_load`` and raise
    :class:`~kuberay_op.errors.Misconfigured` when they cannot.
    """

    _header: str | None
    _tls: ssl.SSLContext

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = asyncio.Lock()
        self._loaded_at = -math.inf

    @property
    def tls(self) -> ssl.SSLContext:
        """The context for connections made from now on."""
        return self._tls

    async def authorization(self) -> str | None:
        """The value of the ``Authorization`` header, if there is one."""
        if self._clock.monotonic() - self._loaded_at >= REFRESH:
            await self._refresh(force=False)
        return self._header

    async def renew(self) -> None:
        """Load them again, because the server did not accept the present ones."""
        await self._refresh(force=True)

    async def _refresh(self, *, force: bool) -> None:
        seen = self._loaded_at
        async with self._lock:
            if self._loaded_at != seen:
                return  # another request has done it while this one waited
            try:
                await self._load(force=force)
            except Misconfigured as error:
                if seen == -math.inf:
                    raise
                # Half a rotation, or a plugin in trouble: the old ones may be good for a while.
                log.warning("cannot renew the credentials for the API server", error=str(error))
            self._loaded_at = self._clock.monotonic()

    @abc.abstractmethod
    async def _load(self, *, force: bool) -> None:
        """Load them; with ``force`` even if they have not expired."""


class PlainCredentials(Renewed):
    """Certificates and tokens from files or values; changed files are noticed within a minute."""

    def __init__(self, material: Material, clock: Clock) -> None:
        super().__init__(clock)
        self._material = material
        self._versions: tuple[float, ...] | None = None
        self._read()
        self._loaded_at = clock.monotonic()

    async def _load(self, *, force: bool) -> None:
        await asyncio.to_thread(self._read)

    def _read(self) -> None:
        material = self._material
        try:
            versions = material.tls_versions()
            if versions != self._versions:
                self._tls = material.tls_context()
            self._header = material.header()
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise Misconfigured(f"cannot read the credentials for the API server: {error}") from error
        self._versions = versions
