"""Building an image with buildah, once per content: the result is an archive in the cache.

buildah runs in a mount namespace of its own and keeps its storage in the cache, so that it leaves nothing
behind on the machine. How this machine reaches Debian and PyPI (mirrors, certificates) is lent to the build
through mounts and never becomes part of an image.
"""

from __future__ import annotations

import configparser
import json
import os
import shutil
import ssl
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from kuberay_op_local import paths
from kuberay_op_local.errors import LocalError
from kuberay_op_local.images import debian, recipes
from kuberay_op_local.images.recipes import Recipe
from kuberay_op_local.real import packages
from kuberay_op_local.run import Done, Say, run

#: A build of Ray with what it stands on.
SPACE_MEGABYTES: Final = 8000
LAST_LINES: Final = 12
#: Every file and the image itself are as old as this, so that two builds give one image.
TIMESTAMP: Final = "0"

#: How many images of one recipe stay in the cache: those of a few checkouts, versions or tags.
KEPT: Final = 4

#: Where a build finds what the machine lends it: over a folder that is there, so that no trace stays.
LENT_INSIDE: Final = "/etc/apt/sources.list.d"
CA_INSIDE: Final = f"{LENT_INSIDE}/ca.crt"
PIP_FILES: Final = ("/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf")
PIP_VARIABLES: Final = {"PIP_INDEX_URL": "index-url", "PIP_EXTRA_INDEX_URL": "extra-index-url"}


@dataclass(frozen=True, slots=True)
class Image:
    """An image in the cache."""

    name: str
    #: Digest of its configuration, which names the digests of its layers: the same for the same content.
    id: str
    archive: str
    megabytes: int


def build(
    name: str,
    *,
    source: Path,
    given: Mapping[str, str],
    tag: str | None = None,
    fresh: bool = False,
    say: Say,
) -> Image:
    """The image of a recipe, from the cache when nothing it is made of has changed."""
    recipe = recipes.recipe(name)
    chosen = recipes.arguments(recipe, given)
    full = (
        f"docker.io/{recipe.repository}:{recipes.check_tag(tag or recipe.tag(chosen, version('kuberay-op')))}"
    )
    folder = cache() / f"{recipe.name}-{recipes.key(recipe, source, chosen)}-{full.rpartition(':')[2]}"
    if not fresh and (found := _read(folder)) is not None:
        return found
    packages.need_root("building images")
    packages.ensure(packages.FOR_IMAGES, say=say)
    paths.make_private(cache())
    paths.check_space(cache(), SPACE_MEGABYTES)
    with paths.locked(cache() / "storage", waiting=lambda: say("waiting for another build of images")):
        if not fresh and (found := _read(folder)) is not None:
            return found  # the other build made it
        for stale in cache().glob(".work-*"):  # of a build that was killed: we hold the lock
            shutil.rmtree(stale, ignore_errors=True)
        return _build(recipe, full, source, chosen, folder, fresh=fresh, say=say)


def cache() -> Path:
    """The folder of built images and of buildah's storage."""
    return paths.cache_dir() / "images"


