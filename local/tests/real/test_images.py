"""The images as they come out: small, without rights, without a trace of the machine, the same twice."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any, Final

import pytest

from kuberay_op_local.images import build, debian, recipes
from kuberay_op_local.images.build import Image

pytestmark = [pytest.mark.real_node, pytest.mark.timeout(1800)]

ROOT: Final = Path(__file__).parents[3]
MEGABYTES: Final = 100


def made(name: str, source: Path, tag: str | None = None) -> Image:
    return build.build(name, source=source, given={}, tag=tag, say=lambda _: None)


@pytest.fixture(scope="module")
def source(able: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what images are made of: nobody works on it meanwhile."""
    folder = tmp_path_factory.mktemp("source")
    for name in recipes.RECIPES:
        for _, path in recipes.files(recipes.recipe(name), ROOT):
            target = folder / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    return folder


@pytest.fixture(scope="module")
def operator(source: Path) -> Path:
    return Path(made("operator", source).archive)


def manifest(tar: tarfile.TarFile) -> dict[str, Any]:
    (found,) = read(tar, "manifest.json")
    assert isinstance(found, dict)
    return found


def read(tar: tarfile.TarFile, name: str) -> Any:
    file = tar.extractfile(name)
    assert file is not None
    return json.load(file)


def test_the_operator_is_small_and_has_no_rights(operator: Path) -> None:
    compressed = 0
    with tarfile.open(operator) as tar:
        held = manifest(tar)
        config = read(tar, held["Config"])["config"]
        for layer in held["Layers"]:
            file = tar.extractfile(layer)
            assert file is not None
            compressed += len(gzip.compress(file.read(), compresslevel=6))
    assert compressed < MEGABYTES * 10**6
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["/manager"]


def test_no_trace_of_the_machine_is_in_an_image(operator: Path) -> None:
    """Neither the mirror's address nor what was lent to the build."""
    address = debian.mirror()
    words = [address.partition("//")[2].partition("/")[0].encode()] if address else []
    public = {b"deb.debian.org", b"security.debian.org"}
    with tarfile.open(operator) as tar:
        held = manifest(tar)
        history = json.dumps(read(tar, held["Config"])).encode()
        for name in held["Layers"]:
            layer = tar.extractfile(name)
            assert layer is not None
            with tarfile.open(fileobj=layer) as inner:
                for member in inner:
                    assert "secrets/" not in member.name or member.name.endswith((".py", ".pyc"))
                    assert not member.name.startswith(("etc/pip.conf", "etc/apt/sources.list.d/"))
                    assert member.mtime == 0
                    if member.isfile() and member.name.startswith("etc/"):
                        content = inner.extractfile(member)
                        assert content is not None
                        text = content.read()
                        assert not any(word in text for word in words if word not in public), member.name
    assert not any(word in history for word in words if word not in public)


def test_nothing_is_built_twice(operator: Path, source: Path) -> None:
    before = operator.stat().st_mtime_ns
    assert made("operator", source).archive == str(operator)
    assert operator.stat().st_mtime_ns == before


def test_two_builds_give_one_image(source: Path) -> None:
    first, second = (made("submitter", source, tag) for tag in ("one", "two"))
    assert first.archive != second.archive
    assert first.id == second.id


@pytest.mark.slow
def test_two_builds_from_nothing_give_one_image(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identities = set()
    for attempt in ("one", "two"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / attempt))
        identities.add(made("operator", source).id)
    assert len(identities) == 1
