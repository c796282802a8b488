"""Keys and certificates: one authority per cluster signs everything."""

from __future__ import annotations

import base64
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

#: Clusters are short-lived; ten years means that no test ever fails for a date.
LIFETIME: Final = timedelta(days=3650)

#: Clocks of two machines differ; certificates are valid from a little earlier.
BACKDATE: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """A private key and its certificate, both PEM."""

    key: bytes
    certificate: bytes

    def save(self, folder: Path, name: str) -> None:
        """Write ``NAME.key`` (for the owner's eyes only) and ``NAME.crt``."""
        write_private(folder / f"{name}.key", self.key)
        write_private(folder / f"{name}.crt", self.certificate)


class Authority:
    """The certificate authority of one cluster."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self._certificate = certificate

    @classmethod
    def create(cls, name: str) -> Authority:
        """Make a new authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject(name, ())
        builder = _builder(subject, subject, key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        usage = _key_usage(sign_certificates=True)
        certificate = builder.add_extension(usage, critical=True).sign(key, hashes.SHA256())
        return cls(key, certificate)

    @classmethod
    def load(cls, folder: Path, name: str) -> Authority:
        """Read an authority that was saved as a pair."""
        key = serialization.load_pem_private_key((folder / f"{name}.key").read_bytes(), password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey), "the authority's key is one that create() made"  # noqa: S101 - a type narrowing, not a check of input
        return cls(key, x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes()))

    @property
    def pair(self) -> Pair:
        """The authority's own key and certificate."""
        return Pair(private_pem(self._key), _pem(self._certificate))

    def server(self, name: str, hosts: Sequence[str]) -> Pair:
        """A certificate for a server that is reached under ``hosts`` (names or addresses).

        It may act as a client too: etcd calls itself with its serving certificate.
        """
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._issue(_subject(name, ()), usages, names)

    def client(self, user: str, groups: Sequence[str] = ()) -> Pair:
        """A certificate with which ``user``, member of ``groups``, signs in."""
        return self._issue(_subject(user, groups), [ExtendedKeyUsageOID.CLIENT_AUTH], None)

    def _issue(
        self,
        subject: x509.Name,
        usages: Sequence[x509.ObjectIdentifier],
        names: x509.SubjectAlternativeName | None,
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, self._certificate.subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(sign_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return Pair(private_pem(key), _pem(builder.sign(self._key, hashes.SHA256())))


def signing_key() -> tuple[bytes, bytes]:
    """A new key pair (private, public) that signs service account tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private_pem(key), public


def kubeconfig(*, name: str, server: str, authority: bytes, user: str, client: Pair) -> str:
    """A kubeconfig that holds all it needs, so that it can be moved and copied."""

    def b64(data: bytes) -> str:
        return base64.b64encode(data).decode()

    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": server, "certificate-authority-data": b64(authority)}}
        ],
        "users": [
            {
                "name": user,
                "user": {
                    "client-certificate-data": b64(client.certificate),
                    "client-key-data": b64(client.key),
                },
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }
    return yaml.safe_dump(document, sort_keys=False)


def write_private(path: Path, data: bytes) -> None:
    """Write a file only its owner can read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The key as PEM, without a password."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _subject(name: str, groups: Sequence[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(now + LIFETIME)
    )


def _key_usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )
