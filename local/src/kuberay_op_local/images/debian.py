"""Bare Debian as an image, made from the packages this machine installs from: no registry is asked."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from kuberay_op_local.errors import LocalError
from kuberay_op_local.images.recipes import SUITE
from kuberay_op_local.real import packages
from kuberay_op_local.run import Say, run

#: What differs from build to build, or from machine to machine, or is never read in a container.
DROPPED: Final = (
    "etc/apt/sources.list",
    "etc/hostname",
    "etc/machine-id",
    "etc/resolv.conf",
    "usr/share/doc",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/man",
    "var/cache",
    "var/lib/apt/lists",
    "var/log",
)
LAST_LINES: Final = 3


def mirror() -> str | None:
    """From where this machine installs packages of our release; None when it does not."""
    if packages.find("apt-get") is None:
        return None
    listed = subprocess.run(
        [
            str(packages.path_of("apt-get")),
            "indextargets",
            "--format",
            "$(REPO_URI) $(RELEASE) $(COMPONENT)",
            "Created-By: Packages",
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": packages.PATH},
    )
    for line in listed.stdout.splitlines():
        address, release, component = line.split()
        if (release, component) == (SUITE, "main"):
            return address
    return None


def make_root(folder: Path, address: str, *, say: Say) -> None:
    """Install a minimal Debian into ``folder``."""
    done = run(
        [str(packages.path_of("debootstrap")), "--variant=minbase", SUITE, str(folder), address],
        env={"PATH": packages.PATH, "LC_ALL": "C", "HOME": "/root"},
        tick=lambda _, seconds: say(f"installing a minimal Debian: {seconds:.0f} s"),
    )
    if done.code != 0:
        last = "; ".join([*done.output, *done.complaints][-LAST_LINES:])
        raise LocalError(f"debootstrap cannot install a minimal Debian {SUITE} ({last})")
    for name in DROPPED:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
            path.mkdir()
        else:
            path.unlink(missing_ok=True)


def pack(folder: Path, archive: Path) -> None:
    """Write the folder as an archive: the same bytes for the same files."""
    order = ["--sort=name", "--mtime=@0", "--numeric-owner", "--exclude=./dev/*", "--exclude=./proc/*"]
    done = subprocess.run(
        [str(packages.path_of("tar")), "-C", str(folder), *order, "-cf", str(archive), "."],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise LocalError(f"the minimal Debian cannot be packed: {done.stderr.strip()}")
