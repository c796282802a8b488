"""Published Go modules as plain folders: the OpenAPI documents of Kubernetes, the reference's samples.

Go itself does the work (``go mod download``): it knows the proxy, checks the sums and keeps a cache.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from kuberay_op.errors import OperatorError

#: Seconds a download may take; the Kubernetes module is some 40 MB.
TIMEOUT: Final = 600


class ModuleUnavailableError(OperatorError):
    """There is no Go, or the module cannot be downloaded from here."""


def find_go() -> str:
    """The ``go`` program: from the PATH, else fetched once into the cache of ``kuberay-op local``."""
    try:
        from kuberay_op_local import gobuild
        from kuberay_op_local.errors import LocalError
    except ModuleNotFoundError as error:
        raise ModuleUnavailableError("Go is found by kuberay-op-local, which is not installed") from error
    try:
        return str(gobuild.find_go(lambda _: None))
    except LocalError as error:
        raise ModuleUnavailableError(str(error)) from error


@cache
def module_dir(module: str, version: str) -> Path:
    """The folder of a published module, downloaded unless it is in the cache already."""
    with tempfile.TemporaryDirectory() as empty:  # outside of any module, so that none is asked or changed
        command = [find_go(), "mod", "download", "-json", f"{module}@{version}"]
        try:
            done = subprocess.run(
                command, cwd=empty, capture_output=True, text=True, timeout=TIMEOUT, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise ModuleUnavailableError(
                f"{module}@{version} was not downloaded within {TIMEOUT} s"
            ) from error
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {}
    if "Dir" not in answer:
        reason = answer.get("Error") or done.stderr.strip() or "no answer"
        raise ModuleUnavailableError(f"{module}@{version} cannot be downloaded: {reason}")
    return Path(answer["Dir"])
