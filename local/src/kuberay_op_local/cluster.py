"""One cluster: bring it up, look at it, take it down. The library behind ``kuberay-op local``.

``up`` is a way that can be walked again from any point: it writes what is missing, starts what does not run
and waits for what is not ready. So a second ``up`` does nothing, an interrupted one is finished by the next,
and one after a component died repairs the cluster.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from kuberay_op_local import certs, components, health, nodes, paths, ports, processes, wish
from kuberay_op_local.errors import LocalError
from kuberay_op_local.real import images, kernel, node, objects, packages
from kuberay_op_local.real.world import World, remove_link
from kuberay_op_local.run import Say, Ticker
from kuberay_op_local.spec import Nodes, Spec, check_name

DEFAULT_NAME: Final = "default"
ADMIN: Final = "admin"
READY_SECONDS: Final = 180.0
#: etcd alone reserves 64 MB at a time for its log.
SPACE_MEGABYTES: Final = 300


def quiet(_: str) -> None:
    """Say nothing: for library users."""


@dataclass(frozen=True, slots=True)
class Status:
    """How a cluster is; ``state`` is one of absent, stopped, broken, starting, running."""

    name: str
    state: str
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

    # ── what it is ──

    @property
    def spec(self) -> Spec:
        """What the cluster was asked to be."""
        spec = Spec.load(self.layout.spec)
        if spec is None:
            others = sorted(file.parent.name for file in paths.clusters_dir().glob("*/cluster.json"))
            there = f" (there are: {', '.join(others)})" if others else ""
            raise LocalError(
                f"there is no cluster {self.name!r}{there}; `kuberay-op local up --name {self.name}` makes it"
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

    def environment(self) -> dict[str, str]:
        """An environment in which kubectl and helm talk to this cluster and leave nothing elsewhere."""
        scratch = self.layout.root / "client"
        return {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(scratch / "kubectl"),
            "HELM_CACHE_HOME": str(scratch / "helm-cache"),
            "HELM_CONFIG_HOME": str(scratch / "helm-config"),
            "HELM_DATA_HOME": str(scratch / "helm-data"),
        }

    # ── up ──

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
        make: bool = True,
        small_requests: bool | None = None,
        say: Say = quiet,
    ) -> Cluster:
        """Bring the cluster up, or make sure that it is.

        ``node`` is ``kwok:COUNT``, ``real`` or ``none``; ``port`` is the API server's; ``folder`` holds
        programs to use instead of our own; ``only`` names the components to run (tests need no scheduler);
        ``extra_args`` adds arguments by component, for example an audit log for the API server; with ``make``
        off, programs must be at hand already; ``small_requests`` lets Pods on a real node ask for little, by
        default on small machines.
        """
        cluster = cls(name)
        wanted = wish.Wish(
            node=Nodes.parse(node) if node is not None else None,
            kubernetes=kubernetes,
            port=port,
            folder=folder,
            only=tuple(only) if only is not None else None,
            extra_args={key: list(value) for key, value in extra_args.items()} if extra_args else None,
            make=make,
            small_requests=small_requests,
        )
        root = cluster.layout.root
        with paths.locked(root, waiting=lambda: say(f"waiting for another command on cluster {name!r}")):
            try:
                spec = cluster._settle(wanted, say)
                cluster._write_files(spec)
                cluster._start(spec, say)
            except OSError as error:
                where = f" ({error.filename})" if error.filename else ""
                raise LocalError(f"cluster {name!r} cannot be set up: {error.strerror}{where}") from error
            finally:
                if not cluster.layout.spec.exists():  # nothing began
                    paths.remove(root)
        return cluster

    def _settle(self, wanted: wish.Wish, say: Say) -> Spec:
        old = Spec.load(self.layout.spec)
        if old is None:
            real_node = wanted.node is not None and wanted.node.real
            paths.check_space(self.layout.root, node.SPACE_MEGABYTES if real_node else SPACE_MEGABYTES)
            spec = wish.new_spec(self.name, wanted, say)
        else:
            spec = wish.changed_spec(old, wanted, say)
        if spec != old:
            spec.save(self.layout.spec)
        return spec

    def _write_files(self, spec: Spec) -> None:
        """Certificates, kubeconfigs, kwok's stages: what is not there yet."""
        pki = self.layout.pki
        if not (pki / "ca.crt").exists():
            authority = certs.Authority.create(f"kuberay-op local {self.name}")
            private, public = certs.signing_key()
            certs.write_private(pki / "service-accounts.key", private)
            certs.write_private(pki / "service-accounts.pub", public)
            hosts = dict.fromkeys((*components.SERVING_HOSTS, spec.host))
            authority.server("kube-apiserver", list(hosts)).save(pki, "server")
            authority.client(ADMIN, ["system:masters"]).save(pki, ADMIN)
            authority.pair.save(pki, "ca")  # last: it says that the others are there
        if not self.kubeconfig.exists():
            pair = certs.Pair((pki / f"{ADMIN}.key").read_bytes(), (pki / f"{ADMIN}.crt").read_bytes())
            certs.write_private(self.kubeconfig, self._kubeconfig(spec, ADMIN, pair))
        for component in spec.components:
            path = self.layout.component_kubeconfig(component)
            if component in components.IDENTITIES and not path.exists():
                self._issue(spec, path, *components.IDENTITIES[component])
        if components.KWOK in spec.components:
            self.layout.stages.write_text(nodes.stages())
        if spec.nodes.real:
            node.write_files(spec, self.layout)

    def _start(self, spec: Spec, say: Say) -> None:
        running = processes.find(self.layout.root)
        # The operator is no component of the cluster, but runs beside them; `up` leaves it alone.
        wanted = {*spec.components, components.OPERATOR}
        if components.NAMESPACES in spec.components and components.NAMESPACES not in running:
            wanted = set()  # the world they live in is gone: all must start anew
        processes.kill([running.pop(extra) for extra in running.keys() - wanted])
        began = time.monotonic()
        missing = [component for component in spec.components if component not in running]
        inside = self._open_world(spec, running) if spec.nodes.real else None
        # The API server waits for etcd by itself; the others would lose time in back-off without it.
        for component in (components.ETCD, components.API_SERVER, node.EARLY):
            if component in spec.components and component not in running:
                running[component] = self._spawn(spec, component, running)
        with health.Probe(spec, self.layout) as probe:
            self._await(probe, components.API_SERVER, running, say)
            if inside is not None:
                self._await(probe, components.CONTAINERD, running, say)
                images.load_pause(inside)
                self.kubectl("apply", "--server-side", "-f", "-", stdin=objects.manifests(spec))
            for component in spec.components:
                if component not in running:
                    running[component] = self._spawn(spec, component, running)
            if not spec.nodes.real:
                self._sync_nodes(probe, spec, say)
            for component in spec.components:
                self._await(probe, component, running, say)
        if missing:
            say(f"cluster {self.name!r} is up after {time.monotonic() - began:.1f} s ({', '.join(missing)})")
        else:
            say(f"cluster {self.name!r} is up")

    def _open_world(self, spec: Spec, running: dict[str, psutil.Process]) -> World:
        return node.open_world(
            spec, self.layout, running, lambda component: self._spawn(spec, component, running)
        )

    def _spawn(self, spec: Spec, component: str, running: Mapping[str, psutil.Process]) -> psutil.Process:
        if spec.nodes.real:
            program, arguments = node.command(component, spec, self.layout, running)
        else:
            self._check_ports(spec, component)
            program = Path(spec.programs[component])
            arguments = components.arguments(component, spec, self.layout)
        return processes.start(
            program, arguments, root=self.layout.root, component=component, log=self.layout.log(component)
        )

    def _check_ports(self, spec: Spec, component: str) -> None:
        for listener in components.PORTS[component]:
            if not ports.is_free(spec.ports[listener]):
                raise LocalError(
                    f"port {spec.ports[listener]} of {component} is taken by another program; "
                    f"end that program, or run `kuberay-op local down --name {self.name}` and `up` again"
                )

    def _await(
        self, probe: health.Probe, component: str, running: Mapping[str, psutil.Process], say: Say
    ) -> None:
        tick = Ticker(say)
        probe.wait(
            component,
            running,
            seconds=READY_SECONDS,
            tick=lambda took: tick(f"waiting for {component}: {took:.0f} s"),
        )

    def _sync_nodes(self, probe: health.Probe, spec: Spec, say: Say) -> None:
        """Make the kwok nodes what the specification says."""
        listed = probe.demand("GET", "/api/v1/nodes?labelSelector=type%3Dkwok")
        present = {node["metadata"]["name"] for node in listed["items"]}
        wanted = {nodes.name(index): index for index in range(spec.nodes.count)}
        tick = Ticker(say)
        for name in sorted(present - wanted.keys()):
            probe.demand("DELETE", f"/api/v1/nodes/{name}")
            tick(f"removing nodes: {name}")
        for name, index in wanted.items():
            if name not in present:
                probe.demand("POST", "/api/v1/nodes", nodes.manifest(index, kubernetes=spec.kubernetes))
                tick(f"adding nodes: {index + 1} of {spec.nodes.count}")

    # ── down, status ──

    def down(self, say: Say = quiet) -> bool:
        """Remove the cluster, its processes and its files; False when there was nothing."""
        waiting = f"waiting for another command on cluster {self.name!r}"
        with paths.locked(self.layout.root, create=False, waiting=lambda: say(waiting)) as exists:
            running = processes.find(self.layout.root)
            left = processes.kill(list(running.values()))
            if left:
                pids = ", ".join(str(process.pid) for process in left)
                raise LocalError(f"these processes of cluster {self.name!r} do not end: {pids}")
            if exists:
                remove_link(self.layout)
                kernel.clean(self.layout)
                paths.remove(self.layout.root)
        return exists or bool(running)

    def status(self) -> Status:
        """How the cluster and each of its components are."""
        spec = Spec.load(self.layout.spec)
        if spec is None:
            return Status(self.name, "absent")
        running = processes.find(self.layout.root)
        ready: set[str] = set()
        if running:  # else an interrupted `up` may have left no certificates to ask with
            with health.Probe(spec, self.layout) as probe:
                ready = {component for component in spec.components if probe.ready(component)}
        parts: dict[str, dict[str, Any]] = {
            component: {
                "running": component in running,
                "ready": component in running and component in ready,
                "pid": running[component].pid if component in running else None,
                "log": str(self.layout.log(component)),
            }
            for component in spec.components
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

    # ── images, on a real node ──

    def check_real(self) -> None:
        """Fail in a sentence when the cluster has no real node."""
        if not self.spec.nodes.real:
            raise LocalError(
                f"cluster {self.name!r} has nodes {self.spec.nodes}, which run no images; "
                "a cluster made with `up --node real` does"
            )
        packages.need_root("loading images")

    def load(self, image: str) -> list[str]:
        """Give the real node an image: an archive file, or a name that its registry knows."""
        self.check_real()
        holder = processes.find(self.layout.root).get(components.NAMESPACES)
        if holder is None:
            raise LocalError(
                f"cluster {self.name!r} does not run; `kuberay-op local up --name {self.name}` brings it up"
            )
        return images.load(World.of(holder), image)

    # ── parts, for tests ──

    def kill(self, component: str) -> None:
        """Kill one component, to see what happens then."""
        process = processes.find(self.layout.root).get(component)
        if process is not None:
            processes.kill([process])

    def start(self, component: str) -> None:
        """Start one component again, on its old port, and wait until it is ready."""
        spec = self.spec
        running = processes.find(self.layout.root)
        if component not in running:
            running[component] = self._spawn(spec, component, running)
        with health.Probe(spec, self.layout) as probe:
            self._await(probe, component, running, quiet)

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
