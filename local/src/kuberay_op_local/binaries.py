"""Finding the programs of a cluster: the user's folder, the cache, an official release, a build.

The cache holds sets of programs, ``CACHE/bin/SET/``: one set for every Kubernetes version (with the etcd that
goes with it) and one with kwok and helm, which go with any; likewise for what a real node needs. A set
appears whole, by one rename.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kuberay_op_local import gobuild, nodes, paths, releases, versions
from kuberay_op_local.errors import LocalError
from kuberay_op_local.run import Say

#: Names a folder with programs, like ``--binaries``.
FOLDER: Final = "KUBERAY_OP_BINARIES"
MANIFEST: Final = "manifest.json"
ASK_SECONDS: Final = 20.0
#: Room for the programs themselves; Go's own caches may be on another disk.
SPACE_MEGABYTES: Final = 700


def resolve(
    tools: Sequence[str], *, kubernetes: str, folder: Path | None, say: Say, make: bool = True
) -> dict[str, Path]:
    """The path of each tool; with ``make`` off, nothing is fetched or built."""
    named = folder or (Path(text) if (text := os.environ.get(FOLDER)) else None)
    if named is not None:
        return from_folder(named, tools)
    found: dict[str, Path] = {}
    for tool in tools:
        place = _cached(tool, kubernetes)
        if place is None:
            if not make:
                raise LocalError(
                    f"{tool} for Kubernetes {kubernetes} is not in the cache; "
                    f"run `kuberay-op local setup --kubernetes {kubernetes}` once"
                )
            place = _make(tool, kubernetes, say)
        found[tool] = place / tool
    return found


def from_folder(folder: Path, tools: Sequence[str]) -> dict[str, Path]:
    """The tools in a folder the user named: all or none, so that versions do not mix."""
    missing = [tool for tool in tools if not os.access(folder / tool, os.X_OK)]
    if missing:
        raise LocalError(
            f"the folder {folder} has no program {', '.join(missing)}; put it there or leave out "
            f"--binaries and {FOLDER}"
        )
    return {tool: folder.absolute() / tool for tool in tools}


def version_of(api_server: Path) -> str:
    """Which Kubernetes version an API server is."""
    try:
        done = subprocess.run(
            [str(api_server), "--version"], capture_output=True, text=True, timeout=ASK_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LocalError(f"{api_server} does not run: {error}") from error
    match = re.search(r"v(\d+\.\d+\.\d+)", done.stdout)
    if match is None:
        raise LocalError(f"{api_server} does not tell its version: {(done.stdout + done.stderr).strip()!r}")
    return match[1]


def _cached(tool: str, kubernetes: str) -> Path | None:
    """The folder of the set a tool is in, when it was made by the present recipe."""
    module = versions.module_of(tool)
    folder = paths.cache_dir() / "bin" / module.set_of(tool, kubernetes)
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except (FileNotFoundError, ValueError):
        return None
    return folder if manifest.get("recipe") == module.recipe() else None


def _make(tool: str, kubernetes: str, say: Say) -> Path:
    """Fetch or build the set the tool is in."""
    module = versions.module_of(tool)
    root = paths.cache_dir() / "bin"
    with paths.locked(
        root, waiting=lambda: say("waiting for another process that fetches or builds programs")
    ):
        if (present := _cached(tool, kubernetes)) is not None:
            return present  # the other process made it
        draft = root / ".new"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        try:
            made = _fill(draft, module, tool, kubernetes, say)
            for name, tools in made.items():
                _install(draft, root / name, tools, module.recipe())
        except OSError as error:
            raise LocalError(f"programs cannot be put into {root}: {error.strerror}") from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return root / module.set_of(tool, kubernetes)


def _fill(
    draft: Path, module: versions.Module, tool: str, kubernetes: str, say: Say
) -> dict[str, Sequence[str]]:
    """Put programs into ``draft``; gives which sets they make."""
    belongs = tool in module.kubernetes_tools
    tools = module.kubernetes_tools if belongs else module.other_tools
    try:
        releases.fetch(tools, kubernetes=kubernetes, machine=nodes.architecture(), folder=draft, say=say)
        return {module.set_of(tool, kubernetes): tools}
    except releases.UnavailableError as error:
        say(f"{error}; building instead")
    for file in draft.iterdir():
        file.unlink()
    target = kubernetes if belongs else versions.KUBERNETES
    paths.check_space(draft, SPACE_MEGABYTES)
    built = gobuild.build(module, target, folder=draft, say=say)
    sets: dict[str, list[str]] = {}
    for name in built:
        sets.setdefault(module.set_of(name, target), []).append(name)
    return dict(sets)


def _install(draft: Path, target: Path, tools: Sequence[str], recipe: str) -> None:
    """Make a set of some of the programs in ``draft``."""
    new = target.with_name(f".{target.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    for tool in tools:
        source = draft / tool
        program = new / source.resolve().name
        if not program.exists():
            os.link(source.resolve(), program)
        if source.is_symlink():
            (new / tool).symlink_to(program.name)
    (new / MANIFEST).write_text(json.dumps({"recipe": recipe, "tools": list(tools)}) + "\n")
    shutil.rmtree(target, ignore_errors=True)
    new.rename(target)
