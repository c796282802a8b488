"""For tests: can this machine run a real node at once, and one real node at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kuberay_op_local import binaries, paths, versions
from kuberay_op_local.cluster import Cluster
from kuberay_op_local.errors import LocalError
from kuberay_op_local.images import build, recipes
from kuberay_op_local.real import packages


def why_not() -> str | None:
    """Why a test cannot have a real node here, in a sentence; None when it can.

    Tests install no packages and build no programs: whoever wants them run prepares the machine once.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        return "a real node wants the machine for itself; `make e2e` runs these tests one after another"
    if os.geteuid() != 0:
        return "a real node needs root"
    missing = packages.missing({**packages.FOR_NODE, **packages.FOR_IMAGES})
    if missing:
        return f"a real node needs the Debian packages {' '.join(missing)}; `make e2e` installs them"
    try:
        binaries.resolve(
            versions.NODE_TOOLS, kubernetes=versions.KUBERNETES, folder=None, say=lambda _: None, make=False
        )
    except LocalError as error:
        return f"{error}, with --node real; `make e2e` does it"
    return None


@contextmanager
def real_cluster(name: str, *, images: Sequence[str] = (), source: Path | None = None) -> Iterator[Cluster]:
    """A cluster with a real node and some of the project's images, alone on the machine; gone afterwards.

    Images that are not in the cache are built from the checkout ``source``.
    """
    paths.make_private(paths.cache_dir())
    with (paths.cache_dir() / "real-node.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = [
            build.build(image, source=recipes.checkout(source or Path.cwd()), given={}, say=lambda _: None)
            for image in images
        ]
        cluster = Cluster(name)
        try:
            Cluster.up(name, node="real", make=False)
            for image in made:
                cluster.load(image.archive)
            yield cluster
        finally:
            cluster.down()