def _read(folder: Path) -> Image | None:
    try:
        found = Image(**json.loads((folder / "image.json").read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return found if Path(found.archive).exists() else None


def _build(
    recipe: Recipe, full: str, source: Path, chosen: Mapping[str, str], folder: Path, *, fresh: bool, say: Say
) -> Image:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=cache(), prefix=".work-") as work:
        builder = _Buildah(Path(work), say)
        bare = _bare_debian(builder, fresh=fresh, say=say)
        if recipe.parent is None:
            arguments = {**chosen, **({"DEBIAN": bare} if bare else {})}
        else:
            arguments = {**chosen, "BASE": _parent(builder, recipe.parent, source, bare, fresh=fresh)}
        builder.bud(recipe, source, arguments, full)
        draft = Path(work) / "result"
        draft.mkdir()
        builder.push(full, draft / "image.tar")
        identity = builder.identity(full)
        builder.remove(full)
        size = (draft / "image.tar").stat().st_size >> 20
        image = Image(full, identity, str(folder / "image.tar"), size)
        (draft / "image.json").write_text(json.dumps(asdict(image), indent=2) + "\n")
        if folder.exists():  # --fresh
            shutil.rmtree(folder)
        draft.rename(folder)
    for old in sorted(cache().glob(f"{recipe.name}-*"), key=lambda it: it.stat().st_mtime)[:-KEPT]:
        shutil.rmtree(old)
    say(f"built {full} in {time.monotonic() - began:.0f} s ({size} MB, {identity[:19]})")
    return image


def _bare_debian(builder: _Buildah, *, fresh: bool, say: Say) -> str | None:
    """The name of bare Debian in the storage; None where Dockerfiles must ask the registry for it."""
    if builder.has(recipes.DEBIAN) and not fresh:
        return recipes.DEBIAN
    address = debian.mirror()
    if address is None:
        say(f"this machine does not install from Debian {recipes.SUITE}; asking the registry for its image")
        return None
    root = builder.work / "root"
    debian.make_root(root, address, say=say)
    context = builder.work / "debian"
    context.mkdir()
    debian.pack(root, context / "root.tar")
    (context / "Dockerfile").write_text('FROM scratch\nADD root.tar /\nCMD ["/bin/bash"]\n')
    builder.bud_folder(context, context / "Dockerfile", {}, recipes.DEBIAN, "bare Debian")
    shutil.rmtree(root)
    return recipes.DEBIAN


def _parent(builder: _Buildah, name: str, source: Path, bare: str | None, *, fresh: bool) -> str:
    parent = recipes.recipe(name)
    local = f"localhost/{parent.repository}:{recipes.key(parent, source, parent.arguments)}"
    if fresh or not builder.has(local):
        builder.bud(parent, source, {"DEBIAN": bare} if bare else {}, local)
    return local


class _Buildah:
    """buildah with a storage of its own."""

    def __init__(self, work: Path, say: Say) -> None:
        self.work = work
        self._say = say
        storage = cache() / "storage"
        policy = work / "policy.json"
        policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        alone = [str(packages.path_of("unshare")), "--mount", "--propagation=private"]
        where = [f"--root={storage / 'images'}", f"--runroot={work / 'run'}", "--storage-driver=overlay"]
        self._command = [*alone, str(packages.path_of("buildah")), *where]
        self._policy = [f"--signature-policy={policy}"]

    def bud(self, recipe: Recipe, source: Path, arguments: Mapping[str, str], full: str) -> None:
        """Build a recipe from a copy of exactly the files its key was made from."""
        context = self.work / f"context-{recipe.name}"
        for name, path in recipes.files(recipe, source):
            target = context / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        dockerfile = context / (f"images/{recipe.name}/Dockerfile" if recipe.context else "Dockerfile")
        self.bud_folder(context, dockerfile, arguments, full, recipe.name)
        shutil.rmtree(context)

    def bud_folder(
        self, context: Path, dockerfile: Path, arguments: Mapping[str, str], full: str, what: str
    ) -> None:
        """Build what a Dockerfile says."""
        lent = self.work / "lent"
        if not lent.exists():
            lend(lent)
        options = [
            *self._policy,
            "--isolation=chroot",
            "--network=host",
            "--layers=false",
            "--format=oci",  # the other writes the name of the build container into the image
            f"--timestamp={TIMESTAMP}",
            f"--secret=id=pip,src={lent / 'pip.conf'}",
            f"--volume={lent / 'apt'}:{LENT_INSIDE}:ro",
            *(f"--build-arg={key}={value}" for key, value in sorted(arguments.items())),
        ]
        self._run(f"building {what}", "bud", *options, "-f", str(dockerfile), "-t", full, str(context))

    def push(self, full: str, archive: Path) -> None:
        """Write an image as an archive that containerd and Docker load."""
        self._run(f"packing {full}", "push", *self._policy, full, f"docker-archive:{archive}:{full}")

    def identity(self, full: str) -> str:
        """The digest of an image's configuration."""
        done = self._run(f"looking at {full}", "inspect", "--type=image", "--format={{.FromImageID}}", full)
        return f"sha256:{done.output[0].strip()}"

    def has(self, full: str) -> bool:
        """Whether the storage has an image."""
        done = self._start("images", "--quiet", full, what=f"looking for {full}")
        return done.code == 0 and bool(done.output)

    def remove(self, full: str) -> None:
        """Forget an image that is in an archive now, and what building it left."""
        self._run(f"tidying up after {full}", "rmi", "--force", full)

    def _run(self, what: str, *arguments: str) -> Done:
        done = self._start(*arguments, what=what)
        if done.code != 0:
            raise LocalError(build_failure(what, [*done.output, *done.complaints]))
        return done

    def _start(self, *arguments: str, what: str) -> Done:
        return run(
            [*self._command, *arguments],
            env={"PATH": packages.PATH, "HOME": str(self.work), "TMPDIR": str(self.work), "LC_ALL": "C"},
            tick=lambda _, seconds: self._say(f"{what}: {seconds:.0f} s"),
        )


def build_failure(what: str, lines: Sequence[str]) -> str:
    """Why a build failed, in a sentence, with its last lines."""
    text = "\n".join(lines)
    advice = "read the lines above, mend the Dockerfile or its context, and run the command again"
    if "No space left on device" in text or "no space left on device" in text:
        advice = "free some disk space, or move the cache with XDG_CACHE_HOME"
    elif "Temporary failure resolving" in text or "Could not find a version that satisfies" in text:
        advice = "check the name and version, and the way to the Debian mirror and the Python package index"
    shown = "\n".join(f"    {line}" for line in lines[-LAST_LINES:])
    return f"{what} failed\n  last lines of its output:\n{shown}\n  try: {advice}"


def lend(folder: Path) -> None:
    """Collect how this machine reaches Debian and PyPI: package sources, certificates, pip's settings."""
    sources = Path("/etc/apt/sources.list.d")
    apt = folder / "apt"
    apt.mkdir(parents=True)
    for file in [*sources.glob("debian*"), Path("/etc/apt/sources.list")]:
        if file.is_file() and file.suffix in {".sources", ".list"}:
            shutil.copy(file, apt / file.name)
    bundle = os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
    shutil.copy(bundle or "/etc/ssl/certs/ca-certificates.crt", apt / Path(CA_INSIDE).name)
    (folder / "pip.conf").write_text(pip_settings(os.environ))


def pip_settings(environment: Mapping[str, str]) -> str:
    """A pip.conf with this machine's package index and the certificates we lend."""
    settings = configparser.ConfigParser(interpolation=None)
    named = environment.get("PIP_CONFIG_FILE")
    settings.read([Path(file).expanduser() for file in (*PIP_FILES, *([named] if named else []))])
    lines = dict(settings["global"]) if settings.has_section("global") else {}
    lines.update({key: environment[name] for name, key in PIP_VARIABLES.items() if name in environment})
    lines.pop("find-links", None)  # a folder of this machine
    lines["cert"] = CA_INSIDE
    return "[global]\n" + "".join(f"{key} = {value}\n" for key, value in sorted(lines.items()))
