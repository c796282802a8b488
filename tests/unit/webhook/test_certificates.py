"""Authorities take turns so that nobody is ever asked to trust a stranger."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from kuberay_op.webhook.certificates import (
    Authority,
    Lifetimes,
    authority_due,
    bundle,
    keys,
    new_authority,
    new_serving,
    read_authorities,
    read_serving,
    signer_of,
    valid,
)
from kuberay_op.webhook.server import new_context, use

START = datetime(2026, 1, 1, tzinfo=UTC)
TIMES = Lifetimes()
DAY = timedelta(days=1)


def verified(chain: bytes, trusted: bytes, name: str, at: datetime) -> None:
    """Raises unless ``name`` would be believed by somebody who trusts ``trusted``."""
    subject = x509.DNSName(name)
    if name[0].isdigit():
        host = x509.IPAddress(ipaddress.ip_address(name))
        verifier = PolicyBuilder().store(_store(trusted)).time(at).build_server_verifier(host)
    else:
        verifier = PolicyBuilder().store(_store(trusted)).time(at).build_server_verifier(subject)
    verifier.verify(x509.load_pem_x509_certificate(chain), [])


def _store(trusted: bytes) -> Store:
    return Store(x509.load_pem_x509_certificates(trusted))


def test_what_is_signed_is_believed_for_its_names_only() -> None:
    authority = new_authority(START, TIMES)
    serving = new_serving(authority, {"s.ns.svc", "127.0.0.1"}, START, TIMES)
    verified(serving.chain, bundle([authority]), "s.ns.svc", START)
    verified(serving.chain, bundle([authority]), "127.0.0.1", START)
    with pytest.raises(VerificationError):
        verified(serving.chain, bundle([authority]), "t.ns.svc", START)
    with pytest.raises(VerificationError):
        verified(serving.chain, bundle([new_authority(START, TIMES)]), "s.ns.svc", START)


def test_a_secret_holds_what_was_put_in() -> None:
    pair = [new_authority(START, TIMES), new_authority(START + DAY, TIMES)]
    assert [each.certificate for each in read_authorities(bundle(pair), keys(pair))] == [
        each.certificate for each in pair
    ]
    assert read_authorities(b"", b"") == []


@pytest.mark.parametrize("swap", [True, False])
def test_keys_of_others_are_refused(swap: bool) -> None:
    first, second = new_authority(START, TIMES), new_authority(START, TIMES)
    private = keys([second]) if swap else keys([first, second])
    with pytest.raises(ValueError, match=r"belong|shorter|longer"):
        read_authorities(bundle([first]), private)


def test_a_new_authority_signs_only_after_it_is_known() -> None:
    old = new_authority(START, TIMES)
    assert signer_of([old], START, TIMES) is old  # the first of all has nobody to wait for
    renewal = START + TIMES.authority * 2 / 3
    assert not authority_due([old], renewal - DAY, TIMES)
    assert authority_due([old], renewal, TIMES)
    new = new_authority(renewal, TIMES)
    both = [old, new]
    assert not authority_due(both, renewal, TIMES)
    assert signer_of(both, renewal, TIMES) is old
    assert signer_of(both, renewal + TIMES.settle, TIMES) is new


def test_one_that_has_ended_is_dropped_and_one_that_must_serve_does() -> None:
    old = new_authority(START, TIMES)
    after = START + TIMES.authority
    assert valid([old], after) == []
    assert authority_due([old], after, TIMES)
    new = new_authority(after, TIMES)
    assert signer_of([old, new], after, TIMES) is new


def test_through_years_every_certificate_is_trusted_by_the_bundle_before() -> None:
    """Whatever an API server was told an hour ago still lets it believe what is served now."""
    authorities: list[Authority] = []
    told: bytes = b""
    serving = None
    now = START
    signers = set()
    for _ in range(5 * 365 * 24):
        if authority_due(authorities, now, TIMES):
            authorities = [*valid(authorities, now), new_authority(now, TIMES)]
        signer = signer_of(authorities, now, TIMES)
        if serving is None or serving.due(now) or serving.signer != signer.certificate.serial_number:
            serving = new_serving(signer, {"s.ns.svc"}, now, TIMES)
            verified(serving.chain, told or bundle(authorities), "s.ns.svc", now)
        signers.add(serving.signer)
        assert serving.until > now
        told = bundle(valid(authorities, now))  # told now, believed in an hour
        now += timedelta(hours=1)
    assert len(signers) == 8  # one about every eight months


def test_a_serving_certificate_never_outlives_its_authority() -> None:
    authority = new_authority(START, TIMES)
    late = authority.until - DAY
    assert new_serving(authority, {"s"}, late, TIMES).until == authority.until


def test_no_key_in_texts() -> None:
    serving = new_serving(new_authority(START, TIMES), {"s"}, START, TIMES)
    assert "PRIVATE" not in f"{serving!r} {serving}"


def test_a_certificate_from_elsewhere_must_fit_its_key() -> None:
    authority = new_authority(START, TIMES)
    one, other = (new_serving(authority, {"s.ns.svc"}, START, TIMES) for _ in range(2))
    assert read_serving(one.chain, one.key).names == {"s.ns.svc"}
    with pytest.raises(ValueError, match="does not belong"):
        read_serving(one.chain, other.key)
    with pytest.raises(ValueError, match="PEM"):
        read_serving(b"nothing", one.key)


def test_the_context_takes_a_certificate() -> None:
    context = new_context()
    use(context, new_serving(new_authority(START, TIMES), {"s"}, START, TIMES))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
