"""A real node on paper: arguments, files and objects, and what is said when it cannot be."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
import yaml

from kuberay_op_local import components, wish
from kuberay_op_local.errors import LocalError
from kuberay_op_local.paths import Layout
from kuberay_op_local.real import archive, files, images, kernel, node, objects, packages, parts, world
from kuberay_op_local.spec import Nodes, Spec

LAYOUT: Final = Layout(Path("/state/c"))
SPEC: Final = Spec(
    name="c",
    kubernetes="1.36.3",
    nodes=Nodes("real", 1),
    components=wish.with_nodes(components.CONTROL_PLANE, Nodes("real", 1)),
    programs={},
    ports={name: 20000 + i for i, name in enumerate(p for group in components.PORTS.values() for p in group)},
    extra_args={"kubelet": ["--v=4"]},
    host="10.213.0.2",
    small_requests=True,
)


def test_the_world_comes_first_and_the_node_last() -> None:
    assert SPEC.components[:2] == ("namespaces", "slirp4netns")
    assert SPEC.components[-4:] == ("containerd", "kubelet", "kube-proxy", "coredns")
    assert wish.with_nodes(SPEC.components, Nodes()) == components.CONTROL_PLANE
    assert wish.with_nodes(SPEC.components, Nodes("kwok", 1)) == components.ALL


@pytest.mark.parametrize("component", components.CONTROL_PLANE)
def test_the_control_plane_listens_where_the_node_is(component: str) -> None:
    text = " ".join(components.arguments(component, SPEC, LAYOUT))
    assert SPEC.host in text
    assert "127.0.0.1" not in text


def test_the_api_server_reaches_the_kubelet_by_address() -> None:
    arguments = components.arguments("kube-apiserver", SPEC, LAYOUT)
    assert "--kubelet-preferred-address-types=InternalIP" in arguments
    assert "--endpoint-reconciler-type=none" not in arguments
    assert not any("feature-gates" in argument for argument in arguments)


@pytest.mark.parametrize("component", components.REAL_NODE)
def test_every_argument_of_the_node_is_a_flag_given_once(component: str) -> None:
    flags = [argument.partition("=")[0] for argument in parts.arguments(component, SPEC, LAYOUT)]
    assert all(flag.startswith("-") for flag in flags)
    assert len(flags) == len(set(flags))


def test_the_users_arguments_come_last() -> None:
    assert parts.arguments("kubelet", SPEC, LAYOUT)[-1] == "--v=4"


def test_all_files_of_the_node_lie_in_the_clusters_folder_or_its_own_run() -> None:
    settings = tomllib.loads(files.containerd(LAYOUT))
    assert settings["root"] == "/state/c/node/containerd"
    assert settings["plugins"]["io.containerd.internal.v1.opt"]["path"] == "/state/c/node/opt"
    assert settings["state"].startswith("/run/")
    kubelet = yaml.safe_load(files.kubelet(LAYOUT))
    assert kubelet["volumePluginDir"].startswith("/state/c/")
    assert kubelet["cgroupRoot"] == f"/{kernel.cgroup(LAYOUT)}"
    assert kubelet["authentication"]["anonymous"] == {"enabled": False}
    (bridge, portmap) = json.loads(files.cni())["plugins"]
    assert (bridge["bridge"], portmap["type"]) == (world.BRIDGE, "portmap")
    assert bridge["ipam"]["dataDir"].startswith("/run/")


def test_coredns_answers_the_clusters_names_and_passes_the_others_on() -> None:
    text = files.corefile(SPEC, kubeconfig="/state/c/k.yaml")
    assert "kubeconfig /state/c/k.yaml kuberay-op-c" in text
    assert f"forward . {world.OUTSIDE_DNS}" in text
    assert text.count("{") == text.count("}")


def test_two_clusters_of_one_name_in_two_places_do_not_meet() -> None:
    assert kernel.cgroup(LAYOUT) != kernel.cgroup(Layout(Path("/elsewhere/c")))
    assert len(f"kr{kernel.tag(LAYOUT)}") < 16, "the kernel allows no longer names for links"


def test_every_cluster_gets_addresses_of_its_own() -> None:
    assert world.choose_host([]) == "10.213.0.2"
    assert world.choose_host(["10.213.0.1", "192.168.1.7"]) == "10.213.0.6"
    assert world.choose_host(["10.213.0.6", "10.213.0.2"]) == "10.213.0.10"


def test_no_address_left_is_one_sentence() -> None:
    every = [str(block[1]) for block in world.LINKS.subnets(new_prefix=30)]
    with pytest.raises(LocalError, match=r"all addresses of 10\.213\.0\.0/16 are taken"):
        world.choose_host(every)


def test_dns_is_a_service_with_an_address_of_the_bridge() -> None:
    documents = list(yaml.safe_load_all(objects.manifests(SPEC)))
    by_kind = {document["kind"]: document for document in documents}
    assert by_kind["Service"]["spec"]["clusterIP"] == world.DNS_SERVICE
    assert by_kind["EndpointSlice"]["endpoints"][0]["addresses"] == [world.BRIDGE_ADDRESS]
    assert by_kind["MutatingAdmissionPolicyBinding"]["spec"]["policyName"] == objects.POLICY


@pytest.mark.parametrize(("kubernetes", "version"), [("1.36.3", "v1"), ("1.34.4", "v1beta1")])
def test_the_policy_speaks_the_version_the_api_server_does(kubernetes: str, version: str) -> None:
    for document in objects.small_requests(kubernetes):
        assert document["apiVersion"] == f"admissionregistration.k8s.io/{version}"


def test_a_small_image_is_the_same_every_time(tmp_path: Path) -> None:
    program = tmp_path / "wait"
    program.write_bytes(b"program")
    first, second = (archive.one_program(program, ["-P"], tag="a/b:1") for _ in range(2))
    assert first == second
    with tarfile.open(fileobj=io.BytesIO(first)) as tar:
        (manifest,) = json.loads(tar.extractfile("manifest.json").read())  # type: ignore[union-attr] # it is a file
        config = json.loads(tar.extractfile(manifest["Config"]).read())  # type: ignore[union-attr] # the same
        layer = tar.extractfile(manifest["Layers"][0]).read()  # type: ignore[union-attr] # the same
    assert manifest["RepoTags"] == ["a/b:1"]
    assert config["config"]["Entrypoint"] == ["/wait", "-P"]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("redis", "docker.io/library/redis:latest"),
        ("rayproject/ray:2.60.0", "docker.io/rayproject/ray:2.60.0"),
        ("quay.io/a/b:1", "quay.io/a/b:1"),
        ("localhost/a", "localhost/a:latest"),
        ("host:5000/a@sha256:12", "host:5000/a@sha256:12"),
    ],
)
def test_short_names_of_images_are_completed(short: str, full: str) -> None:
    assert images.full_name(short) == full


# ── what must be there first ──


@pytest.fixture
def no_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.fixture
def system(script: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """A system that has only the programs a test makes."""
    folder = script("sh", ":").parent
    monkeypatch.setattr(packages, "PATH", str(folder))
    return script


@pytest.mark.usefixtures("no_root")
def test_without_root_it_is_one_sentence() -> None:
    with pytest.raises(LocalError, match=r"^--node real needs root, .*; run it with sudo$"):
        node.require(lambda _: None)


WANTED: Final = {"one": "package-a", "two": "package-a", "three": "package-b"}


def test_nothing_is_installed_when_all_is_there(system: Callable[[str, str], Path]) -> None:
    for name in WANTED:
        system(name, ":")
    said: list[str] = []
    packages.ensure(WANTED, say=said.append)
    assert said == []


def test_missing_packages_are_installed_after_saying_so(
    system: Callable[[str, str], Path], tmp_path: Path
) -> None:
    system("three", ":")
    folder = tmp_path / "scripts"
    system(
        "apt-get",
        f'echo "$@" >> {tmp_path}/calls; for p in one two; do /bin/cp {folder}/three {folder}/$p; done',
    )
    said: list[str] = []
    packages.ensure(WANTED, say=said.append)
    assert said == ["installing Debian packages: package-a"]
    assert (tmp_path / "calls").read_text() == "--quiet install --yes --no-install-recommends package-a\n"


def test_a_package_that_cannot_be_installed_is_one_sentence(system: Callable[[str, str], Path]) -> None:
    system("apt-get", 'echo "E: Unable to locate package" >&2; exit 100')
    with pytest.raises(LocalError) as failure:
        packages.ensure(WANTED, say=lambda _: None)
    assert str(failure.value) == (
        "the Debian packages package-a package-b cannot be installed (E: Unable to locate package); install "
        "them with `apt-get install package-a package-b` and run the command again"
    )


def test_without_apt_the_missing_programs_are_named(system: Callable[[str, str], Path]) -> None:
    system("three", ":")
    with pytest.raises(
        LocalError, match=r"no apt-get to install them: one, two; install what your system calls"
    ):
        packages.ensure(WANTED, say=lambda _: None)


@pytest.fixture
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which a real node could be made, with 2 cores."""
    monkeypatch.setattr(node, "require", lambda _: None)
    monkeypatch.setattr(node, "cores", lambda: 2)
    monkeypatch.setattr(packages, "path_of", lambda program: Path("/usr/bin") / program)


