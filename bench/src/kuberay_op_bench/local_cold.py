"""From nothing to a running control plane: fetch or build everything, then start it.

Takes many minutes and some gigabytes, so ``kuberay-op bench all`` leaves it out.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from kuberay_op_bench.local import megabytes
from kuberay_op_bench.report import Measure, Report
from kuberay_op_local import binaries, versions
from kuberay_op_local.cluster import Cluster


def run(*, folder: Path | None = None) -> Report:
    """Measure with caches of our own in ``folder`` (a new one in the temporary folder if not given)."""
    with _empty_caches(folder) as home:
        began = time.perf_counter()
        programs = binaries.resolve(versions.ALL_TOOLS, kubernetes=versions.KUBERNETES, folder=None, say=_say)
        made = time.perf_counter()
        cluster = Cluster.up(f"bench-{os.getpid()}")
        up = time.perf_counter()
        cluster.down()
        disk = sum(
            file.stat().st_size for file in home.rglob("*") if file.is_file() and not file.is_symlink()
        )
        measures = (
            Measure("nothing to a running control plane", round((up - began) / 60, 1), "min", at_most=20.0),
            Measure("of that, fetching and building programs", round((made - began) / 60, 1), "min"),
            Measure("all programs on disk", megabytes(programs.values()), "MB"),
            Measure("with the caches of the build", round(disk / 1e6), "MB"),
        )
    return Report("local_cold", measures, {"Kubernetes": versions.KUBERNETES})


def _say(text: str) -> None:
    click.echo(text, err=True)


@contextlib.contextmanager
def _empty_caches(folder: Path | None) -> Iterator[Path]:
    """A home without any cache: ours, Go's and pip's."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="kuberay-op-cold-") as name:
        home = Path(name)
        variables = {
            "XDG_CACHE_HOME": home / "cache",
            "XDG_STATE_HOME": home / "state",
            "GOCACHE": home / "go-build",
            "GOMODCACHE": home / "go-mod",
            "PIP_CACHE_DIR": home / "pip",
        }
        with _environment({key: str(value) for key, value in variables.items()}):
            try:
                yield home
            finally:
                _remove_modules(home)


def _remove_modules(home: Path) -> None:
    """Go makes its modules read-only; Go itself can remove them."""
    go = shutil.which("go") or next(iter(home.glob("cache/kuberay-op/go-*/go/bin/go")), None)
    if go:
        subprocess.run([str(go), "clean", "-modcache"], check=False)


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {key: os.environ.get(key) for key in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value
