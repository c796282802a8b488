"""Images on paper: recipes, keys, what a build is lent, and what is said when one cannot be built."""

from __future__ import annotations

import configparser
import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
from click.testing import CliRunner

from kuberay_op_local.cli import local
from kuberay_op_local.errors import LocalError
from kuberay_op_local.images import build, recipes
from kuberay_op_local.real import packages

ROOT: Final = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small checkout with all Dockerfiles."""
    for name in recipes.RECIPES:
        folder = tmp_path / "images" / name
        folder.mkdir(parents=True)
        (folder / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "kuberay_op").mkdir()
    (tmp_path / "kuberay_op" / "a.py").write_text("a = 1\n")
    (tmp_path / "plugins" / "p" / "tests").mkdir(parents=True)
    (tmp_path / "plugins" / "p" / "tests" / "test_p.py").write_text("")
    return tmp_path


def key(name: str, checkout: Path, **arguments: str) -> str:
    recipe = recipes.recipe(name)
    return recipes.key(recipe, checkout, recipes.arguments(recipe, arguments))


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_every_recipe_has_its_dockerfile_and_its_context(name: str) -> None:
    recipe = recipes.recipe(name)
    text = (ROOT / "images" / name / "Dockerfile").read_text()
    for argument in recipe.arguments:
        assert f"ARG {argument}=" in text
    assert f"ARG {'DEBIAN' if recipe.parent is None else 'BASE'}=" in text
    if recipe.context:
        ignored = (ROOT / "images" / name / "Dockerfile.dockerignore").read_text().splitlines()
        allowed = {line[1:] for line in ignored if line.startswith("!")}
        assert allowed == set(recipe.context), "Docker and the local builder must see the same files"


@pytest.mark.parametrize("name", [name for name in recipes.RECIPES if name != "base"])
def test_images_do_not_run_as_root(name: str) -> None:
    users = [
        line
        for line in (ROOT / "images" / name / "Dockerfile").read_text().splitlines()
        if "USER" in line[:4]
    ]
    assert len(users) == 1
    assert not users[0].startswith("USER 0")


def test_an_image_is_built_again_only_when_its_content_changes(checkout: Path) -> None:
    before = key("operator", checkout)
    (checkout / "README.txt").write_text("not part of it")
    (checkout / "kuberay_op" / "__pycache__").mkdir()
    (checkout / "kuberay_op" / "__pycache__" / "a.pyc").write_bytes(b"")
    (checkout / "plugins" / "p" / "tests" / "test_p.py").write_text("changed")
    assert key("operator", checkout) == before
    (checkout / "kuberay_op" / "a.py").write_text("a = 2\n")
    assert key("operator", checkout) != before


def test_the_key_knows_arguments_and_the_parent(checkout: Path) -> None:
    before = key("ray", checkout)
    assert key("ray", checkout, RAY_VERSION="2.52.0") != before
    (checkout / "images" / "base" / "Dockerfile").write_text("FROM scratch\n# changed\n")
    assert key("ray", checkout) != before


def test_the_checkout_is_found_from_inside_it(checkout: Path) -> None:
    assert recipes.checkout(checkout / "kuberay_op") == checkout
    with pytest.raises(LocalError, match="images are built from a checkout of kuberay-op"):
        recipes.checkout(Path("/usr"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("nothing",),
            "there is no image 'nothing' to build; there are base, ray, redis, operator, submitter",
        ),
        (("ray", "--arg", "RAY_VERSION=new"), "'new' is not a version of Ray; give all three numbers"),
        (("base", "--arg", "A=1"), "the image 'base' takes no argument 'A'; it takes: none"),
        (("base", "--arg", "A"), "--arg 'A' is not KEY=VALUE"),
        (("base", "--tag", "a b"), "'a b' cannot be the tag of an image"),
        (("base",), "building images needs root"),
    ],
)
def test_bad_input_is_one_sentence(
    home: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], sentence: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    result = CliRunner().invoke(local, ["build", *arguments, "--source", str(checkout)])
    assert result.exit_code in {1, 2}
    assert sentence in result.stderr


def test_loading_needs_one_image(home: Path) -> None:
    result = CliRunner().invoke(local, ["load"])
    assert result.exit_code == 2
    assert "give an IMAGE (an archive or a name) or --build NAME" in result.stderr


def test_a_full_disk_is_said_before_a_build(
    home: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(packages, "ensure", lambda *_, **__: None)
    monkeypatch.setattr(build, "SPACE_MEGABYTES", 1 << 40)
    with pytest.raises(LocalError, match=r"MB left and \d+ MB are needed; free some space"):
        build.build("base", source=checkout, given={}, say=lambda _: None)


def test_a_failed_build_shows_its_end_and_what_to_try() -> None:
    text = build.build_failure("building ray", ["one", "E: no space left on device"])
    assert text.startswith("building ray failed\n")
    assert "    E: no space left on device\n  try: free some disk space" in text


def test_a_build_is_lent_the_index_but_no_folder_of_the_machine(tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex-url = https://mine.invalid/simple\nfind-links = /opt/wheels\n")
    text = build.pip_settings({"PIP_CONFIG_FILE": str(file), "PIP_EXTRA_INDEX_URL": "https://more.invalid"})
    settings = configparser.ConfigParser(interpolation=None)
    settings.read_string(text)
    assert settings["global"]["index-url"] == "https://mine.invalid/simple"
    assert settings["global"]["extra-index-url"] == "https://more.invalid"
    assert settings["global"]["cert"] == build.CA_INSIDE
    assert "find-links" not in settings["global"]


@pytest.fixture(scope="module")
def pinned() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pinned", ROOT / "images" / "pinned.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_lock_is_read_with_its_hashes(pinned: ModuleType) -> None:
    text = "# made by\na-b==1.0 ; python_version < '4' \\\n    --hash=sha256:1 \\\n    --hash=sha256:2\n"
    assert pinned.read_lock(f"{text}c[d]==2\n") == {
        "a-b": "a-b==1.0 ; python_version < '4'  --hash=sha256:1  --hash=sha256:2",
        "c": "c[d]==2",
    }


def test_the_real_lock_has_a_hash_for_everything(pinned: ModuleType) -> None:
    entries = pinned.read_lock((ROOT / "requirements.lock").read_text())
    assert {"aiohttp", "hatchling", "orjson"} <= set(entries)
    assert all("--hash=sha256:" in entry for entry in entries.values())


def test_what_our_packages_need_leaves_our_own_out(pinned: ModuleType) -> None:
    needed = pinned.requirements((str(ROOT), str(ROOT / "local")))
    assert any(line.startswith("aiohttp") for line in needed)
    assert not any(line.startswith("kuberay") for line in needed)
