"""Names, nodes, versions and ports: what a user may ask for."""

from __future__ import annotations

import json
import random
import socket
from pathlib import Path

import pytest

from kuberay_op_local import ports, versions
from kuberay_op_local.errors import LocalError
from kuberay_op_local.spec import Nodes, check_name


@pytest.mark.parametrize("name", ["a", "default", "a-1", "0", "x" * 40])
def test_a_good_name_is_taken(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a_b", "../up", "a/b", "x" * 41, "a\n"])
def test_a_bad_name_is_refused_with_the_rule(name: str) -> None:
    with pytest.raises(LocalError, match="lower-case letters"):
        check_name(name)


def test_nodes_are_read_and_written_alike() -> None:
    assert Nodes.parse("kwok:50") == Nodes("kwok", 50)
    assert Nodes.parse("none") == Nodes()
    assert Nodes.parse("real") == Nodes("real", 1)
    assert [str(Nodes.parse(text)) for text in ("none", "kwok:3", "real")] == ["none", "kwok:3", "real"]


@pytest.mark.parametrize(
    "text", ["kwok", "kwok:", "kwok:0", "kwok:-1", "kwok:x", "kwok:99999", "none:1", "real:2", "", "minikube"]
)
def test_bad_nodes_are_refused_with_what_is_known(text: str) -> None:
    with pytest.raises(LocalError, match=r"use kwok:COUNT \(1 to 5000\), real or none"):
        Nodes.parse(text)


@pytest.mark.parametrize("text", ["1.36.3", "v1.36.3"])
def test_a_version_may_begin_with_v(text: str) -> None:
    assert versions.check_kubernetes(text) == "1.36.3"


@pytest.mark.parametrize("text", ["abc", "1.36", "1.36.3-rc.0", "1.36.x", "", "9.9.9", "1.36.3 "])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(LocalError, match="is not a Kubernetes version; give all three numbers"):
        versions.check_kubernetes(text)


def test_a_port_somebody_listens_on_is_not_free() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        taken = listener.getsockname()[1]
        assert not ports.is_free(taken)
    assert ports.is_free(taken)


def test_chosen_ports_differ_and_keep_away_from_others() -> None:
    names = [f"n{i}" for i in range(50)]
    first = ports.choose(names, avoid=(), rng=random.SystemRandom())
    second = ports.choose(names, avoid=set(first.values()), rng=random.SystemRandom())
    assert len(set(first.values())) == 50
    assert not set(first.values()) & set(second.values())
    assert set(first.values()) <= set(ports.RANGE)


def test_when_no_port_is_left_it_says_so() -> None:
    with pytest.raises(LocalError, match="no free port for etcd"):
        ports.choose(["etcd"], avoid=set(ports.RANGE), rng=random.SystemRandom())


def test_ports_of_other_clusters_are_reserved_also_when_a_file_is_broken(tmp_path: Path) -> None:
    for name, text in (("a", json.dumps({"ports": {"etcd": 1, "x": 2}})), ("b", "{"), ("c", "{}")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cluster.json").write_text(text)
    assert ports.reserved(tmp_path) == {1, 2}
