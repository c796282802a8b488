"""The reference operator, KubeRay 1.6.2, built from its published Go module, and operators as processes.

The program is built once and kept in the cache of ``kuberay-op local``. It takes some minutes, so do it ahead
of a first test run with ``python -m kuberay_op.testing.reference``.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kuberay_op.testing.go_modules import ModuleUnavailableError, find_go, module_dir

MODULE: Final = "github.com/ray-project/kuberay/ray-operator"
VERSION: Final = "v1.6.2"

#: Seconds for a build from nothing on a small machine.
BUILD_SECONDS: Final = 1500
STOP_SECONDS: Final = 30


def samples() -> Path:
    """The folder of the reference's samples."""
    return module_dir(MODULE, VERSION) / "config" / "samples"


def reference_program() -> Path:
    """The reference operator; built if it is not in the cache."""
    from kuberay_op_local.paths import cache_dir  # late: the package is an extra

    folder = cache_dir() / f"reference-{VERSION}"
    program = folder / "manager"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one build, however many ask
        if not program.exists():
            _build(program)
    return program


def _build(program: Path) -> None:
    from kuberay_op_local.gobuild import go_environment  # late: the package is an extra

    draft = program.with_name("manager.new")
    # In the folder of the module, so that its own go.mod and go.sum decide what goes in.
    command = [find_go(), "build", "-mod=readonly", "-trimpath", "-ldflags=-s -w", "-o", str(draft), "."]
    done = subprocess.run(
        ["/usr/bin/env", "nice", *command],
        cwd=module_dir(MODULE, VERSION),
        env={**go_environment(), "GOFLAGS": "-buildvcs=false"},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise ModuleUnavailableError(f"the reference does not build: {done.stderr.strip()[-500:]}")
    draft.rename(program)


def our_command() -> list[str]:
    """The command of our operator."""
    return [sys.executable, "-c", "from kuberay_op.cli import main; main()", "run"]


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[None]:
    """An operator at work while the block lasts; one that ends by itself is a failure."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env={"PATH": os.environ["PATH"], "HOME": str(log.parent), **environment},
            stdout=output,
            stderr=output,
        )
    try:
        yield
        ended = process.poll()
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    if ended is not None:
        last = log.read_text(errors="replace")[-2000:]
        raise AssertionError(f"{command[0]} ended with {ended}; its log ends:\n{last}")


if __name__ == "__main__":
    sys.stdout.write(f"{reference_program()}\n")
