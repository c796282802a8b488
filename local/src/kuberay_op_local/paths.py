"""Where things live: programs in the cache, clusters in the state folder (XDG)."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import platformdirs

from kuberay_op_local.errors import LocalError

APP: Final = "kuberay-op"
POLL_SECONDS: Final = 0.02
PATIENCE_SECONDS: Final = 1.0


def cache_dir() -> Path:
    """The folder of everything that can be fetched or built again."""
    return platformdirs.user_cache_path(APP)


def clusters_dir() -> Path:
    """The folder that holds one folder per cluster."""
    return platformdirs.user_state_path(APP) / "clusters"


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one cluster, all under ``root``."""

    root: Path

    @classmethod
    def of(cls, name: str) -> Layout:
        """The layout of the cluster of this name."""
        return cls(clusters_dir() / name)

    @property
    def spec(self) -> Path:
        """What the cluster was asked to be: ports, versions, nodes."""
        return self.root / "cluster.json"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.root / "kubeconfig"

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.root / "pki"

    @property
    def data(self) -> Path:
        """The data folder of etcd."""
        return self.root / "etcd"

    @property
    def kube_cache(self) -> Path:
        """Where kubectl keeps what it discovered, so that nothing stays in the home folder."""
        return self.root / "kube-cache"

    @property
    def stages(self) -> Path:
        """What kwok does with nodes and Pods."""
        return self.root / "kwok-stages.yaml"

    @property
    def node(self) -> Path:
        """The files of a real node: configuration, containers, images."""
        return self.root / "node"

    def log(self, component: str) -> Path:
        """The log file of a component."""
        return self.root / "logs" / f"{component}.log"

    def component_kubeconfig(self, component: str) -> Path:
        """The kubeconfig a component uses."""
        return self.root / "kubeconfigs" / f"{component}.yaml"


@contextmanager
def locked(
    folder: Path, *, create: bool = True, waiting: Callable[[], object] = lambda: None
) -> Iterator[bool]:
    """Hold ``folder`` for ourselves; gives False when it does not exist and ``create`` is off.

    ``waiting`` is called once when somebody else holds it for long. The lock is on the folder itself, so that
    it goes away together with it: a lock file beside the folder would stay behind, one inside it would be
    deleted under a waiter's feet.
    """
    while (handle := _open(folder, create=create)) is not None:
        try:
            _acquire(handle, waiting)
            if folder.exists() and os.path.samestat(os.fstat(handle), folder.stat()):
                yield True
                return
            # The holder before us removed the folder while we waited: once more.
        finally:
            os.close(handle)
    yield False


def _open(folder: Path, *, create: bool) -> int | None:
    while True:
        if create:
            make_private(folder)
        try:
            return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # with create: removed between the two calls
            if not create:
                return None


def _acquire(handle: int, waiting: Callable[[], object]) -> None:
    began = time.monotonic()
    told = False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not told and time.monotonic() - began > PATIENCE_SECONDS:
                told = True
                waiting()
            time.sleep(POLL_SECONDS)
        else:
            return


def make_private(folder: Path) -> None:
    """Create a folder that only its owner can read (it will hold keys)."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LocalError(f"cannot create the folder {folder}: {error.strerror}") from error


def remove(folder: Path) -> None:
    """Remove a cluster's folder and those above it that are empty now."""
    shutil.rmtree(folder, ignore_errors=False)
    with suppress(OSError):  # not empty: other clusters live there
        clusters_dir().rmdir()
        clusters_dir().parent.rmdir()


def check_space(folder: Path, megabytes: int) -> None:
    """Fail early and clearly when the disk is too full."""
    free = shutil.disk_usage(folder).free >> 20
    if free < megabytes:
        raise LocalError(
            f"the disk of {folder} has {free} MB left and {megabytes} MB are needed; free some space, "
            "or choose other folders with XDG_STATE_HOME and XDG_CACHE_HOME"
        )
