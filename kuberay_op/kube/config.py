"""Where the API server is: ``--kubeconfig``, ``KUBECONFIG``, the Pod we run in, or ``~/.kube/config``."""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kuberay_op.clock import Clock, SystemClock
from kuberay_op.errors import Misconfigured
from kuberay_op.kube.credentials import Credentials, Material, PlainCredentials
from kuberay_op.kube.exec_plugin import ExecCredentials
from kuberay_op.kube.oidc import OidcCredentials

#: Where a Pod finds the credentials of its service account.
SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")

#: The fields of a kubeconfig that name files, relative to the file they stand in.
FILE_FIELDS: Final = (
    "certificate-authority",
    "client-certificate",
    "client-key",
    "idp-certificate-authority",
    "tokenFile",
)


@dataclass(frozen=True, slots=True)
class Connection:
    """An API server and who we are to it."""

    server: str
    credentials: Credentials
    namespace: str = "default"
    proxy: str | None = None
    server_name: str | None = None


async def load(
    kubeconfig: str | os.PathLike[str] | None = None,
    *,
    context: str | None = None,
    clock: Clock | None = None,
) -> Connection:
    """Find the API server: the given file, ``$KUBECONFIG``, in-cluster, then ``~/.kube/config``.

    ``kubeconfig`` may be a list of paths as in ``$KUBECONFIG``. Raises
    :class:`~kuberay_op.errors.Misconfigured` when there is nothing usable.
    """
    clock = clock or SystemClock()
    paths = os.fspath(kubeconfig) if kubeconfig else os.environ.get("KUBECONFIG", "")
    if not paths and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return await asyncio.to_thread(in_cluster, os.environ, SERVICE_ACCOUNT, clock)
    names = [part for part in paths.split(os.pathsep) if part] or ["~/.kube/config"]
    merged = await asyncio.to_thread(read_kubeconfigs, names)
    return await from_kubeconfig(merged, context=context, clock=clock)


def in_cluster(environ: Mapping[str, str], folder: Path, clock: Clock) -> Connection:
    """The connection of a Pod with a service account, whose token the kubelet rotates."""
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT") or "443"
    material = Material(ca_file=str(folder / "ca.crt"), token_file=str(folder / "token"))
    namespace = folder / "namespace"
    return Connection(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        credentials=PlainCredentials(material, clock),
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
    )


def read_kubeconfigs(names: Sequence[str]) -> dict[str, Any]:
    """Merge kubeconfig files as kubectl does: the first to name something wins. Paths become absolute."""
    import yaml  # late: an in-cluster operator never reads one

    merged: dict[str, Any] = {"clusters": [], "contexts": [], "users": []}
    found = [file for file in (Path(name).expanduser() for name in names) if file.is_file()]
    if not found:
        raise Misconfigured(f"no kubeconfig at {', '.join(names)}; give --kubeconfig or set KUBECONFIG")
    for file in found:
        try:
            content = yaml.safe_load(file.read_text())
        except (OSError, ValueError, yaml.YAMLError) as error:
            # Not the error's text: YAML errors quote lines, and lines of this file hold keys.
            raise Misconfigured(f"{file} is not a readable kubeconfig") from error
        if not isinstance(content, dict):
            raise Misconfigured(f"{file} is not a kubeconfig: expected a mapping at the top")
        for kind in ("clusters", "contexts", "users"):
            known = {entry["name"] for entry in merged[kind]}
            for entry in content.get(kind) or ():
                if not isinstance(entry, dict) or not entry.get("name"):
                    raise Misconfigured(f"{file}: an entry of {kind} has no name")
                if entry["name"] not in known:
                    merged[kind].append(_with_absolute_paths(entry, file.resolve().parent))
        if content.get("current-context"):
            merged.setdefault("current-context", content["current-context"])
    return merged


def _with_absolute_paths(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    for body in entry.values():
        if not isinstance(body, dict):
            continue
        provider = (body.get("auth-provider") or {}).get("config") or {}
        for name in FILE_FIELDS:
            for fields in (body, provider):
                if fields.get(name):
                    fields[name] = str(folder / fields[name])
        plugin = body.get("exec") or {}
        if os.sep in (plugin.get("command") or ""):
            plugin["command"] = str(folder / plugin["command"])
    return entry


async def from_kubeconfig(config: dict[str, Any], *, context: str | None, clock: Clock) -> Connection:
    """The connection that a (merged) kubeconfig describes."""
    name = context or config.get("current-context")
    if not name:
        raise Misconfigured("the kubeconfig has no current-context; name one")
    chosen = _named(config, "contexts", "context", name)
    cluster = _named(config, "clusters", "cluster", chosen.get("cluster"))
    user = _named(config, "users", "user", chosen["user"]) if chosen.get("user") else {}
    if not cluster.get("server"):
        raise Misconfigured(f"the kubeconfig cluster {chosen.get('cluster')!r} has no server")
    if user.get("as"):
        raise Misconfigured(f"the kubeconfig user {chosen['user']!r} impersonates; that is not supported")
    return Connection(
        server=cluster["server"].rstrip("/"),
        credentials=await _credentials(cluster, user, clock),
        namespace=chosen.get("namespace") or "default",
        proxy=cluster.get("proxy-url") or None,
        server_name=cluster.get("tls-server-name") or None,
    )


async def _credentials(cluster: Mapping[str, Any], user: Mapping[str, Any], clock: Clock) -> Credentials:
    material = _material(cluster, user)
    provider = user.get("auth-provider") or {}
    if user.get("exec"):
        plugin = ExecCredentials(user["exec"], material, clock)
        await plugin.authorization()  # so that one that fails does so at the start
        return plugin
    if provider.get("name") == "oidc":
        settings = provider.get("config") or {}
        idp = Material(
            ca_file=settings.get("idp-certificate-authority"),
            ca_data=_decoded(settings, "idp-certificate-authority-data"),
        )
        tls, idp_tls = await asyncio.to_thread(lambda: (_tls(material), _tls(idp)))
        oidc = OidcCredentials(settings, tls, idp_tls, clock)
        await oidc.authorization()
        return oidc
    if provider:
        raise Misconfigured(
            f"the kubeconfig's auth-provider {provider.get('name')!r} is not supported; use its exec plugin"
        )
    return await asyncio.to_thread(PlainCredentials, material, clock)


def _named(config: Mapping[str, Any], kind: str, field: str, name: str | None) -> dict[str, Any]:
    for entry in config[kind]:
        if entry["name"] == name:
            return dict(entry.get(field) or {})
    raise Misconfigured(f"the kubeconfig has no {field} named {name!r}")


def _material(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> Material:
    return Material(
        ca_file=None if cluster.get("certificate-authority-data") else cluster.get("certificate-authority"),
        ca_data=_decoded(cluster, "certificate-authority-data"),
        cert_file=user.get("client-certificate"),
        cert_data=_decoded(user, "client-certificate-data"),
        key_file=user.get("client-key"),
        key_data=_decoded(user, "client-key-data"),
        token=user.get("token"),
        token_file=user.get("tokenFile"),
        username=user.get("username"),
        password=user.get("password"),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
    )


def _tls(material: Material) -> ssl.SSLContext:
    try:
        return material.tls_context()
    except (OSError, ValueError) as error:
        raise Misconfigured(f"cannot read a certificate of the kubeconfig: {error}") from error


def _decoded(body: Mapping[str, Any], field: str) -> str | None:
    value = body.get(field)
    if not value:
        return None
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise Misconfigured(f"the kubeconfig field {field} is not base64") from error
