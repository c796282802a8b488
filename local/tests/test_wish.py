"""From what a user asks for to what a cluster shall be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kuberay_op_local import components, wish
from kuberay_op_local.errors import LocalError
from kuberay_op_local.spec import Nodes, Spec


@pytest.fixture
def old(home: Path) -> Spec:
    """A cluster whose programs are in a folder of the user."""
    programs = home / "mine"
    programs.mkdir()
    for tool in (*components.ALL, "kubectl"):
        (programs / tool).write_text("#!/bin/sh\necho Kubernetes v1.35.1\n")
        (programs / tool).chmod(0o755)
    return wish.new_spec("a", wish.Wish(folder=programs), lambda _: None)


def change(old: Spec, **options: object) -> Spec:
    return wish.changed_spec(old, wish.Wish(**options), lambda _: None)  # type: ignore[arg-type] # as given


def test_a_new_cluster_is_a_control_plane_of_the_folders_version(old: Spec) -> None:
    assert old.kubernetes == "1.35.1"
    assert old.components == components.CONTROL_PLANE
    assert set(old.programs) == {*components.CONTROL_PLANE, "kubectl"}
    assert len(set(old.ports.values())) == len(old.ports) == 5


def test_no_wish_changes_nothing(old: Spec) -> None:
    assert change(old) == old


def test_the_same_wish_again_changes_nothing(old: Spec) -> None:
    again = change(
        old,
        node=Nodes(),
        kubernetes="v1.35.1",
        port=old.ports["kube-apiserver"],
        folder=Path(old.programs["etcd"]).parent,
        only=components.CONTROL_PLANE,
    )
    assert again == old


def test_kwok_comes_with_its_nodes_and_goes_with_them(old: Spec) -> None:
    more = change(old, node=Nodes("kwok", 3))
    assert more.components == components.ALL
    assert more.programs["kwok"] == str(Path(old.programs["etcd"]).parent / "kwok")
    assert more.ports == old.ports
    assert change(more, only=components.CONTROL_PLANE) == more
    assert change(more, node=Nodes()).components == components.CONTROL_PLANE


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kubernetes": "1.36.3"}, "has Kubernetes 1.35.1, not 1.36.3;"),
        ({"port": 1}, ", not 1; run `kuberay-op local down --name a` first, or choose another --name"),
        ({"folder": Path("/elsewhere")}, "not /elsewhere;"),
        ({"only": ("etcd",)}, "has components .*, not "),
        ({"extra_args": {"etcd": ["--x"]}}, "has extra arguments {}, not "),
    ],
)
def test_what_is_fixed_is_refused_by_name(old: Spec, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(LocalError, match=sentence):
        change(old, **options)


def test_a_program_that_vanished_is_looked_for_again(old: Spec) -> None:
    lost = replace(old, programs={**old.programs, "etcd": "/gone/etcd"})
    assert change(lost) == old
