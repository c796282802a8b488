"""Which images there are, and what decides their content: Dockerfile, context, arguments, parent."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kuberay_op_local.errors import LocalError

#: The release our images stand on, and the name of its bare image.
SUITE: Final = "bookworm"
DEBIAN: Final = f"localhost/kuberay-op/debian:{SUITE}"

RAY: Final = "2.60.0"
_RAY_VERSION: Final = re.compile(r"\d+\.\d+\.\d+")
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")

#: Never part of an image, whatever a Dockerfile copies.
LEFT_OUT: Final = frozenset({"__pycache__", "tests", ".git"})


@dataclass(frozen=True, slots=True)
class Recipe:
    """One image: where its Dockerfile is, what it may copy, whose child it is."""

    name: str
    #: The image's name, without the tag.
    repository: str
    #: What a build may copy, as paths in the checkout; the Dockerfile's folder is the context when empty.
    context: tuple[str, ...] = ()
    #: The recipe it stands on; None: bare Debian.
    parent: str | None = "base"
    #: Build arguments and their usual values.
    arguments: Mapping[str, str] = field(default_factory=dict)

    def tag(self, arguments: Mapping[str, str], version: str) -> str:
        """The tag of an image that was built with these arguments; ``version`` is the project's."""
        if self.name == "ray":
            return arguments["RAY_VERSION"]
        return {"base": SUITE, "redis": "7"}.get(self.name, version)


_SOURCES: Final = ("LICENSE", "README.md", "pyproject.toml", "requirements.lock", "images/pinned.py")

RECIPES: Final[dict[str, Recipe]] = {
    recipe.name: recipe
    for recipe in (
        Recipe("base", "kuberay-op/base", parent=None),
        Recipe("ray", "rayproject/ray", arguments={"RAY_VERSION": RAY}),
        Recipe("redis", "redis", parent=None),
        Recipe(
            "operator",
            "kuberay-op/operator",
            context=(*_SOURCES, "kuberay_op", "plugins", "batchscheduler", "gateway"),
            arguments={"PLUGINS": "all"},
        ),
        Recipe(
            "submitter",
            "kuberay-op/submitter",
            context=("requirements.lock", "images/pinned.py", "submitter"),
        ),
    )
}


def recipe(name: str) -> Recipe:
    """The recipe of this name."""
    if name not in RECIPES:
        raise LocalError(f"there is no image {name!r} to build; there are {', '.join(RECIPES)}")
    return RECIPES[name]


def arguments(of: Recipe, given: Mapping[str, str]) -> dict[str, str]:
    """The build arguments: the usual ones, and what the user gave instead."""
    for key, value in given.items():
        if key not in of.arguments:
            known = ", ".join(of.arguments) or "none"
            raise LocalError(f"the image {of.name!r} takes no argument {key!r}; it takes: {known}")
        if key == "RAY_VERSION" and not _RAY_VERSION.fullmatch(value):
            raise LocalError(f"{value!r} is not a version of Ray; give all three numbers, such as {RAY}")
    return {**of.arguments, **given}


def check_tag(tag: str) -> str:
    """The tag, if an image can have it."""
    if not _TAG.fullmatch(tag):
        raise LocalError(f"{tag!r} cannot be the tag of an image; use letters, digits, '_', '.' and '-'")
    return tag


def checkout(start: Path) -> Path:
    """The checkout with the Dockerfiles: ``start`` or the nearest folder above it that has them."""
    for folder in (start, *start.parents):
        if (folder / "images" / "base" / "Dockerfile").is_file() and (folder / "pyproject.toml").is_file():
            return folder
    raise LocalError(
        f"images are built from a checkout of kuberay-op, and {start} is not inside one; "
        "go there, or name it with --source"
    )


def files(of: Recipe, source: Path) -> Iterator[tuple[str, Path]]:
    """The files of the build context, sorted: path in the context and where it is."""
    folder = source / "images" / of.name
    if not of.context:
        yield from _below(folder, folder)
        return
    for entry in sorted(of.context):
        path = source / entry
        if path.is_file():
            yield entry, path
        elif path.is_dir():
            yield from _below(path, source)
    yield f"images/{of.name}/Dockerfile", folder / "Dockerfile"


def _below(folder: Path, root: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(root)
        if path.is_file() and not LEFT_OUT.intersection(inside.parts) and path.suffix != ".pyc":
            yield str(inside), path


def key(of: Recipe, source: Path, chosen: Mapping[str, str]) -> str:
    """Changes when an image must be built again: with its files, arguments or parent."""
    digest = hashlib.sha256(f"{of.name} {sorted(chosen.items())} {SUITE}".encode())
    for name, path in files(of, source):
        digest.update(f"{name} {path.stat().st_mode & 0o111} ".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    if of.parent is not None:
        parent = RECIPES[of.parent]
        digest.update(key(parent, source, parent.arguments).encode())
    return digest.hexdigest()[:16]
