"""What a real node changes outside its namespaces: cgroups and a few kernel settings. Both are undone."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kuberay_op_local.errors import LocalError
from kuberay_op_local.paths import Layout, clusters_dir

CGROUPS: Final = Path("/sys/fs/cgroup")
SETTINGS: Final = Path("/proc/sys")
#: The kubelet writes these for the whole machine when it starts.
KUBELET_WRITES: Final = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
#: Every Pod watches files; the usual 128 are soon used up.
INOTIFY: Final = "fs/inotify/max_user_instances"
INOTIFY_INSTANCES: Final = 8192

#: CNI keeps its results here; what is inside lies in the cluster's own mounts.
CNI_CACHE: Final = Path("/var/lib/cni")

EMPTY_SECONDS: Final = 15.0
POLL_SECONDS: Final = 0.05


def tag(layout: Layout) -> str:
    """A short name for everything of this cluster that the whole machine can see."""
    return hashlib.sha256(str(layout.root).encode()).hexdigest()[:8]


def cgroup(layout: Layout) -> str:
    """The name of the cgroup under which all Pods of this cluster are."""
    return f"kuberay-op-{tag(layout)}"


def prepare(layout: Layout) -> None:
    """Note what will be changed, then make the cgroup and room for file watches."""
    note = _note(layout)
    if not note.exists():
        # A second cluster finds settings the first one changed: it takes over the first one's note.
        others = [file for file in clusters_dir().glob(f"*/{note.name}") if file != note]
        before = others[0].read_text() if others else json.dumps(_read())
        note.write_text(before)
    CNI_CACHE.mkdir(parents=True, exist_ok=True)
    current = int((SETTINGS / INOTIFY).read_text())
    _write(INOTIFY, str(max(current, INOTIFY_INSTANCES)))
    for root in _hierarchies():
        (root / cgroup(layout)).mkdir(exist_ok=True)


def clean(layout: Layout) -> None:
    """Undo ``prepare`` once all processes of the cluster are killed."""
    for root in _hierarchies():
        _remove(root / cgroup(layout))
    note = _note(layout)
    if not note.exists():
        return
    if not any(file != note for file in clusters_dir().glob(f"*/{note.name}")):
        before: dict[str, str] = json.loads(note.read_text())
        for name, value in before.items():
            if name == str(CNI_CACHE):
                with contextlib.suppress(OSError):  # somebody else uses it by now
                    CNI_CACHE.rmdir()
            else:
                _write(name, value)
    note.unlink()


def _note(layout: Layout) -> Path:
    return layout.root / "kernel-before.json"


def _read() -> dict[str, str]:
    values = {}
    for name in (*KUBELET_WRITES, INOTIFY):
        with contextlib.suppress(OSError):  # this kernel lacks it
            values[name] = (SETTINGS / name).read_text().strip()
    if not CNI_CACHE.exists():
        values[str(CNI_CACHE)] = "absent"
    return values


def _write(name: str, value: str) -> None:
    with contextlib.suppress(OSError):  # read-only in a container: the kubelet says so if it matters
        (SETTINGS / name).write_text(value)


def _hierarchies() -> Iterator[Path]:
    """The roots in which a cgroup must be made: one with version 2, one per controller with version 1."""
    if (CGROUPS / "cgroup.controllers").exists():
        yield CGROUPS
        return
    if not CGROUPS.is_dir():
        return
    for folder in sorted(CGROUPS.iterdir()):
        # "cpu,cpuacct" is often one hierarchy with links of the single names to it.
        if folder.is_dir() and not folder.is_symlink() and (folder / "cgroup.procs").exists():
            yield folder


def _remove(folder: Path) -> None:
    """Remove a cgroup and those in it; what still runs there is killed."""
    deadline = time.monotonic() + EMPTY_SECONDS
    while folder.exists():
        for inner, _, _ in os.walk(folder, topdown=False):
            with contextlib.suppress(OSError):
                for pid in (Path(inner) / "cgroup.procs").read_text().split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
            with contextlib.suppress(OSError):  # not empty yet
                Path(inner).rmdir()
        if time.monotonic() > deadline:
            raise LocalError(f"the cgroup {folder} cannot be removed; processes in it do not end")
        if folder.exists():
            time.sleep(POLL_SECONDS)
