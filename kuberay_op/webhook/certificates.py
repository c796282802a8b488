"""Certificates of the webhook: authorities that take turns, and what they sign. Pure, time is passed in.

An authority is published long before it signs anything, so that whoever must trust it does by then. Which
one signs follows from their ages alone, so that all replicas agree without talking to each other.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

#: Certificates are valid from a little before they are made: clocks differ.
SKEW: Final = timedelta(minutes=5)

#: The part of its life after which a certificate is replaced.
RENEW_AT: Final = 2 / 3

NAME: Final = "kuberay-webhook"


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long things are good."""

    authority: timedelta = timedelta(days=365)
    serving: timedelta = timedelta(days=30)
    #: How long an authority is known before it signs.
    settle: timedelta = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Authority:
    """One authority, with the key that signs."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def made(self) -> datetime:
        """When it was made."""
        return self.certificate.not_valid_before_utc + SKEW

    @property
    def until(self) -> datetime:
        """When it ends."""
        return self.certificate.not_valid_after_utc


@dataclass(frozen=True, slots=True)
class Serving:
    """A certificate to serve with, and its key, both as PEM. Its text shows neither."""

    chain: bytes
    key: bytes
    names: frozenset[str]
    signer: int
    made: datetime
    until: datetime

    def __repr__(self) -> str:
        return f"Serving(names={sorted(self.names)}, until={self.until})"

    def due(self, now: datetime) -> bool:
        """Whether it is time for the next one."""
        return now >= self.made + (self.until - self.made) * RENEW_AT


# --- authorities


def new_authority(now: datetime, lifetimes: Lifetimes) -> Authority:
    """A fresh authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{NAME}-ca")])
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + lifetimes.authority)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def valid(authorities: Iterable[Authority], now: datetime) -> list[Authority]:
    """Those that have not ended, oldest first."""
    return sorted((each for each in authorities if each.until > now), key=lambda each: each.made)


def authority_due(authorities: Sequence[Authority], now: datetime, lifetimes: Lifetimes) -> bool:
    """Whether another authority should be made: there is none, or the newest has lived most of its life."""
    alive = valid(authorities, now)
    return not alive or now >= alive[-1].made + lifetimes.authority * RENEW_AT


def signer_of(authorities: Sequence[Authority], now: datetime, lifetimes: Lifetimes) -> Authority:
    """The newest authority that has been known for long enough; if none has, the oldest."""
    alive = valid(authorities, now)
    settled = [each for each in alive if now >= each.made + lifetimes.settle]
    return settled[-1] if settled else alive[0]


def bundle(authorities: Iterable[Authority]) -> bytes:
    """Their certificates as PEM: whom to trust."""
    return b"".join(each.certificate.public_bytes(serialization.Encoding.PEM) for each in authorities)


def keys(authorities: Iterable[Authority]) -> bytes:
    """Their keys as PEM, in the same order."""
    return b"".join(_key_bytes(each.key) for each in authorities)


def read_authorities(certificates: bytes, private: bytes) -> list[Authority]:
    """What :func:`bundle` and :func:`keys` wrote; raises ValueError for anything else."""
    found = x509.load_pem_x509_certificates(certificates) if certificates.strip() else []
    loaded = [serialization.load_pem_private_key(text, None) for text in _blocks(private)]
    authorities = []
    for certificate, key in zip(found, loaded, strict=True):
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not _belong(certificate.public_key(), key):
            raise ValueError("a key does not belong to its certificate")
        authorities.append(Authority(certificate, key))
    return authorities


# --- serving


def new_serving(authority: Authority, names: Iterable[str], now: datetime, lifetimes: Lifetimes) -> Serving:
    """A certificate for these hosts (DNS names or addresses), signed by the authority."""
    wanted = frozenset(names)
    key = ec.generate_private_key(ec.SECP256R1())
    until = min(now + lifetimes.serving, authority.until)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)]))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(map(_general_name, sorted(wanted))), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False
        )
        .sign(authority.key, hashes.SHA256())
    )
    return Serving(
        chain=certificate.public_bytes(serialization.Encoding.PEM),
        key=_key_bytes(key),
        names=wanted,
        signer=authority.certificate.serial_number,
        made=now,
        until=until,
    )


def read_serving(chain: bytes, private: bytes) -> Serving:
    """A certificate and key from elsewhere; raises ValueError when they are not what they should be."""
    certificate = x509.load_pem_x509_certificates(chain)[0]
    key = serialization.load_pem_private_key(private, None)
    if not _belong(certificate.public_key(), key):
        raise ValueError("the key does not belong to the certificate")
    return Serving(
        chain=chain,
        key=private,
        names=frozenset(_names(certificate)),
        signer=0,
        made=certificate.not_valid_before_utc,
        until=certificate.not_valid_after_utc,
    )


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return [str(name.value) for name in extension.value]


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _belong(public: CertificatePublicKeyTypes, private: object) -> bool:
    """Whether a private key is that of a public one, of whatever kind."""
    other = getattr(private, "public_key", None)
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return other is not None and public.public_bytes(*form) == other().public_bytes(*form)


def _key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _blocks(text: bytes) -> list[bytes]:
    """The PEM blocks in a text."""
    end = b"-----END PRIVATE KEY-----\n"
    return [block + end for block in text.split(end)[:-1]]
