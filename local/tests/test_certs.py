"""Certificates: who they are for and who can read the keys."""

from __future__ import annotations

import base64
import ipaddress
import stat
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kuberay_op_local import certs


@pytest.fixture(scope="module")
def authority() -> certs.Authority:
    return certs.Authority.create("test")


def subject(certificate: x509.Certificate) -> tuple[str, set[str]]:
    name = certificate.subject
    user = name.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    return str(user), {str(a.value) for a in name.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)}


def test_a_client_certificate_names_user_and_groups_and_is_signed(authority: certs.Authority) -> None:
    certificate = x509.load_pem_x509_certificate(authority.client("ann", ["dev", "ops"]).certificate)
    assert subject(certificate) == ("ann", {"dev", "ops"})
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.pair.certificate))
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_a_server_certificate_names_hosts_and_addresses(authority: certs.Authority) -> None:
    pem = authority.server("api", ["localhost", "127.0.0.1", "::1"]).certificate
    names = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.DNSName) == ["localhost"]
    assert names.value.get_values_for_type(x509.IPAddress) == [
        ipaddress.ip_address("127.0.0.1"),
        ipaddress.ip_address("::1"),
    ]


def test_a_saved_authority_signs_again(authority: certs.Authority, tmp_path: Path) -> None:
    authority.pair.save(tmp_path, "ca")
    again = certs.Authority.load(tmp_path, "ca")
    certificate = x509.load_pem_x509_certificate(again.client("bob").certificate)
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.pair.certificate))


def test_keys_are_for_their_owner_only(authority: certs.Authority, tmp_path: Path) -> None:
    authority.pair.save(tmp_path / "pki", "ca")
    assert stat.S_IMODE((tmp_path / "pki" / "ca.key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "pki").stat().st_mode) == 0o700


def test_a_kubeconfig_holds_all_it_needs(authority: certs.Authority) -> None:
    pair = authority.client("ann")
    text = certs.kubeconfig(
        name="n", server="https://127.0.0.1:1", authority=authority.pair.certificate, user="ann", client=pair
    )
    document = yaml.safe_load(text)
    assert document["current-context"] == "n"
    assert document["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"
    assert base64.b64decode(document["users"][0]["user"]["client-key-data"]) == pair.key
