"""The images of a real node: what it has, and giving it more."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from kuberay_op_local.errors import LocalError
from kuberay_op_local.real import archive, files, packages
from kuberay_op_local.real.world import World

CTR_SECONDS: Final = 900.0
CHUNK: Final = 1 << 20


def load(inside: World, image: str) -> list[str]:
    """Give the node an image, an archive file or a name that its registry knows; gives the images' names."""
    path = Path(image)
    if path.is_file():
        return take(inside, _chunks(path))
    if image.startswith(("/", "./", "../")) or path.suffix in {".tar", ".tgz", ".gz"}:
        raise LocalError(f"there is no archive {image}")
    full = full_name(image)
    pull(inside, full)
    return [full]


def full_name(image: str) -> str:
    """An image's name with registry and tag, as containerd wants it."""
    head, _, rest = image.partition("/")
    if not rest:
        image = f"docker.io/library/{image}"
    elif "." not in head and ":" not in head and head != "localhost":
        image = f"docker.io/{image}"
    return image if ":" in image.rpartition("/")[2] or "@" in image else f"{image}:latest"


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def take(inside: World, image: Iterable[bytes]) -> list[str]:
    """Give containerd an image archive; gives the names of the images in it."""
    before = set(names(inside))
    with subprocess.Popen(
        [*_ctr(inside), "images", "import", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdin is not None  # noqa: S101 - a pipe was asked for; narrows the type
        assert process.stdout is not None  # noqa: S101 - the same
        try:
            for chunk in image:
                process.stdin.write(chunk)
            process.stdin.close()
        except BrokenPipeError:
            pass  # it says why below
        told = process.stdout.read().decode(errors="replace").strip()
    if process.returncode != 0:
        raise LocalError(
            f"containerd does not take the image: {told.splitlines()[-1] if told else 'no reason'}"
        )
    named = [word for line in told.splitlines() for word in line.split() if "/" in word and ":" in word]
    return sorted(set(names(inside)) - before) or named


def names(inside: World) -> list[str]:
    """The names of the images the node has."""
    done = subprocess.run(
        [*_ctr(inside), "images", "list", "--quiet"], capture_output=True, text=True, timeout=60, check=False
    )
    return [name for name in done.stdout.split() if not name.startswith("sha256:")]


def pull(inside: World, image: str) -> None:
    """Let containerd fetch an image from its registry."""
    done = subprocess.run(
        [*inside.enter(mounts=True), *_ctr_inside(), "images", "pull", image],
        capture_output=True,
        text=True,
        timeout=CTR_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        raise LocalError(
            f"the image {image} cannot be fetched from its registry ({lines[-1].removeprefix('ctr: ')}); "
            "check the name, or load an archive, or build one with --build"
        )


def load_pause(inside: World) -> None:
    """The image of the first process of every Pod."""
    if files.PAUSE_IMAGE not in names(inside):
        program = packages.path_of("catatonit")
        take(inside, [archive.one_program(program, ["-P"], tag=files.PAUSE_IMAGE)])


def _ctr(inside: World) -> list[str]:
    return [str(packages.path_of("ctr")), "--address", str(inside.containerd_socket), "--namespace", "k8s.io"]


def _ctr_inside() -> list[str]:
    return [str(packages.path_of("ctr")), "--address", files.CONTAINERD_SOCKET, "--namespace", "k8s.io"]
