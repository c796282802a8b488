"""From what a user asks for to what a cluster shall be."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kuberay_op_local import binaries, components, paths, ports, versions
from kuberay_op_local.errors import LocalError
from kuberay_op_local.real import node, objects, packages, world
from kuberay_op_local.run import Say
from kuberay_op_local.spec import LOOPBACK, Nodes, Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The options of ``up``; None where the user said nothing."""

    node: Nodes | None = None
    kubernetes: str | None = None
    port: int | None = None
    folder: Path | None = None
    only: tuple[str, ...] | None = None
    extra_args: Mapping[str, list[str]] | None = None
    make: bool = True
    #: Whether Pods on a real node are scheduled as if they asked for little; None: on small machines.
    small_requests: bool | None = None


def new_spec(name: str, wish: Wish, say: Say) -> Spec:
    """A new cluster: find its programs, choose its ports."""
    nodes = wish.node or Nodes()
    chosen = with_nodes(wish.only or components.CONTROL_PLANE, nodes)
    taken = _ports(wish.port)
    version = versions.check_kubernetes(wish.kubernetes or versions.KUBERNETES)
    small = _small_requests(wish, nodes, version, say)
    if nodes.real:
        node.require(say)
    programs = _programs([*chosen, "kubectl"], version, wish.folder, say, make=wish.make)
    server = programs[components.API_SERVER]
    ours = server.is_relative_to(paths.cache_dir())
    actual = version if ours else binaries.version_of(server)
    if wish.kubernetes is not None and actual != version:
        raise LocalError(f"{server} is Kubernetes {actual}, not {version}")
    return Spec(
        name=name,
        kubernetes=actual,
        nodes=nodes,
        components=chosen,
        programs={tool: str(path) for tool, path in programs.items()},
        ports=taken,
        extra_args=dict(wish.extra_args or {}),
        host=world.choose_host(world.addresses_in_use()) if nodes.real else LOOPBACK,
        small_requests=small,
    )


def changed_spec(old: Spec, wish: Wish, say: Say) -> Spec:
    """A cluster that exists: its nodes can change, the rest must be as it is."""
    fixed: tuple[tuple[str, object, object], ...] = (
        ("Kubernetes", wish.kubernetes and versions.check_kubernetes(wish.kubernetes), old.kubernetes),
        ("port", wish.port, old.ports[components.API_SERVER]),
        ("programs from", wish.folder and str(wish.folder.absolute()), _folder(old)),
        ("components", wish.only and with_nodes(wish.only, Nodes()), with_nodes(old.components, Nodes())),
        ("extra arguments", wish.extra_args, old.extra_args),
        ("small requests", wish.small_requests, old.small_requests),
    )
    for what, wanted, present in fixed:
        if wanted is not None and wanted != present:
            raise LocalError(
                f"cluster {old.name!r} has {what} {present}, not {wanted}; "
                f"run `kuberay-op local down --name {old.name}` first, or choose another --name"
            )
    nodes = wish.node or old.nodes
    if nodes.real != old.nodes.real:
        raise LocalError(
            f"cluster {old.name!r} has nodes {old.nodes}, and a real node lives in a network of its own: "
            f"run `kuberay-op local down --name {old.name}` first, or choose another --name"
        )
    if nodes.real:
        node.require(say)
    chosen = with_nodes(old.components, nodes)
    missing = [tool for tool in (*chosen, "kubectl") if not Path(old.programs.get(tool, "")).is_file()]
    folder = Path(_folder(old)) if missing and not _from_cache(old) else None
    found = _programs(missing, old.kubernetes, folder, say, make=wish.make)
    programs = {**old.programs, **{tool: str(path) for tool, path in found.items()}}
    return replace(old, nodes=nodes, components=chosen, programs=programs)


def with_nodes(chosen: Sequence[str], nodes: Nodes) -> tuple[str, ...]:
    """The components: the chosen ones, and those that belong to this kind of nodes."""
    of_nodes = {components.KWOK, *components.REAL_WORLD, *components.REAL_NODE}
    others = tuple(component for component in chosen if component not in of_nodes)
    if nodes.real:
        return (*components.REAL_WORLD, *others, *components.REAL_NODE)
    return (*others, components.KWOK) if nodes.kind == "kwok" else others


def _programs(
    tools: Sequence[str], kubernetes: str, folder: Path | None, say: Say, *, make: bool
) -> dict[str, Path]:
    """The path of each program: some parts of a real node come with the system."""
    system = {
        tool: packages.path_of(node.SYSTEM_PROGRAMS[tool]) for tool in tools if tool in node.SYSTEM_PROGRAMS
    }
    ours = [tool for tool in tools if tool not in system]
    return system | binaries.resolve(ours, kubernetes=kubernetes, folder=folder, say=say, make=make)


def _small_requests(wish: Wish, nodes: Nodes, kubernetes: str, say: Say) -> bool:
    """Whether the requests of Pods are lowered; says so when nobody asked for it."""
    if not nodes.real:
        return False
    able = components.minor(kubernetes) >= components.MUTATING_POLICIES
    cores = node.cores()
    if wish.small_requests and not able:
        raise LocalError(
            f"--small-requests needs Kubernetes 1.{components.MUTATING_POLICIES} or later, not {kubernetes}"
        )
    if wish.small_requests is not None:
        return wish.small_requests
    small = able and cores < objects.ENOUGH_CORES
    if small:
        say(objects.said(cores))
    return small


def _folder(spec: Spec) -> str:
    return str(Path(spec.programs[components.API_SERVER]).parent)


def _from_cache(spec: Spec) -> bool:
    return Path(_folder(spec)).is_relative_to(paths.cache_dir())


def _ports(port: int | None) -> dict[str, int]:
    """A port for each listener, also of components that may come later."""
    if port is not None and not ports.is_free(port):
        raise LocalError(f"port {port} is taken by another program; choose a free one with --port")
    fixed = {} if port is None else {components.API_SERVER: port}
    names = [name for group in components.PORTS.values() for name in group if name not in fixed]
    avoid = ports.reserved(paths.clusters_dir()) | set(fixed.values())
    return {**fixed, **ports.choose(names, avoid=avoid, rng=random.SystemRandom())}
