"""Kubeconfigs and credentials, without a cluster. Against a real API server: ``tests/apiserver/kube``."""

from __future__ import annotations

import base64
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kuberay_op.errors import Misconfigured
from kuberay_op.kube import config
from kuberay_op.testing.clock import FakeClock


def kubeconfig(
    user: Mapping[str, Any] | None = None, *, server: str = "https://one:6443", **cluster: Any
) -> dict[str, Any]:
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "n"}}],
        "clusters": [{"name": "k", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": dict(user or {})}],
    }


async def load(content: dict[str, Any], clock: FakeClock | None = None) -> config.Connection:
    return await config.from_kubeconfig(content, context=None, clock=clock or FakeClock())


def certificate() -> tuple[str, str]:
    """A self-signed certificate for localhost, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.public_bytes(serialization.Encoding.PEM).decode(), private.decode()


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({}, None),
        ({"token": "t"}, "Bearer t"),
        ({"username": "me", "password": "p"}, f"Basic {base64.b64encode(b'me:p').decode()}"),
    ],
)
async def test_plain_users(user: dict[str, str], header: str | None) -> None:
    connection = await load(kubeconfig(user))
    assert connection.server == "https://one:6443"
    assert connection.namespace == "n"
    assert await connection.credentials.authorization() == header


def test_the_simple_cases_do_not_import_the_kubernetes_package(tmp_path: Path) -> None:
    crt, key = certificate()
    pair = {"client-certificate-data": crt, "client-key-data": key}
    user = {name: base64.b64encode(text.encode()).decode() for name, text in pair.items()}
    (tmp_path / "config").write_text(yaml.safe_dump(kubeconfig(user)))
    script = (
        "import asyncio, sys; from kuberay_op.kube import client, config;"
        "asyncio.run(config.load(sys.argv[1])); sys.exit('kubernetes' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path / "config"], check=True, timeout=60)


async def test_paths_are_relative_to_their_file_and_data_leaves_no_file(tmp_path: Path) -> None:
    crt, key = certificate()
    folder = tmp_path / "conf"
    folder.mkdir()
    for name, text in {"ca.crt": crt, "my.crt": crt, "my.key": key, "token": "tok\n"}.items():
        (folder / name).write_text(text)
    user = {"client-certificate": "my.crt", "client-key": "my.key", "tokenFile": "token"}
    content = kubeconfig(user, **{"certificate-authority": "ca.crt"})
    (folder / "config").write_text(yaml.safe_dump(content))
    connection = await config.load(folder / "config")
    assert await connection.credentials.authorization() == "Bearer tok"
    assert connection.credentials.tls.cert_store_stats()["x509_ca"] == 1


async def test_changed_certificates_are_noticed(tmp_path: Path) -> None:
    crt, key = certificate()
    files = {"client-certificate": tmp_path / "crt", "client-key": tmp_path / "key"}
    files["client-certificate"].write_text(crt)
    files["client-key"].write_text(key)
    clock = FakeClock()
    connection = await load(kubeconfig({name: str(file) for name, file in files.items()}), clock)
    before = connection.credentials.tls
    await connection.credentials.renew()
    assert connection.credentials.tls is before
    crt, key = certificate()
    files["client-certificate"].write_text(crt)
    files["client-key"].write_text(key)
    await clock.leap(61.0)
    await connection.credentials.authorization()
    assert connection.credentials.tls is not before


async def test_several_kubeconfigs_are_merged_as_kubectl_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = kubeconfig({"token": "1"}, server="https://one"), kubeconfig({"token": "2"})
    two["current-context"] = "d"
    two["contexts"].append({"name": "d", "context": {"cluster": "k2", "user": "u2"}})
    two["clusters"].append({"name": "k2", "cluster": {"server": "https://three/"}})
    two["users"].append({"name": "u2", "user": {"token": "3"}})
    for name, content in {"one": one, "two": two}.items():
        (tmp_path / name).write_text(yaml.safe_dump(content))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/one:{tmp_path}/missing:{tmp_path}/two")
    first = await config.load()
    assert (first.server, await first.credentials.authorization()) == ("https://one", "Bearer 1")
    other = await config.load(context="d")
    assert (other.server, await other.credentials.authorization()) == ("https://three", "Bearer 3")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"current-context": ""}, "no current-context"),
        ({"current-context": "x"}, "no context named 'x'"),
        ({"clusters": []}, "no cluster named 'k'"),
        ({"users": []}, "no user named 'u'"),
        ({"clusters": [{"name": "k", "cluster": {}}]}, "cluster 'k' has no server"),
        ({"users": [{"name": "u", "user": {"as": "root"}}]}, "impersonates"),
        ({"users": [{"name": "u", "user": {"client-key-data": "%"}}]}, "client-key-data is not base64"),
        ({"users": [{"name": "u", "user": {"auth-provider": {"name": "gcp"}}}]}, "'gcp' is not supported"),
        ({"users": [{"name": "u", "user": {"tokenFile": "/missing"}}]}, "cannot read the credentials"),
        (
            {"clusters": [{"name": "k", "cluster": {"server": "x", "certificate-authority": "/no"}}]},
            "cannot read",
        ),
    ],
)
async def test_what_is_wrong_is_said_in_a_sentence(change: dict[str, Any], text: str) -> None:
    with pytest.raises(Misconfigured, match=text):
        await load(kubeconfig() | change)


@pytest.mark.parametrize("content", ["a: [", "[]", "\x00", "users: [{}]"])
async def test_a_file_that_is_no_kubeconfig(content: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(content)
    with pytest.raises(Misconfigured, match="config"):
        await config.load(tmp_path / "config")
    with pytest.raises(Misconfigured, match="no kubeconfig at"):
        await config.load(tmp_path / "missing")


@pytest.mark.parametrize(
    ("host", "server"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
async def test_in_a_pod(host: str, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ca.crt").write_text(certificate()[0])
    (tmp_path / "token").write_text("t")
    (tmp_path / "namespace").write_text("ours")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(config, "SERVICE_ACCOUNT", tmp_path)
    connection = await config.load()
    assert (connection.server, connection.namespace) == (server, "ours")
    assert await connection.credentials.authorization() == "Bearer t"
    (tmp_path / "token").write_text("")
    with pytest.raises(Misconfigured, match="is empty"):
        await config.load()


async def test_insecure_means_insecure() -> None:
    cluster: dict[str, Any] = {"insecure-skip-tls-verify": True, "tls-server-name": "x"}
    connection = await load(kubeconfig(**cluster))
    assert connection.credentials.tls.verify_mode == ssl.CERT_NONE
    assert connection.server_name == "x"


def plugin(folder: Path, script: str) -> dict[str, Any]:
    """An exec plugin: a Python script."""
    file = folder / "plugin.py"
    file.write_text(script)
    api = "client.authentication.k8s.io/v1"
    return {
        "exec": {
            "apiVersion": api,
            "command": sys.executable,
            "args": [str(file)],
            "env": [{"name": "X", "value": "y"}],
        }
    }


ANSWER = """
import json, os, pathlib
count = pathlib.Path(__file__).with_name("count")
count.write_text(str(int(count.read_text()) + 1) if count.exists() else "1")
status = {"token": os.environ["X"] + count.read_text(), "expirationTimestamp": "2030-01-01T01:00:00Z"}
api = "client.authentication.k8s.io/v1"
print(json.dumps({"apiVersion": api, "kind": "ExecCredential", "status": status}))
"""


@pytest.mark.loop_guard(milliseconds=5000)  # the import of the kubernetes package, once, at the start
async def test_a_plugin_is_run_again_before_its_token_expires_and_after_401(tmp_path: Path) -> None:
    clock = FakeClock()  # it is 2030-01-01T00:00:00Z
    credentials = (await load(kubeconfig(plugin(tmp_path, ANSWER)), clock)).credentials
    assert await credentials.authorization() == "Bearer y1"
    await clock.leap(300.0)
    assert await credentials.authorization() == "Bearer y1"
    await credentials.renew()
    assert await credentials.authorization() == "Bearer y2"
    await clock.leap(3300.0)
    assert await credentials.authorization() == "Bearer y3"


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("import sys; sys.exit('log in first')", "failed: exec: process returned 1.*log in first"),
        ("print('hello')", "failed: exec: failed to decode"),
        (ANSWER.replace('"token"', '"nothing"'), "neither a token nor a certificate"),
        (ANSWER.replace("2030-01-01T", "soon"), "a time that cannot be read"),
    ],
)
async def test_a_plugin_that_fails_says_why(script: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=text):
        await load(kubeconfig(plugin(tmp_path, script)))


async def test_a_plugin_that_fails_later_leaves_us_the_old_token(tmp_path: Path) -> None:
    credentials = (await load(kubeconfig(plugin(tmp_path, ANSWER)))).credentials
    plugin(tmp_path, "raise SystemExit(1)")
    await credentials.renew()
    assert await credentials.authorization() == "Bearer y1"


def jwt(expires: datetime) -> str:
    body = base64.urlsafe_b64encode(orjson.dumps({"exp": expires.timestamp()})).decode().rstrip("=")
    return f"head.{body}.signature"


class Idp:
    """A fake OpenID provider: gives out one token after another."""

    def __init__(self) -> None:
        self.forms: list[dict[str, Any]] = []
        self.expires = datetime(2030, 1, 1, 1, tzinfo=UTC)
        self.url = ""

    @asynccontextmanager
    async def serve(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self.describe)
        app.router.add_post("/token", self.token)
        server = TestServer(app, host="localhost")
        await server.start_server(ssl=tls)
        self.url = f"{'https' if tls else 'http'}://localhost:{server.port}"
        yield self.url
        await server.close()

    async def describe(self, request: web.Request) -> web.Response:
        return web.json_response({"token_endpoint": f"{self.url}/token"})

    async def token(self, request: web.Request) -> web.Response:
        form = dict(await request.post())
        self.forms.append(form | {"authorization": request.headers.get("Authorization")})
        number = len(self.forms)
        return web.json_response({"id_token": jwt(self.expires) + str(number), "refresh_token": f"r{number}"})


def oidc(issuer: str, **settings: str) -> dict[str, Any]:
    names = {"idp-issuer-url": issuer, "client-id": "me", "refresh-token": "r0"}
    return {
        "auth-provider": {
            "name": "oidc",
            "config": names | {n.replace("_", "-"): v for n, v in settings.items()},
        }
    }


async def test_an_id_token_is_used_until_it_expires_and_then_renewed() -> None:
    clock, idp = FakeClock(), Idp()
    first = jwt(clock.now() + timedelta(minutes=30))
    async with idp.serve() as issuer:
        user = oidc(issuer, id_token=first, client_secret="s")
        credentials = (await load(kubeconfig(user), clock)).credentials
        assert await credentials.authorization() == f"Bearer {first}"
        assert idp.forms == []
        await clock.leap(29 * 60.0)
        assert (await credentials.authorization() or "").endswith("signature1")
        await credentials.renew()
        assert (await credentials.authorization() or "").endswith("signature2")
    basic = f"Basic {base64.b64encode(b'me:s').decode()}"
    assert idp.forms == [
        {"grant_type": "refresh_token", "refresh_token": "r0", "authorization": basic},
        {"grant_type": "refresh_token", "refresh_token": "r1", "authorization": basic},
    ]


async def test_the_provider_is_checked_before_it_gets_the_refresh_token(tmp_path: Path) -> None:
    crt, key = certificate()
    (tmp_path / "pair").write_text(crt + key)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "pair")
    idp = Idp()
    async with idp.serve(tls) as issuer:
        with pytest.raises(Misconfigured, match=f"cannot renew the id-token at {issuer}"):
            await load(kubeconfig(oidc(issuer)))
        assert idp.forms == []
        trusting = oidc(issuer, idp_certificate_authority_data=base64.b64encode(crt.encode()).decode())
        await load(kubeconfig(trusting))
    assert idp.forms == [
        {"grant_type": "refresh_token", "refresh_token": "r0", "client_id": "me", "authorization": None}
    ]


async def test_an_expired_id_token_without_a_refresh_token() -> None:
    user = oidc("http://localhost:1", id_token=jwt(datetime(2029, 1, 1, tzinfo=UTC)), refresh_token="")
    with pytest.raises(Misconfigured, match="has expired and refresh-token is not set"):
        await load(kubeconfig(user))
