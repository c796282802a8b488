"""One cluster: bring it up, look at it, take it down. The library behind ``kuberay-op local``.

``up`` is a way that can be walked again from any point: it writes what is missing, starts what does not run
and waits for what is not ready. So a second ``up`` does nothing, an interrupted one is finished by the next,
and one after a component died repairs the cluster.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import psutil

from kuberay_op_local import binaries, certs, components, health, nodes, paths, ports, processes
from kuberay_op_local.errors import LocalError
from kuberay_op_local.spec import Nodes, Spec, check_name

DEFAULT_NAME: Final = "default"
ADMIN: Final = "admin"
READY_SECONDS: Final = 120.0
#: Say something at least this often while waiting.
TICK_SECONDS: Final = 2.0

Say = Callable[[str], None]


def _quiet(_: str) -> None:
    """Say nothing: for library users."""


@dataclass(frozen=True, slots=True)
class Status:
    """How a cluster is."""

    name: str
    state: str  # absent | stopped | broken | starting | running
    kubernetes: str | None = None
    nodes: str | None = None
    server: str | None = None
    kubeconfig: str | None = None
    components: Mapping[str, Mapping[str, Any]] | None = None

    def as_dict(self) -> dict[str, Any]:
        """For ``--output json``."""
        return asdict(self)


class Cluster:
    """A cluster by name; it need not exist yet."""

    def __init__(self, name: str = DEFAULT_NAME) -> None:
        self.name = check_name(name)
        self.layout = paths.Layout.of(name)

    # -- what it is -------------------------------------------------------------------------------

    @property
    def spec(self) -> Spec:
        """What the cluster was asked to be."""
        spec = Spec.load(self.layout.spec)
        if spec is None:
            raise LocalError(
                f"there is no cluster {self.name!r}; `kuberay-op local up --name {self.name}` makes it"
            )
        return spec

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self.spec.server

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.layout.kubeconfig

    # -- up ---------------------------------------------------------------------------------------

    @classmethod
    def up(
        cls,
        name: str = DEFAULT_NAME,
        *,
        node: str | None = None,
        kubernetes: str | None = None,
        port: int | None = None,
        folder: Path | None = None,
        only: Sequence[str] | None = None,
        extra_args: Mapping[str, Sequence[str]] | None = None,
        say: Say = _quiet,
    ) -> Cluster:
        """Bring the cluster up, or make sure that it is.

        ``node`` is ``kwok:COUNT`` or ``none``; ``folder`` holds programs to use instead of our own; ``only``
        names the components to run (tests often need no scheduler); ``extra_args`` adds arguments by
        component, for example an audit log for the API server.
        """
        cluster = cls(name)
        with paths.locked(cluster.layout.root):
            try:
                spec = cluster._settle(
                    node=node,
                    kubernetes=kubernetes,
                    port=port,
                    folder=folder,
                    only=only,
                    extra_args=extra_args,
                    say=say,
                )
                cluster._write_files(spec)
                cluster._start(spec, say)
            except OSError as error:
                where = f" ({error.filename})" if error.filename else ""
                raise LocalError(f"cluster {name!r} cannot be set up: {error.strerror}{where}") from error
        return cluster

    def _settle(
        self,
        *,
        node: str | None,
        kubernetes: str | None,
        port: int | None,
        folder: Path | None,
        only: Sequence[str] | None,
        extra_args: Mapping[str, Sequence[str]] | None,
        say: Say,
    ) -> Spec:
        """What the cluster shall be: as it was, with the wishes of this call."""
        old = Spec.load(self.layout.spec)
        if old is not None:
            return self._settle_existing(old, node, kubernetes, port)
        wanted = Nodes.parse(node or "none")
        chosen = tuple(only or components.CONTROL_PLANE)
        if wanted.kind == "kwok" and components.KWOK not in chosen:
            chosen = (*chosen, components.KWOK)
        version = kubernetes or binaries.DEFAULT_KUBERNETES
        programs = binaries.resolve([*chosen, "kubectl"], kubernetes=version, folder=folder, say=say)
        spec = Spec(
            name=self.name,
            kubernetes=version,
            nodes=wanted,
            components=chosen,
            programs={tool: str(path) for tool, path in programs.items()},
            ports=self._ports(chosen, port),
            extra_args={key: list(value) for key, value in (extra_args or {}).items()},
        )
        spec.save(self.layout.spec)
        return spec

    def _settle_existing(self, old: Spec, node: str | None, kubernetes: str | None, port: int | None) -> Spec:
        if kubernetes is not None and kubernetes != old.kubernetes:
            raise LocalError(
                f"cluster {self.name!r} runs Kubernetes {old.kubernetes}, not {kubernetes}; "
                "take it down first or choose another --name"
            )
        if port is not None and port != old.ports["kube-apiserver"]:
            raise LocalError(
                f"cluster {self.name!r} listens on port {old.ports['kube-apiserver']}, not {port}; "
                "take it down first or choose another --name"
            )
        if node is None or Nodes.parse(node) == old.nodes:
            return old
        wanted = Nodes.parse(node)
        chosen = tuple(c for c in old.components if c != components.KWOK)
        programs = old.programs
        if wanted.kind == "kwok":
            chosen = (*chosen, components.KWOK)
            kwok = binaries.resolve([components.KWOK], kubernetes=old.kubernetes, folder=None, say=_quiet)
            programs = {**programs, components.KWOK: str(kwok[components.KWOK])}
        spec = replace(old, nodes=wanted, components=chosen, programs=programs)
        spec.save(self.layout.spec)
        return spec

    def _ports(self, chosen: Sequence[str], port: int | None) -> dict[str, int]:
        names = [name for component in chosen for name in components.PORTS[component]]
        fixed = {} if port is None else {"kube-apiserver": port}
        if port is not None and not ports.is_free(port):
            raise LocalError(f"port {port} is taken by another program; choose a free one with --port")
        rest = [name for name in names if name not in fixed]
        avoid = ports.reserved(paths.clusters_dir()) | set(fixed.values())
        return {**fixed, **ports.choose(rest, avoid=avoid, rng=random.SystemRandom())}

    def _write_files(self, spec: Spec) -> None:
        """Certificates, kubeconfigs, kwok's stages: once."""
        pki = self.layout.pki
        if not (pki / "ca.crt").exists():
            authority = certs.Authority.create(f"kuberay-op local {self.name}")
            private, public = certs.signing_key()
            certs.write_private(pki / "service-accounts.key", private)
            certs.write_private(pki / "service-accounts.pub", public)
            authority.server("kube-apiserver", components.SERVING_HOSTS).save(pki, "server")
            authority.client(ADMIN, ["system:masters"]).save(pki, ADMIN)
            authority.pair.save(pki, "ca")  # last: it says that the others are there
        if not self.kubeconfig.exists():
            pair = certs.Pair((pki / "admin.key").read_bytes(), (pki / "admin.crt").read_bytes())
            certs.write_private(self.kubeconfig, self._kubeconfig(spec, ADMIN, pair))
        for component in spec.components:
            path = self.layout.component_kubeconfig(component)
            if component in components.IDENTITIES and not path.exists():
                self._issue(spec, path, *components.IDENTITIES[component])
        if components.KWOK in spec.components:
            self.layout.stages.write_text(nodes.stages())

    def _start(self, spec: Spec, say: Say) -> None:
        running = processes.find(self.layout.root)
        for extra in running.keys() - set(spec.components):
            processes.kill([running.pop(extra)])
        began = time.monotonic()
        missing = [c for c in spec.components if c not in running]
        first = [c for c in missing if c in (components.ETCD, components.API_SERVER)]
        for component in first:
            running[component] = self._spawn(spec, component)
        with health.Probe(spec, self.layout) as probe:
            self._await(probe, components.API_SERVER, running, say)
            for component in missing:
                if component not in first:
                    running[component] = self._spawn(spec, component)
            self._sync_nodes(probe, spec)
            for component in spec.components:
                self._await(probe, component, running, say)
        if missing:
            say(f"cluster {self.name!r} is up after {time.monotonic() - began:.1f} s ({', '.join(missing)})")

    def _spawn(self, spec: Spec, component: str) -> psutil.Process:
        for name in components.PORTS[component]:
            if not ports.is_free(spec.ports[name]):
                raise LocalError(
                    f"port {spec.ports[name]} of {component} is taken by another program; "
                    f"end that program, or run `kuberay-op local down --name {self.name}` and `up` again"
                )
        return processes.start(
            Path(spec.programs[component]),
            components.arguments(component, spec, self.layout),
            root=self.layout.root,
            component=component,
            log=self.layout.log(component),
        )

    def _await(
        self, probe: health.Probe, component: str, running: Mapping[str, psutil.Process], say: Say
    ) -> None:
        spoken = 0.0

        def tick(took: float) -> None:
            nonlocal spoken
            if took - spoken >= TICK_SECONDS:
                spoken = took
                say(f"waiting for {component}: {took:.0f} s")

        probe.wait(component, running[component], seconds=READY_SECONDS, tick=tick)

    def _sync_nodes(self, probe: health.Probe, spec: Spec) -> None:
        """Make the kwok nodes what the specification says."""
        listed = probe.api("GET", "/api/v1/nodes?labelSelector=type%3Dkwok")
        listed.raise_for_status()
        present = {node["metadata"]["name"] for node in listed.json()["items"]}
        wanted = {nodes.name(i): i for i in range(spec.nodes.count)}
        for name in sorted(present - wanted.keys()):
            probe.api("DELETE", f"/api/v1/nodes/{name}").raise_for_status()
        for name, index in wanted.items():
            if name not in present:
                body = nodes.manifest(index, kubernetes=spec.kubernetes)
                probe.api("POST", "/api/v1/nodes", body).raise_for_status()

    # -- down, status, parts ----------------------------------------------------------------------

    def down(self) -> bool:
        """Remove the cluster, its processes and its files; False when there was nothing."""
        with paths.locked(self.layout.root, create=False) as exists:
            left = processes.kill(list(processes.find(self.layout.root).values()))
            if left:
                pids = ", ".join(str(process.pid) for process in left)
                raise LocalError(f"these processes of cluster {self.name!r} do not end: {pids}")
            if exists:
                paths.remove(self.layout.root)
        return exists

    def status(self) -> Status:
        """How the cluster and each of its components are."""
        spec = Spec.load(self.layout.spec)
        if spec is None:
            return Status(self.name, "absent")
        running = processes.find(self.layout.root)
        parts: dict[str, dict[str, Any]] = {}
        with health.Probe(spec, self.layout) as probe:
            for component in spec.components:
                process = running.get(component)
                parts[component] = {
                    "running": process is not None,
                    "ready": process is not None and probe.ready(component),
                    "pid": process.pid if process else None,
                    "log": str(self.layout.log(component)),
                }
        if not running:
            state = "stopped"
        elif any(not part["running"] for part in parts.values()):
            state = "broken"
        else:
            state = "running" if all(part["ready"] for part in parts.values()) else "starting"
        return Status(
            self.name, state, spec.kubernetes, str(spec.nodes), spec.server, str(self.kubeconfig), parts
        )

    def kill(self, component: str) -> None:
        """Kill one component, for tests of what happens then."""
        process = processes.find(self.layout.root).get(component)
        if process is not None:
            processes.kill([process])

    def start(self, component: str) -> None:
        """Start one component again, on its old port, and wait until it is ready."""
        spec = self.spec
        running = processes.find(self.layout.root)
        if component not in running:
            running[component] = self._spawn(spec, component)
        with health.Probe(spec, self.layout) as probe:
            self._await(probe, component, running, _quiet)

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout: float = 120.0) -> str:
        """Run kubectl as administrator and give its output; raises LocalError with its complaint."""
        done = subprocess.run(
            [self.spec.programs["kubectl"], *arguments],
            env=self.environment(),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode != 0:
            raise LocalError(f"kubectl {' '.join(arguments)} failed: {done.stderr.strip()}")
        return done.stdout

    def environment(self) -> dict[str, str]:
        """An environment in which kubectl and helm talk to this cluster and leave nothing elsewhere."""
        return {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.layout.kube_cache),
        }

    def issue_client_cert(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig for another user, signed by the cluster's authority."""
        path = self.layout.root / "users" / f"{user.replace(':', '_').replace('/', '_')}.yaml"
        self._issue(self.spec, path, user, groups)
        return path

    def _issue(self, spec: Spec, path: Path, user: str, groups: Sequence[str]) -> None:
        authority = certs.Authority.load(self.layout.pki, "ca")
        certs.write_private(path, self._kubeconfig(spec, user, authority.client(user, groups)))

    def _kubeconfig(self, spec: Spec, user: str, pair: certs.Pair) -> bytes:
        text = certs.kubeconfig(
            name=f"kuberay-op-{self.name}",
            server=spec.server,
            authority=(self.layout.pki / "ca.crt").read_bytes(),
            user=user,
            client=pair,
        )
        return text.encode()