def settled(home: Path, said: list[str], *, version: str = "1.36.3", small: bool | None = None) -> Spec:
    programs = home / "mine"
    programs.mkdir(exist_ok=True)
    for tool in (*components.CONTROL_PLANE, *components.REAL_NODE, "kubectl"):
        (programs / tool).write_text(f"#!/bin/sh\necho Kubernetes v{version}\n")
        (programs / tool).chmod(0o755)
    asked = wish.Wish(node=Nodes("real", 1), folder=programs, kubernetes=version, small_requests=small)
    return wish.new_spec("a", asked, said.append)


@pytest.mark.usefixtures("able")
def test_small_machines_lower_requests_and_say_so(home: Path) -> None:
    said: list[str] = []
    assert settled(home, said).small_requests
    assert said == [objects.said(2)]
    assert "--full-requests" in said[0]


@pytest.mark.usefixtures("able")
def test_who_asks_gets_it_without_a_word(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    assert not settled(home, said, small=False).small_requests
    monkeypatch.setattr(node, "cores", lambda: 64)
    assert settled(home, said, small=True).small_requests
    assert not settled(home, said).small_requests
    assert said == []


@pytest.mark.usefixtures("able")
def test_an_old_kubernetes_cannot_lower_requests(home: Path) -> None:
    assert not settled(home, [], version="1.33.1").small_requests
    with pytest.raises(LocalError, match=r"--small-requests needs Kubernetes 1\.34 or later, not 1\.33\.1"):
        settled(home, [], version="1.33.1", small=True)


@pytest.mark.usefixtures("able")
def test_a_cluster_cannot_move_to_a_real_node(home: Path) -> None:
    real = settled(home, [])
    with pytest.raises(LocalError, match=r"has nodes real, and a real node lives in a network of its own"):
        wish.changed_spec(real, wish.Wish(node=Nodes("kwok", 1)), lambda _: None)
    assert wish.changed_spec(real, wish.Wish(node=Nodes("real", 1)), lambda _: None) == real
