"""Certificates from files, as cert-manager renews them, and the webhook that serves with them."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import aiohttp
import pytest

from kuberay_op.clock import SystemClock
from kuberay_op.errors import OperatorError
from kuberay_op.features import Gates
from kuberay_op.runtime.supervisor import Supervisor
from kuberay_op.testing.clock import FakeClock
from kuberay_op.testing.operator import make_hooks
from kuberay_op.webhook.admission import Judge
from kuberay_op.webhook.certificates import Authority, Lifetimes, bundle, new_authority, new_serving
from kuberay_op.webhook.service import Webhook
from kuberay_op.webhook.sources import Files, has_files

TIMES = Lifetimes()


def write(folder: Path, authority: Authority, *, key: bytes | None = None) -> None:
    serving = new_serving(authority, {"127.0.0.1"}, datetime.now(UTC), TIMES)
    (folder / "tls.crt").write_bytes(serving.chain)
    (folder / "tls.key").write_bytes(key or serving.key)


async def test_files_are_read_again_when_they_change(tmp_path: Path) -> None:
    authority = new_authority(datetime.now(UTC), TIMES)
    files = Files(tmp_path)
    assert not has_files(tmp_path)
    with pytest.raises(OperatorError, match="cannot be read"):
        await files.refresh()
    write(tmp_path, authority)
    assert has_files(tmp_path)
    first = await files.refresh()
    assert first is not None
    assert first.names == {"127.0.0.1"}
    assert await files.refresh() is None
    write(tmp_path, authority)
    second = await files.refresh()
    assert second is not None
    assert second.chain != first.chain


async def test_files_that_do_not_fit_are_not_used_nor_quoted(tmp_path: Path) -> None:
    authority = new_authority(datetime.now(UTC), TIMES)
    write(tmp_path, authority, key=b"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n")
    with pytest.raises(OperatorError, match="no certificate and its key") as caught:
        await Files(tmp_path).refresh()
    assert "c2VjcmV0" not in str(caught.value)


async def test_it_serves_with_the_newest_certificate(tmp_path: Path) -> None:
    old, new = (new_authority(datetime.now(UTC), TIMES) for _ in range(2))
    judge = Judge(make_hooks({}), Gates.default().enabled)
    webhook = Webhook(judge, Files(tmp_path), clock=SystemClock(), interval=3600)
    supervisor = Supervisor(SystemClock(), Random(1))  # noqa: S311 (seeded on purpose)
    assert await webhook.check() == "no certificate yet"
    async with webhook.running(("127.0.0.1", 0), supervisor) as (_, port):

        async def status(authority: Authority) -> int:
            trust = ssl.create_default_context(cadata=bundle([authority]).decode())
            async with (
                aiohttp.ClientSession() as session,
                session.post(
                    f"https://127.0.0.1:{port}/validate-ray-io-v1-rayjob", data=b"{}", ssl=trust
                ) as response,
            ):
                assert "AdmissionReview" in await response.text()
                return response.status

        assert not await webhook.look()
        assert "cannot be read" in str(await webhook.check())
        write(tmp_path, old)
        assert await webhook.look()
        assert await webhook.check() is None
        assert await status(old) == 400
        write(tmp_path, new)
        assert await webhook.look()
        assert await status(new) == 400
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await status(old)


async def test_a_certificate_that_has_ended_is_not_ready(tmp_path: Path) -> None:
    clock = FakeClock(datetime.now(UTC))
    write(tmp_path, new_authority(datetime.now(UTC), TIMES))
    webhook = Webhook(Judge(make_hooks({}), Gates.default().enabled), Files(tmp_path), clock=clock)
    assert await webhook.look()
    clock.skip(TIMES.serving.total_seconds() + 1)
    assert "the certificate ended at" in str(await webhook.check())
