"""Which third-party packages some of our packages need, as lines of the lock with their hashes.

    pinned.py requirements.lock PACKAGE_FOLDER...     what these packages need, and what that needs
    pinned.py requirements.lock --build               what building our packages needs

Runs inside an image build, with nothing but Python and pip. The lock pins everything the project uses; an
image takes only the part it needs, and no package without a hash.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

#: What our build backend consists of.
BUILD = ("hatchling>=1.27",)

#: Our own packages, which are built from the checkout.
OURS = "kuberay-op"


def main(lock: str, *folders: str) -> None:
    """Print the pinned lines."""
    entries = read_lock(Path(lock).read_text())
    wanted = BUILD if folders == ("--build",) else requirements(folders)
    for name in resolve(wanted, entries):
        sys.stdout.write(entries[name] + "\n")


def read_lock(text: str) -> dict[str, str]:
    """The entries of a lock by normal name: requirement and hashes, over several lines."""
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    return {normal(re.split(r"[=<>;\[ ]", line)[0]): line for line in joined.splitlines() if line.strip()}


def requirements(folders: tuple[str, ...]) -> list[str]:
    """What the packages in these folders say they need, our own left out."""
    found: list[str] = []
    for folder in folders:
        project = tomllib.loads((Path(folder) / "pyproject.toml").read_text())["project"]
        found += [line for line in project.get("dependencies", ()) if not normal(line).startswith(OURS)]
    return found


def resolve(wanted: list[str] | tuple[str, ...], entries: dict[str, str]) -> list[str]:
    """The names of all packages that pip would install, at the versions of the lock."""
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder) / "pins.txt"
        pins.write_text("\n".join(re.sub(r"\s--hash=\S+", "", entry) for entry in entries.values()))
        command = ["install", "--quiet", "--dry-run", "--ignore-installed", "--break-system-packages"]
        report = Path(folder) / "report.json"
        subprocess.run(
            [sys.executable, "-m", "pip", *command, "--report", str(report), "-c", str(pins), *wanted],
            check=True,
        )
        installed = json.loads(report.read_text())["install"]
    return sorted(normal(item["metadata"]["name"]) for item in installed)


def normal(name: str) -> str:
    """A package name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main(*sys.argv[1:])
