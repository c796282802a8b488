"""Argument lists: pure functions of the specification."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import yaml

from kuberay_op_local import components, nodes
from kuberay_op_local.errors import LocalError
from kuberay_op_local.paths import Layout
from kuberay_op_local.spec import Nodes, Spec

LAYOUT: Final = Layout(Path("/state/c"))
SPEC: Final = Spec(
    name="c",
    kubernetes="1.36.3",
    nodes=Nodes("kwok", 2),
    components=components.ALL,
    programs={},
    ports={name: 20000 + i for i, name in enumerate(p for group in components.PORTS.values() for p in group)},
    extra_args={"kube-apiserver": ["--feature-gates=A=true"]},
)


@pytest.mark.parametrize("component", components.ALL)
def test_every_argument_is_a_flag_given_once(component: str) -> None:
    arguments = components.arguments(component, SPEC, LAYOUT)
    flags = [argument.partition("=")[0] for argument in arguments]
    assert all(flag.startswith("--") for flag in flags)
    assert len(flags) == len(set(flags))


@pytest.mark.parametrize("component", components.ALL)
def test_a_component_listens_on_its_own_ports_on_loopback(component: str) -> None:
    text = " ".join(components.arguments(component, SPEC, LAYOUT))
    for listener in components.PORTS[component]:
        assert str(SPEC.ports[listener]) in text
    assert "0.0.0.0" not in text


def test_the_users_arguments_come_last_where_they_win() -> None:
    assert components.arguments("kube-apiserver", SPEC, LAYOUT)[-1] == "--feature-gates=A=true"
    assert "--feature-gates=A=true" not in components.arguments("etcd", SPEC, LAYOUT)


def test_etcd_lets_nobody_in_without_a_certificate() -> None:
    arguments = components.arguments("etcd", SPEC, LAYOUT)
    assert "--client-cert-auth=true" in arguments
    assert "--peer-client-cert-auth=true" in arguments
    assert not any("http://" in argument for argument in arguments)


def test_components_that_elect_leaders_do_not() -> None:
    for component in ("kube-controller-manager", "kube-scheduler"):
        assert "--leader-elect=false" in components.arguments(component, SPEC, LAYOUT)


def test_a_kwok_node_allows_a_thousand_pods() -> None:
    node = nodes.manifest(3, kubernetes="1.36.3")
    assert node["metadata"]["name"] == "kwok-3"
    assert node["status"]["allocatable"]["pods"] == "1000"
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.3"


def test_the_stages_are_valid_yaml_with_names_of_their_own() -> None:
    stages = list(yaml.safe_load_all(nodes.stages()))
    names = [stage["metadata"]["name"] for stage in stages]
    assert len(names) == len(set(names)) == 5
    assert {stage["kind"] for stage in stages} == {"Stage"}


def test_the_specification_survives_its_file(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    assert Spec.load(file) is None
    SPEC.save(file)
    assert Spec.load(file) == SPEC
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.json"]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"nodes": {}, "components": [], "odd": 1}'])
def test_a_broken_file_is_one_sentence_with_the_way_out(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine" / "cluster.json"
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(LocalError, match=r"cannot be read .* `kuberay-op local down --name mine` removes"):
        Spec.load(file)
