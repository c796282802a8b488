"""A real node on its way up: what it needs first, how its parts are started, when they are ready."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import httpx
import psutil

from kuberay_op_local import certs, components
from kuberay_op_local.errors import LocalError
from kuberay_op_local.paths import Layout
from kuberay_op_local.real import files, kernel, packages, parts, world
from kuberay_op_local.real.world import World
from kuberay_op_local.run import Say
from kuberay_op_local.spec import Spec

#: Images are unpacked in the cluster's folder; Ray's alone takes 3 GB there.
SPACE_MEGABYTES: Final = 4000
PROBE_SECONDS: Final = 2.0

#: Started before the API server answers, since it needs no cluster.
EARLY: Final = components.CONTAINERD

#: Programs that come from Debian packages, by component.
SYSTEM_PROGRAMS: Final = {
    components.NAMESPACES: "unshare",
    components.SLIRP: "slirp4netns",
    components.CONTAINERD: "containerd",
}


def require(say: Say) -> None:
    """What must be so before a real node can be made; installs packages that are missing."""
    packages.need_root("--node real")
    packages.ensure(packages.FOR_NODE, say=say)
    if not kernel.CGROUPS.is_dir():
        raise LocalError(f"--node real needs cgroups, and there are none at {kernel.CGROUPS}")


def write_files(spec: Spec, layout: Layout) -> None:
    """Certificates of the node and the configuration of its parts."""
    authority = certs.Authority.load(layout.pki, "ca")
    if not (layout.pki / "kubelet.crt").exists():
        authority.server("kubelet", [spec.host, components.REAL_NODE_NAME]).save(layout.pki, "kubelet")
    node = layout.node
    (node / "cni").mkdir(mode=0o700, parents=True, exist_ok=True)
    (node / "containerd.toml").write_text(files.containerd(layout))
    (node / "cni" / "10-kuberay-op.conflist").write_text(files.cni())
    (node / "kubelet.yaml").write_text(files.kubelet(layout))
    kubeconfig = str(layout.component_kubeconfig(components.COREDNS))
    (node / "Corefile").write_text(files.corefile(spec, kubeconfig=kubeconfig))


def open_world(
    spec: Spec, layout: Layout, running: dict[str, psutil.Process], spawn: Callable[[str], psutil.Process]
) -> World:
    """Make the namespaces with their mounts and network, or find them as they are."""
    kernel.prepare(layout)
    if components.NAMESPACES not in running:
        running[components.NAMESPACES] = spawn(components.NAMESPACES)
    inside = World.of(running[components.NAMESPACES])
    if components.SLIRP not in running:
        running[components.SLIRP] = spawn(components.SLIRP)
    inside.set_up_mounts(layout)
    inside.set_up_network(spec, layout)
    return inside


def command(
    component: str, spec: Spec, layout: Layout, running: Mapping[str, psutil.Process]
) -> tuple[Path, list[str]]:
    """The program and the arguments that start a component of a cluster with a real node, inside."""
    program = spec.programs[component]
    if component == components.NAMESPACES:
        return Path(program), world.holder_arguments()
    inside = World.of(running[components.NAMESPACES])
    if component == components.SLIRP:
        return Path(program), world.slirp_arguments(inside)
    if component in components.REAL_NODE:
        arguments = parts.arguments(component, spec, layout)
    else:
        arguments = components.arguments(component, spec, layout)
    whole = component in {components.CONTAINERD, components.KUBELET}
    enter = inside.enter(whole=whole)
    return Path(enter[0]), [*enter[1:], "/usr/bin/env", f"PATH={packages.PATH}", program, *arguments]


def ready(component: str, spec: Spec, inside: World | None) -> bool:
    """Whether a part of the node does its work; the kubelet's is asked of the API server, by the caller."""
    if component == components.CONTAINERD:
        return inside is not None and _listens(inside.containerd_socket)
    port = {components.COREDNS: files.DNS_READY_PORT, components.KUBE_PROXY: files.PROXY_HEALTH_PORT}.get(
        component
    )
    if port is None:
        return inside is not None
    path = "ready" if component == components.COREDNS else "healthz"
    answer = httpx.get(f"http://{spec.host}:{port}/{path}", timeout=PROBE_SECONDS, trust_env=False)
    return answer.status_code == httpx.codes.OK


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(PROBE_SECONDS)
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True
