"""Where the certificate comes from: made here and trusted by injection, or files of somebody else's."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final, Protocol

from kuberay_op.clock import Clock
from kuberay_op.errors import OperatorError
from kuberay_op.webhook.authority import SharedAuthorities
from kuberay_op.webhook.certificates import (
    Lifetimes,
    Serving,
    bundle,
    new_serving,
    read_serving,
    signer_of,
)
from kuberay_op.webhook.injection import Injector

#: Where the reference looks for files. (``tempfile`` wants a folder that can be written; this is only read.)
_TEMPORARY: Final = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 (only read, and only if files are there)
REFERENCE_FOLDER: Final = Path(_TEMPORARY) / "k8s-webhook-server" / "serving-certs"

#: A certificate names this host if no webhook configuration says which.
LOCALHOST: Final = "localhost"


class Source(Protocol):
    """Gives certificates."""

    async def refresh(self) -> Serving | None:
        """The certificate to serve with if it is another one than last time; raises OperatorError."""
        ...


def has_files(folder: Path) -> bool:
    """Whether a folder has a certificate and a key."""
    return (folder / "tls.crt").exists() and (folder / "tls.key").exists()


class Files:
    """``tls.crt`` and ``tls.key`` in a folder, as cert-manager's Secret is mounted; read again on change."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: tuple[bytes, bytes] | None = None

    async def refresh(self) -> Serving | None:
        """The certificate in the files, if they have changed."""
        try:
            found = await asyncio.to_thread(self._read)
        except OSError as error:
            raise OperatorError(f"the webhook's certificate cannot be read: {error}") from error
        if found == self._known:
            return None
        try:
            serving = read_serving(*found)
        except (ValueError, TypeError, IndexError) as error:
            # Perhaps they are being replaced this very moment. The text could quote the key.
            what = type(error).__name__
            raise OperatorError(
                f"tls.crt and tls.key in {self._folder} are no certificate and its key ({what})"
            ) from error
        self._known = found
        return serving

    def _read(self) -> tuple[bytes, bytes]:
        return (self._folder / "tls.crt").read_bytes(), (self._folder / "tls.key").read_bytes()


class Made:
    """Certificates of our own authorities, and webhook configurations that trust them."""

    def __init__(
        self, authorities: SharedAuthorities, injector: Injector, *, clock: Clock, lifetimes: Lifetimes
    ) -> None:
        self._authorities = authorities
        self._injector = injector
        self._clock = clock
        self._lifetimes = lifetimes
        self._serving: Serving | None = None

    async def refresh(self) -> Serving | None:
        """See to authorities and trust; a new certificate when it is time, or names or authority changed."""
        authorities = await self._authorities.current()
        names = await self._injector.look() or {LOCALHOST}
        await self._injector.inject(bundle(authorities))
        now = self._clock.now()
        signer = signer_of(authorities, now, self._lifetimes)
        serving = self._serving
        if (
            serving is not None
            and not serving.due(now)
            and serving.names >= names
            and serving.signer == signer.certificate.serial_number
        ):
            return None
        self._serving = new_serving(signer, names, now, self._lifetimes)
        return self._serving
