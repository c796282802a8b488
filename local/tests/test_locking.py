"""Two commands on one cluster: one waits, and what it waited for may be gone."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kuberay_op_local import paths
from kuberay_op_local.errors import LocalError


def test_a_missing_folder_is_made_or_reported(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with paths.locked(folder, create=False) as exists:
        assert not exists
        assert not folder.exists()
    with paths.locked(folder) as exists:
        assert exists
        assert folder.stat().st_mode & 0o777 == 0o700


def test_the_second_waits_for_the_first_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "PATIENCE_SECONDS", 0.0)
    folder = tmp_path / "c"
    order: list[str] = []
    told = threading.Event()

    def second() -> None:
        with paths.locked(folder, waiting=told.set):
            order.append("second")

    with paths.locked(folder):
        thread = threading.Thread(target=second)
        thread.start()
        assert told.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


@pytest.mark.parametrize("create", [True, False])
def test_a_folder_removed_by_the_holder_is_not_mistaken_for_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, create: bool
) -> None:
    monkeypatch.setattr(paths, "PATIENCE_SECONDS", 0.0)
    folder = tmp_path / "c"
    told = threading.Event()
    answers: list[tuple[bool, bool]] = []

    def second() -> None:
        with paths.locked(folder, create=create, waiting=told.set) as exists:
            answers.append((exists, folder.exists()))

    with paths.locked(folder):
        thread = threading.Thread(target=second)
        thread.start()
        assert told.wait(10)
        folder.rmdir()
    thread.join(10)
    assert answers == [(create, create)]


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(LocalError, match=r"cannot create the folder .*Not a directory"),
        paths.locked(tmp_path / "file" / "c"),
    ):
        pass


def test_a_disk_that_is_too_full_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="MB are needed; free some space"):
        paths.check_space(tmp_path, 1 << 40)
