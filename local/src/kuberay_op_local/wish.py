"""From what a user asks for to what a cluster shall be."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kuberay_op_local import binaries, components, paths, ports, versions
from kuberay_op_local.errors import LocalError
from kuberay_op_local.run import Say
from kuberay_op_local.spec import Nodes, Spec


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


def new_spec(name: str, wish: Wish, say: Say) -> Spec:
    """A new cluster: find its programs, choose its ports."""
    nodes = wish.node or Nodes()
    chosen = with_nodes(wish.only or components.CONTROL_PLANE, nodes)
    taken = _ports(wish.port)
    version = versions.check_kubernetes(wish.kubernetes or versions.KUBERNETES)
    programs = binaries.resolve(
        [*chosen, "kubectl"], kubernetes=version, folder=wish.folder, say=say, make=wish.make
    )
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
    )


def changed_spec(old: Spec, wish: Wish, say: Say) -> Spec:
    """A cluster that exists: its nodes can change, the rest must be as it is."""
    fixed: tuple[tuple[str, object, object], ...] = (
        ("Kubernetes", wish.kubernetes and versions.check_kubernetes(wish.kubernetes), old.kubernetes),
        ("port", wish.port, old.ports[components.API_SERVER]),
        ("programs from", wish.folder and str(wish.folder.absolute()), _folder(old)),
        ("components", wish.only and with_nodes(wish.only, Nodes()), with_nodes(old.components, Nodes())),
        ("extra arguments", wish.extra_args, old.extra_args),
    )
    for what, wanted, present in fixed:
        if wanted is not None and wanted != present:
            raise LocalError(
                f"cluster {old.name!r} has {what} {present}, not {wanted}; "
                f"run `kuberay-op local down --name {old.name}` first, or choose another --name"
            )
    nodes = wish.node or old.nodes
    chosen = with_nodes(old.components, nodes)
    missing = [tool for tool in (*chosen, "kubectl") if not Path(old.programs.get(tool, "")).is_file()]
    folder = Path(_folder(old)) if missing and not _from_cache(old) else None
    found = binaries.resolve(missing, kubernetes=old.kubernetes, folder=folder, say=say, make=wish.make)
    programs = {**old.programs, **{tool: str(path) for tool, path in found.items()}}
    return replace(old, nodes=nodes, components=chosen, programs=programs)


def with_nodes(chosen: Sequence[str], nodes: Nodes) -> tuple[str, ...]:
    """The components: with kwok when there are kwok nodes, else without."""
    others = tuple(component for component in chosen if component != components.KWOK)
    return (*others, components.KWOK) if nodes.kind == "kwok" else others


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
