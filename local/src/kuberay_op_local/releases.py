"""Programs from the official releases, each checked against its published SHA-256 sum.

``KUBERAY_OP_RELEASES`` names a mirror (``https://mirror/`` then holds ``HOST/PATH`` of every address), or is
``none`` for never.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from kuberay_op_local import versions
from kuberay_op_local.errors import LocalError
from kuberay_op_local.run import Say, Ticker

MIRROR: Final = "KUBERAY_OP_RELEASES"

#: Short: a machine without a way out should not wait long before it builds.
CONNECT_SECONDS: Final = 3.0
READ_SECONDS: Final = 30.0
CHUNK: Final = 1 << 20

_SUM: Final = re.compile(r"\b[0-9a-f]{64}\b")


class UnavailableError(LocalError):
    """The release cannot be had; there are other ways."""


@dataclass(frozen=True, slots=True)
class Download:
    """One program of a release."""

    tool: str
    url: str
    #: A text in which a line (or JSON object) names the file together with its sum.
    sums: str
    #: The path of the program when ``url`` is an archive.
    member: str | None = None


def download_for(tool: str, *, kubernetes: str, machine: str) -> Download:
    """Where the official release of a tool is."""
    if tool == "etcd":
        stem = f"etcd-v{versions.ETCD}-linux-{machine}"
        base = f"https://github.com/etcd-io/etcd/releases/download/v{versions.ETCD}"
        return Download(tool, f"{base}/{stem}.tar.gz", f"{base}/SHA256SUMS", f"{stem}/etcd")
    if tool == "coredns":
        file = f"coredns_{versions.COREDNS}_linux_{machine}.tgz"
        url = f"https://github.com/coredns/coredns/releases/download/v{versions.COREDNS}/{file}"
        return Download(tool, url, f"{url}.sha256", "coredns")
    if tool == "helm":
        url = f"https://get.helm.sh/helm-v{versions.HELM}-linux-{machine}.tar.gz"
        return Download(tool, url, f"{url}.sha256sum", f"linux-{machine}/helm")
    if tool == "kwok":
        # The project publishes no sums of its own; the release page's API lists one for each file.
        project = "kubernetes-sigs/kwok"
        return Download(
            tool,
            f"https://github.com/{project}/releases/download/v{versions.KWOK}/kwok-linux-{machine}",
            f"https://api.github.com/repos/{project}/releases/tags/v{versions.KWOK}",
        )
    url = f"https://dl.k8s.io/release/v{kubernetes}/bin/linux/{machine}/{tool}"
    return Download(tool, url, f"{url}.sha256")


def fetch(tools: Sequence[str], *, kubernetes: str, machine: str, folder: Path, say: Say) -> None:
    """Put the tools into ``folder``; raises UnavailableError when one cannot be had or does not match."""
    if os.environ.get(MIRROR) == "none":
        raise UnavailableError(f"official releases are not asked ({MIRROR}=none)")
    timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    try:
        with httpx.Client(timeout=timeout, follow_redirects=True) as client:
            for tool in tools:
                _fetch(client, download_for(tool, kubernetes=kubernetes, machine=machine), folder, say)
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        raise UnavailableError(f"official releases have no {error.request.url} ({status})") from error
    except httpx.HTTPError as error:
        raise UnavailableError(f"official releases cannot be reached ({error})") from error


def _fetch(client: httpx.Client, download: Download, folder: Path, say: Say) -> None:
    sums = client.get(_address(download.sums)).raise_for_status().text
    expected = published_sum(sums, download.url.rpartition("/")[2])
    if expected is None:
        raise UnavailableError(f"the official release of {download.tool} has no published checksum")
    part = folder / f"{download.tool}.part"
    actual = _stream(client, download, part, say)
    if actual != expected:
        part.unlink()
        raise UnavailableError(
            f"the official release of {download.tool} is not used: its SHA-256 sum is {actual}, "
            f"published is {expected}"
        )
    program = folder / download.tool
    if download.member is None:
        part.rename(program)
    else:
        _extract(part, download.member, program)
        part.unlink()
    program.chmod(0o755)


def _stream(client: httpx.Client, download: Download, path: Path, say: Say) -> str:
    """Write the file and give its SHA-256 sum."""
    digest = hashlib.sha256()
    size = 0
    tick = Ticker(say)
    with client.stream("GET", _address(download.url)) as answer, path.open("wb") as file:
        answer.raise_for_status()
        total = int(answer.headers.get("content-length", 0))
        for chunk in answer.iter_bytes(CHUNK):
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
            tick(f"downloading {download.tool}: {size >> 20} of {total >> 20} MB")
    return digest.hexdigest()


def published_sum(text: str, file: str) -> str | None:
    """The SHA-256 sum of ``file`` in a list of sums, in a lone sum, or in a release's JSON."""
    if text.lstrip().startswith("{"):
        assets = httpx.Response(200, text=text).json().get("assets", [])
        text = "\n".join(
            f"{asset.get('digest') or ''} {asset['name']}".replace("sha256:", "") for asset in assets
        )
    lines = text.splitlines()
    named = [line for line in lines if file in line.split() or f"*{file}" in line.split()]
    match = _SUM.search(named[0] if named else text if len(lines) == 1 else "")
    return match[0] if match else None


def _extract(archive: Path, member: str, target: Path) -> None:
    with tarfile.open(archive) as tar:
        source = tar.extractfile(member)
        if source is None:
            raise UnavailableError(f"{archive.name} holds no {member}")
        with source, target.open("wb") as file:
            shutil.copyfileobj(source, file)


def _address(url: str) -> str:
    mirror = os.environ.get(MIRROR)
    return f"{mirror.rstrip('/')}/{url.removeprefix('https://')}" if mirror else url
