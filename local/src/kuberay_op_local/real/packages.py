"""The programs that come from Debian packages: which are missing, and installing them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kuberay_op_local.errors import LocalError
from kuberay_op_local.run import Done, Say, run

#: Where programs for root are; a user's PATH often lacks the second half.
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

CNI_FOLDER: Final = Path("/usr/lib/cni")

#: What a real node needs: a program, and the package that has it.
FOR_NODE: Final[Mapping[str, str]] = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "setpriv": "util-linux",
    "mount": "mount",
    "slirp4netns": "slirp4netns",
    "catatonit": "catatonit",
    str(CNI_FOLDER / "bridge"): "containernetworking-plugins",
}

#: What building images needs.
FOR_IMAGES: Final[Mapping[str, str]] = {
    "buildah": "buildah",
    "runc": "runc",
    "debootstrap": "debootstrap",
    "tar": "tar",
}

LAST_LINES: Final = 4


def need_root(what: str) -> None:
    """Fail in a sentence for anybody but root."""
    if os.geteuid() != 0:
        raise LocalError(f"{what} needs root, for namespaces, mounts and cgroups; run it with sudo")


def find(program: str) -> Path | None:
    """Where a program is."""
    found = shutil.which(program, path=PATH)
    return Path(found) if found else None


def path_of(program: str) -> Path:
    """Where a program is that must be there."""
    found = find(program)
    if found is None:
        raise LocalError(f"the program {program} is missing; install it and run the command again")
    return found


def missing(wanted: Mapping[str, str]) -> list[str]:
    """The packages whose programs are not there, sorted."""
    return sorted({package for program, package in wanted.items() if find(program) is None})


def ensure(wanted: Mapping[str, str], *, say: Say) -> None:
    """Install the packages whose programs are missing, after saying so."""
    packages = missing(wanted)
    if not packages:
        return
    names = " ".join(packages)
    if find("apt-get") is None:
        programs = ", ".join(sorted(program for program in wanted if find(program) is None))
        raise LocalError(
            f"these programs are missing and there is no apt-get to install them: {programs}; "
            f"install what your system calls the packages {names}"
        )
    say(f"installing Debian packages: {names}")
    done = _install(packages, say)
    if done.code != 0:  # the lists may be old or not there at all
        updated = _apt(["update"], "reading the package lists", say)
        done = _install(packages, say) if updated.code == 0 else updated
    left = missing(wanted)
    if done.code != 0 or left:
        last = "; ".join((done.complaints or done.output)[-LAST_LINES:])
        raise LocalError(
            f"the Debian packages {' '.join(left or packages)} cannot be installed ({last}); "
            f"install them with `apt-get install {' '.join(left or packages)}` and run the command again"
        )


def _install(packages: Sequence[str], say: Say) -> Done:
    # Without what they recommend: one of those, crun, refuses the hybrid cgroups of some machines.
    return _apt(["install", "--yes", "--no-install-recommends", *packages], "installing packages", say)


def _apt(arguments: Sequence[str], what: str, say: Say) -> Done:
    return run(
        [str(path_of("apt-get")), "--quiet", *arguments],
        env={**os.environ, "PATH": PATH, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
        tick=lambda _, seconds: say(f"{what}: {seconds:.0f} s"),
    )
